"""Run one process that serves the API and the web UI: `python -m offing.api`."""

import sys

from offing.garbage_collection import collect_rarely


def _run() -> int:
    collect_rarely()  # before the imports, which create most objects
    from offing.api.process import main

    return main()


if __name__ == "__main__":
    sys.exit(_run())
