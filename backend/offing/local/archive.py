"""Archive of a backup: a tar file with a manifest, a database dump, and folders.

The archive is written under a temporary name and renamed when it is complete. Links are replaced by
what they point to, because their targets may not exist where the archive is unpacked.
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

FORMAT_VERSION = 1
MANIFEST, DUMP = "manifest.json", "database.dump"


@dataclass(frozen=True, slots=True)
class Entry:
    """File or folder of a backup."""

    name: str
    """Path in the archive."""
    path: Path
    needed_by: str = ""
    """What needs this entry. Empty: nothing needs it, and files that are deleted during the backup are
    left out.
    """


def write_archive(target: Path, manifest: Mapping[str, Any], dump: Path, entries: Sequence[Entry]) -> None:
    """Write a backup that only this user can read.

    Raises Conflict for a dead link, a cycle of links, and a missing file that something needs.
    """
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    body = orjson.dumps(
        {"format": FORMAT_VERSION, "dump_sha256": _hash_file(dump), **manifest}, option=orjson.OPT_INDENT_2
    )
    try:
        with open(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), "w+b") as file:
            with tarfile.open(fileobj=file, mode="w", dereference=True) as archive:
                about = tarfile.TarInfo(MANIFEST)
                about.size = len(body)
                archive.addfile(about, _open_stream(body))
                archive.add(dump, DUMP)
                for entry in entries:
                    _add(archive, entry, entry.name, entry.path, ())
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _add(archive: tarfile.TarFile, entry: Entry, name: str, path: Path, ancestors: tuple[tuple[int, int], ...]) -> None:
    """Add a path to the archive. `ancestors` are the device and inode of each folder above it."""
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            check_no_cycle(path, identity := (status.st_dev, status.st_ino), ancestors)
            archive.addfile(archive.gettarinfo(path, name))
            for child in sorted(path.iterdir()):
                _add(archive, entry, f"{name}/{child.name}", child, (*ancestors, identity))
        elif stat.S_ISREG(status.st_mode):
            with path.open("rb") as file:
                archive.addfile(archive.gettarinfo(arcname=name, fileobj=file), file)
    except FileNotFoundError:
        check_link(path)
        if entry.needed_by:
            raise missing_file_error(path, entry.needed_by) from None


def check_link(path: Path) -> None:
    """Raise Conflict if a link points to a missing file."""
    if path.is_symlink() and not path.exists():
        raise Conflict(
            f"{path} is a link to {os.readlink(path)}, which does not exist.", "Restore the target or remove the link."
        )


def check_no_cycle(path: Path, identity: tuple[int, int], ancestors: Sequence[tuple[int, int]]) -> None:
    """Raise Conflict if a folder is one of its own ancestors through a link."""
    if identity in ancestors:
        raise Conflict(f"{path} is a link to a folder that contains it.", "Remove the link.")


def missing_file_error(path: Path, needed_by: str) -> Conflict:
    """Return the error for a missing file that something needs."""
    return Conflict(
        f"{path}, which {needed_by} needs, does not exist.",
        "If it was deleted during the backup, make another backup. Otherwise restore it.",
    )


@contextmanager
def explain_os_errors(problem: str, remedy: str) -> Generator[None]:
    """Turn errors of the file system into a Conflict that names the path and the reason."""
    try:
        yield
    except OSError as error:
        raise Conflict(f"{problem}: {_describe_os_error(error)}.", remedy) from error


def _describe_os_error(error: OSError) -> str:
    # for a tree: source, target and reason per file
    if isinstance(error, shutil.Error) and isinstance(error.args[0], list):
        source, _, reason = cast(list[tuple[Any, Any, Any]], error.args[0])[0]
        return f"{source}: {reason}"
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)


def _open_stream(body: bytes) -> Any:
    from io import BytesIO

    return BytesIO(body)


def read_manifest(source: Path) -> dict[str, Any]:
    """Return the manifest of a backup.

    Raises InvalidInput if the file is not a backup or has a newer format.
    """
    try:
        with tarfile.open(source) as archive:
            first = archive.next()
            body = archive.extractfile(first) if first is not None and first.name == MANIFEST else None
            manifest: Any = orjson.loads(body.read()) if body is not None else None
    except (OSError, tarfile.TarError, orjson.JSONDecodeError) as error:
        raise InvalidInput(
            "FILE", f"{source} cannot be read: {error}", "Use a file that `offing backup` has written."
        ) from None
    if not isinstance(manifest, dict) or "format" not in manifest:
        raise InvalidInput(
            "FILE", f"{source} is not a backup of Offing", "Use a file that `offing backup` has written."
        )
    fields = cast(dict[str, Any], manifest)
    if fields["format"] > FORMAT_VERSION:
        raise InvalidInput(
            "FILE", f"{source} was written by a later version of Offing", "Restore it with that version."
        )
    return fields


def extract(source: Path, manifest: Mapping[str, Any], folder: Path) -> Path:
    """Unpack a backup into an empty folder and return the path of the dump.

    Raises InvalidInput if the backup is damaged, and OSError if the disk is full.
    """
    kind: Literal["data"] = "data"  # rejects links and paths that lead outside the folder
    try:
        with tarfile.open(source) as archive:
            archive.extractall(folder, filter=kind)
    except tarfile.TarError as error:
        raise InvalidInput("FILE", f"{source} is damaged: {error}", "Use another backup.") from None
    if not (folder / DUMP).is_file():
        raise InvalidInput("FILE", f"{source} is damaged: it contains no dump", "Use another backup.")
    if _hash_file(folder / DUMP) != manifest["dump_sha256"]:
        raise InvalidInput("FILE", f"{source} is damaged: the SHA-256 of its dump differs", "Use another backup.")
    return folder / DUMP


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
