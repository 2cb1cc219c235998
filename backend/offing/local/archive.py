"""The file of a backup: a tar with a manifest, a dump of the database, and the folders that lie beside it.

Knows neither Postgres nor what the folders hold. A file is written under another name and renamed when it is whole.
"""

import hashlib
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, cast

import orjson

from offing.core.errors import InvalidInput

FORMAT = 1
MANIFEST, DUMP = "manifest.json", "database.dump"


def write_archive(target: Path, manifest: Mapping[str, Any], dump: Path, folders: Mapping[str, Path]) -> None:
    """Write a backup. `folders` are files or folders by the name that they have in it; one that is missing is left out.

    The file is readable by this user alone.
    """
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    body = orjson.dumps({"format": FORMAT, "dump_sha256": _sha256(dump), **manifest}, option=orjson.OPT_INDENT_2)
    try:
        with open(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), "w+b") as file:
            with tarfile.open(fileobj=file, mode="w") as archive:
                about = tarfile.TarInfo(MANIFEST)
                about.size = len(body)
                archive.addfile(about, _stream(body))
                archive.add(dump, DUMP)
                for name, folder in folders.items():
                    if folder.exists():
                        archive.add(folder, name)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


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
    """Unpack a backup into an empty folder, and return where the dump is. Raises InvalidInput when it is damaged."""
    kind: Literal["data"] = "data"  # refuses links and paths that lead out of the folder
    try:
        with tarfile.open(source) as archive:
            archive.extractall(folder, filter=kind)
    except (OSError, tarfile.TarError) as error:
        raise InvalidInput("FILE", f"{source} is damaged: {error}", "Take another backup.") from None
    if _sha256(folder / DUMP) != manifest["dump_sha256"]:
        raise InvalidInput("FILE", f"{source} is damaged: its dump has another SHA-256", "Take another backup.")
    return folder / DUMP


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
