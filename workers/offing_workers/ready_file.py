"""The ready file: the worker writes its pid to the file in OFFING_READY_FILE when it is ready."""

import os
from pathlib import Path

from offing.environment import find_ready_file


def write_ready_file() -> None:
    """Write the ready file atomically. Do nothing if the variable is not set."""
    if (file := find_ready_file()) is None:
        return
    draft = Path(f"{file}.{os.getpid()}")
    draft.write_text(str(os.getpid()))
    draft.replace(file)
