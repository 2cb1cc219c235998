"""`python -m offing_workers`: one worker process."""

from offing_workers.app import main

main()
