"""List the files of a folder that belong in the library. Only names are read, never contents."""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from offing.core.errors import InvalidInput
from offing.library.extraction import MEDIA_TYPES_BY_SUFFIX

MAX_FILES = 100_000
SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages", "venv"})


@dataclass(frozen=True, slots=True)
class FolderListing:
    """The result of a folder walk.

    `skipped` counts files of other types by suffix, with '' for those without one.
    """

    root: Path
    names: tuple[str, ...]
    """Paths relative to the root, with `/`, sorted."""
    skipped: dict[str, int] = field(default_factory=dict[str, int])
    truncated: bool = False
    """Whether the folder has more than `MAX_FILES` files, in which case the others are not listed."""


def list_documents(folder: Path, *, max_files: int = MAX_FILES) -> FolderListing:
    """List the documents of a folder without hidden files, package folders and links that leave the folder.

    Raises InvalidInput for a path that is not a readable folder.
    """
    root = _resolve_root(folder)
    names: list[str] = []
    skipped: Counter[str] = Counter()
    for path in _iter_files(root):
        if len(names) >= max_files:
            return FolderListing(root, tuple(sorted(names)), dict(skipped), truncated=True)
        suffix = path.suffix.lower()
        if suffix not in MEDIA_TYPES_BY_SUFFIX:
            skipped[suffix] += 1
        elif (name := path.relative_to(root).as_posix()).isprintable():
            names.append(name)
        else:
            skipped["unprintable name"] += 1
    return FolderListing(root, tuple(sorted(names)), dict(skipped))


def _resolve_root(folder: Path) -> Path:
    try:
        root = folder.expanduser().resolve(strict=True)
        if root.is_dir() and os.access(root, os.R_OK | os.X_OK):
            return root
    except OSError:
        pass
    raise InvalidInput("docs", f"{folder} is not a readable folder", "Use an existing folder with documents.")


def _iter_files(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root, followlinks=False):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in SKIPPED_FOLDERS)
        for file in sorted(files):
            path = Path(folder, file)
            if not file.startswith(".") and _is_inside(path, root):
                yield path


def _is_inside(path: Path, root: Path) -> bool:
    """Return whether the path is a regular file, or a link to one inside the root."""
    if path.is_symlink():
        target = path.resolve()
        return target.is_file() and target.is_relative_to(root)
    return path.is_file()
