"""Telling whoever started this process that it works: its pid in the file that OFFING_READY_FILE names."""

import os
from pathlib import Path


def tell_ready() -> None:
    """Write the file at once and whole. Without the variable nobody asked, and nothing is written."""
    wanted = os.environ.get("OFFING_READY_FILE")
    if wanted:
        draft = Path(f"{wanted}.{os.getpid()}")
        draft.write_text(str(os.getpid()))
        draft.replace(wanted)
