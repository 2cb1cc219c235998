"""Which files of a folder belong to the library. The only home of what a walk skips; reads names, never contents."""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from offing.core.errors import InvalidInput
from offing.library.extraction import SUFFIXES

MOST_FILES = 100_000
SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages", "venv"})


@dataclass(frozen=True, slots=True)
class Listing:
    """What a walk found. `skipped` counts files of other types by suffix; '' for those without one."""

    root: Path
    names: tuple[str, ...]
    """Paths within the root, with `/`, sorted."""
    skipped: dict[str, int] = field(default_factory=dict[str, int])
    cut_short: bool = False
    """There are more files than `MOST_FILES`; the rest was not looked at."""


def documents_in(folder: Path, *, most: int = MOST_FILES) -> Listing:
    """The documents of a folder, hidden files, package folders and links that leave it left out.

    Raises InvalidInput when it is no folder that can be read.
    """
    root = _root(folder)
    names: list[str] = []
    skipped: Counter[str] = Counter()
    for path in _files(root):
        if len(names) >= most:
            return Listing(root, tuple(sorted(names)), dict(skipped), cut_short=True)
        suffix = path.suffix.lower()
        if suffix not in SUFFIXES:
            skipped[suffix] += 1
        elif (name := path.relative_to(root).as_posix()).isprintable():
            names.append(name)
        else:
            skipped["unprintable name"] += 1
    return Listing(root, tuple(sorted(names)), dict(skipped))


def _root(folder: Path) -> Path:
    try:
        root = folder.expanduser().resolve(strict=True)
        if root.is_dir() and os.access(root, os.R_OK | os.X_OK):
            return root
    except OSError:
        pass
    raise InvalidInput("docs", f"{folder} is not a folder that can be read", "Name an existing folder of documents.")


def _files(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root, followlinks=False):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in SKIPPED_FOLDERS)
        for file in sorted(files):
            path = Path(folder, file)
            if not file.startswith(".") and _stays_inside(path, root):
                yield path


def _stays_inside(path: Path, root: Path) -> bool:
    """A plain file, or a link to one within the root."""
    if path.is_symlink():
        target = path.resolve()
        return target.is_file() and target.is_relative_to(root)
    return path.is_file()
