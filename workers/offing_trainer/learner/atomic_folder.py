"""Folders that are written atomically, even if the writing process is killed.

The files are written to a temporary folder and flushed to disk, then the folder is renamed.
"""

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from offing.core.errors import Conflict


@contextmanager
def open_atomic_folder(folder: Path, *, replace: bool) -> Generator[Path]:
    """Yield a temporary folder, which becomes `folder` when the block succeeds and is removed otherwise.

    An existing `folder` stays until the new one is complete. Raises Conflict if it exists and `replace`
    is false.
    """
    restore_interrupted(folder)
    if folder.exists() and not replace:
        raise Conflict(f"{folder} already exists.", "Use a folder that does not exist yet.")
    new = _sibling_path(folder, "new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    try:
        yield new
        _fsync_tree(new)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    _swap_in(new, folder)


def restore_interrupted(folder: Path) -> None:
    """Restore a folder that was moved away just before its writer was killed."""
    old = _sibling_path(folder, "old")
    if folder.exists():
        shutil.rmtree(old, ignore_errors=True)
    elif old.exists():
        old.rename(folder)


def _swap_in(new: Path, folder: Path) -> None:
    old = _sibling_path(folder, "old")
    if folder.exists():
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
    new.rename(folder)
    _fsync(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def _sibling_path(folder: Path, suffix: str) -> Path:
    return folder.with_name(f".{folder.name}.{suffix}")


def _fsync_tree(folder: Path) -> None:
    for path in folder.rglob("*"):
        _fsync(path)
    _fsync(folder)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
