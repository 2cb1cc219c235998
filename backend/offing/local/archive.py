"""The file of a backup: a tar with a manifest, a dump of the database, and the folders that lie beside it.

Knows neither Postgres nor what the folders hold. A file is written under another name and renamed when it is whole.
What a link leads to is stored in its place, because whoever unpacks the file may not have it.
"""

import hashlib
import os
import shutil
import stat
import tarfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import orjson

from offing.core.errors import Conflict, InvalidInput

FORMAT = 1
MANIFEST, DUMP = "manifest.json", "database.dump"


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or folder of a backup."""

    name: str
    """In the backup, as a path."""
    path: Path
    needed_by: str = ""
    """What cannot do without it. Empty: nothing, and what is removed of it in the meantime is left out."""


def write_archive(target: Path, manifest: Mapping[str, Any], dump: Path, entries: Sequence[Entry]) -> None:
    """Write a backup, readable by this user alone.

    Raises Conflict for a link that leads nowhere or into itself, and for what is gone although something needs it.
    """
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    body = orjson.dumps({"format": FORMAT, "dump_sha256": _sha256(dump), **manifest}, option=orjson.OPT_INDENT_2)
    try:
        with open(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), "w+b") as file:
            with tarfile.open(fileobj=file, mode="w", dereference=True) as archive:
                about = tarfile.TarInfo(MANIFEST)
                about.size = len(body)
                archive.addfile(about, _stream(body))
                archive.add(dump, DUMP)
                for entry in entries:
                    _add(archive, entry, entry.name, entry.path, ())
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _add(archive: tarfile.TarFile, entry: Entry, name: str, path: Path, above: tuple[tuple[int, int], ...]) -> None:
    """`above`: the folders that are being added, by device and inode."""
    try:
        found = path.stat()
        if stat.S_ISDIR(found.st_mode):
            refuse_circle(path, identity := (found.st_dev, found.st_ino), above)
            archive.addfile(archive.gettarinfo(path, name))
            for child in sorted(path.iterdir()):
                _add(archive, entry, f"{name}/{child.name}", child, (*above, identity))
        elif stat.S_ISREG(found.st_mode):
            with path.open("rb") as file:
                archive.addfile(archive.gettarinfo(arcname=name, fileobj=file), file)
    except FileNotFoundError:
        refuse_dead_link(path)
        if entry.needed_by:
            raise gone(path, entry.needed_by) from None


def refuse_dead_link(path: Path) -> None:
    """Raises Conflict for a link to something that is not there."""
    if path.is_symlink() and not path.exists():
        raise Conflict(
            f"{path} is a link to {os.readlink(path)}, which is not there.", "Bring that back, or remove the link."
        )


def refuse_circle(path: Path, identity: tuple[int, int], above: Sequence[tuple[int, int]]) -> None:
    """Raises Conflict for a folder that one of the folders above it leads back to."""
    if identity in above:
        raise Conflict(f"{path} is a link to a folder that it lies in.", "Remove the link.")


def gone(path: Path, needed_by: str) -> Conflict:
    """The error for what is not there although something needs it."""
    return Conflict(
        f"{path} is not there, which {needed_by} needs.",
        "If it was removed while the backup was made, make another one; else put it back.",
    )


@contextmanager
def explained(problem: str, remedy: str) -> Generator[None]:
    """Raise a failure of the file system as Conflict that names the path and the reason."""
    try:
        yield
    except OSError as error:
        raise Conflict(f"{problem}: {_reason(error)}.", remedy) from error


def _reason(error: OSError) -> str:
    if isinstance(error, shutil.Error) and isinstance(error.args[0], list):  # of a tree: from, to and why for each file
        source, _, why = cast(list[tuple[Any, Any, Any]], error.args[0])[0]
        return f"{source}: {why}"
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)


def _stream(body: bytes) -> Any:
    from io import BytesIO

    return BytesIO(body)


def read_manifest(source: Path) -> dict[str, Any]:
    """Return what a backup says of itself. Raises InvalidInput for a file that is none, or of a later form."""
    try:
        with tarfile.open(source) as archive:
            first = archive.next()
            body = archive.extractfile(first) if first is not None and first.name == MANIFEST else None
            manifest: Any = orjson.loads(body.read()) if body is not None else None
    except (OSError, tarfile.TarError, orjson.JSONDecodeError) as error:
        raise InvalidInput(
            "FILE", f"{source} cannot be read: {error}", "Name a file that `offing backup` wrote."
        ) from None
    if not isinstance(manifest, dict) or "format" not in manifest:
        raise InvalidInput("FILE", f"{source} is not a backup of Offing's", "Name a file that `offing backup` wrote.")
    known = cast(dict[str, Any], manifest)
    if known["format"] > FORMAT:
        raise InvalidInput(
            "FILE", f"{source} was written by a later version of Offing", "Restore it with that version."
        )
    return known


def extract(source: Path, manifest: Mapping[str, Any], folder: Path) -> Path:
    """Unpack a backup into an empty folder, and return where the dump is. Raises InvalidInput when it is damaged,
    OSError when there is no room for it."""
    kind: Literal["data"] = "data"  # refuses links and paths that lead out of the folder
    try:
        with tarfile.open(source) as archive:
            archive.extractall(folder, filter=kind)
    except tarfile.TarError as error:
        raise InvalidInput("FILE", f"{source} is damaged: {error}", "Take another backup.") from None
    if not (folder / DUMP).is_file():
        raise InvalidInput("FILE", f"{source} is damaged: it has no dump", "Take another backup.")
    if _sha256(folder / DUMP) != manifest["dump_sha256"]:
        raise InvalidInput("FILE", f"{source} is damaged: its dump has another SHA-256", "Take another backup.")
    return folder / DUMP


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
