"""`python -m offing.cli`: the same as `offing`."""

from offing.cli.main import main

main()
