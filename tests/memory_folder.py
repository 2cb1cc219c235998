"""A folder in memory for the servers of tests, where the machine has one with room.

Each test has a database of its own, which is several hundred files. On a busy disk, making them costs Postgres ten
times as much processor time as in memory.
"""

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

MEMORY = Path("/dev/shm")

MIN_FREE_BYTES = 3 * 2**30
"""Three test processes write some hundred megabytes each. Containers often have only 64 MB of such memory."""

PREFIX = "offing-test-"


@contextmanager
def open_server_folder() -> Generator[Path]:
    """A folder for servers: in memory, or on disk where there is too little memory. It is removed at the end."""
    in_memory = has_room(MEMORY)
    if in_memory:
        remove_abandoned(MEMORY)
    with tempfile.TemporaryDirectory(
        prefix=f"{PREFIX}{os.getpid()}-", dir=MEMORY if in_memory else None, ignore_cleanup_errors=True
    ) as folder:
        yield Path(folder)


def has_room(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free >= MIN_FREE_BYTES
    except FileNotFoundError:
        return False


def remove_abandoned(folder: Path) -> None:
    """Remove what test processes left that were killed, because it would stay in memory until the machine restarts."""
    for left in folder.glob(f"{PREFIX}*-*"):
        if not Path("/proc", left.name.removeprefix(PREFIX).partition("-")[0]).exists():
            shutil.rmtree(left, ignore_errors=True)
