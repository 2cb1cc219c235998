"""Rotation of logs while child processes write to them.

A child inherits its open log, so the file cannot be renamed. Its content is copied and the file is
truncated. Children append, so they continue at its beginning. Lines that are written between the
two are lost.
"""

import logging
import os
import shutil
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

log = logging.getLogger("offing.local")

POLL_SECONDS = 5.0


def rotate_log(path: Path, max_bytes: int, max_files: int) -> bool:
    """Rotate a log of more than `max_bytes` bytes to `.1`, `.2` and so on, up to `max_files`.

    Return whether it was rotated.
    """
    if not path.exists() or path.stat().st_size <= max_bytes:
        return False
    _copy_log(path, newest := path.with_name(f"{path.name}.new"))
    for number in range(max_files - 1, 0, -1):
        older = path.with_name(f"{path.name}.{number}")
        if older.exists():
            older.replace(path.with_name(f"{path.name}.{number + 1}"))
    newest.replace(path.with_name(f"{path.name}.1"))
    os.truncate(path, 0)
    return True


def _copy_log(path: Path, target: Path) -> None:
    """Copy a log completely, or leave no copy. On a full disk, existing copies stay unchanged."""
    try:
        shutil.copyfile(path, target)
    except OSError:
        target.unlink(missing_ok=True)
        raise


@contextmanager
def rotate_logs(folder: Path, max_bytes: int, max_files: int) -> Generator[None]:
    """Rotate the logs of a folder until the block ends."""
    stopped = threading.Event()
    watch = threading.Thread(
        target=_rotate_until, args=(folder, max_bytes, max_files, stopped), name="offing-logs", daemon=True
    )
    watch.start()
    try:
        yield
    finally:
        stopped.set()
        watch.join()


def _rotate_until(folder: Path, max_bytes: int, max_files: int, stop_event: threading.Event) -> None:
    while not stop_event.wait(POLL_SECONDS):
        for path in folder.glob("*.log"):
            try:
                rotate_log(path, max_bytes, max_files)
            except OSError as error:  # for example a full disk: the programs continue, and so does this
                log.warning("%s could not be rotated: %s", path, error)
