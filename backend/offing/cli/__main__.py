"""Run the command line with `python -m offing.cli`, like `offing`."""

from offing.cli.main import main

main()
