"""Folders that are there whole or not at all, whatever kills the process that writes them.

The only home of the order: written aside, flushed to disk, then renamed. Knows nothing of what is in them.
"""

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from offing.core.errors import Conflict


@contextmanager
def put_whole(folder: Path, *, replacing: bool) -> Generator[Path]:
    """A folder aside to write into; when the block ends well it becomes `folder`, else it is removed.

    An earlier `folder` is there until the new one is complete. Raises Conflict when there is one and `replacing` is
    not set.
    """
    settle(folder)
    if folder.exists() and not replacing:
        raise Conflict(f"{folder} is already there.", "Name a folder that does not exist yet.")
    new = _aside(folder, "new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    try:
        yield new
        _flush(new)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    _take_place(new, folder)


def settle(folder: Path) -> None:
    """Puts an earlier folder back that was moved away just before its writer was killed."""
    old = _aside(folder, "old")
    if folder.exists():
        shutil.rmtree(old, ignore_errors=True)
    elif old.exists():
        old.rename(folder)


def _take_place(new: Path, folder: Path) -> None:
    old = _aside(folder, "old")
    if folder.exists():
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
    new.rename(folder)
    _flush_one(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def _aside(folder: Path, what: str) -> Path:
    return folder.with_name(f".{folder.name}.{what}")


def _flush(folder: Path) -> None:
    for path in folder.rglob("*"):
        _flush_one(path)
    _flush_one(folder)


def _flush_one(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
