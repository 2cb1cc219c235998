"""`python -m offing_workers`: one worker process."""

from offing.garbage_collection import collect_rarely


def _run() -> None:
    collect_rarely()  # before the imports, which create most objects
    from offing_workers.app import main

    main()


if __name__ == "__main__":
    _run()
