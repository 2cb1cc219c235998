"""Logs of what runs here: put aside when they have grown, also while they are written to.

Children write to a file that they inherited, so it cannot be renamed under them. Its content is copied, and then it is
emptied; they append, so they go on at its beginning. Lines that come between the two are lost.
"""

import logging
import os
import shutil
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

log = logging.getLogger("offing.local")

LOOK_SECONDS = 5.0


def rotate(path: Path, most_bytes: int, keep: int) -> bool:
    """Put aside a log of more than `most_bytes` as `.1`, the one before as `.2`, up to `keep`. Whether it was."""
    if not path.exists() or path.stat().st_size <= most_bytes:
        return False
    _copied(path, newest := path.with_name(f"{path.name}.new"))
    for number in range(keep - 1, 0, -1):
        older = path.with_name(f"{path.name}.{number}")
        if older.exists():
            older.replace(path.with_name(f"{path.name}.{number + 1}"))
    newest.replace(path.with_name(f"{path.name}.1"))
    os.truncate(path, 0)
    return True


def _copied(path: Path, to: Path) -> None:
    """Copy a log whole, or leave nothing: on a full disk the logs that are kept stay as they are."""
    try:
        shutil.copyfile(path, to)
    except OSError:
        to.unlink(missing_ok=True)
        raise


@contextmanager
def kept_small(folder: Path, most_bytes: int, keep: int) -> Generator[None]:
    """Rotate the logs of a folder for as long as the block lasts."""
    done = threading.Event()
    watch = threading.Thread(target=_watch, args=(folder, most_bytes, keep, done), name="offing-logs", daemon=True)
    watch.start()
    try:
        yield
    finally:
        done.set()
        watch.join()


def _watch(folder: Path, most_bytes: int, keep: int, done: threading.Event) -> None:
    while not done.wait(LOOK_SECONDS):
        for path in folder.glob("*.log"):
            try:
                rotate(path, most_bytes, keep)
            except OSError as error:  # a full disk, say: the programs go on, and so does this
                log.warning("%s could not be rotated: %s", path, error)
