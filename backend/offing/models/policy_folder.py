"""Files of a policy folder: the hashes that identify a version, and whether the files are unchanged.

Training, the policy engine and promotion compute the same hashes. A file is read again only if it
has changed. torch is not imported.
"""

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson

from offing.core.errors import InvalidInput

ADAPTER_FILE = "adapter_config.json"

TOKENIZER_FILE = "tokenizer.json"

TEMPLATE_FILE = "chat_template.jinja"

SUMS_FILE = "SHA256SUMS"
"""File in a folder that training made, with the hash of each other file in the format of `sha256sum
-c`.
"""

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class PolicyHashes:
    """Hashes of a policy version, as hexadecimal SHA-256."""

    weights: str
    tokenizer: str
    """Empty if the folder has no such file."""
    template: str
    """Hash of the chat template's text."""


def is_adapter(folder: Path) -> bool:
    """Return whether `folder` holds a LoRA adapter and not full weights."""
    return (folder / ADAPTER_FILE).is_file()


def hash_policy(folder: Path, base: PolicyHashes | None) -> PolicyHashes:
    """Return the hashes of a policy folder, as the engine computes them.

    `base` is the folder that an adapter was trained over. Its tokenizer is used if the adapter has
    none.
    """
    own = hash_weights(folder)
    weights = own if base is None else hash_adapter(base.weights, own)
    if not (folder / TOKENIZER_FILE).is_file():
        return PolicyHashes(weights, base.tokenizer if base else "", base.template if base else "")
    return PolicyHashes(weights, hash_tokenizer(folder), hash_template(_read_template(folder)))


def describe_damage(folder: Path, registered: PolicyHashes, base: PolicyHashes | None) -> str:
    """Describe which files differ from the registered hashes. Empty if none does.

    Hashes that were not registered are not checked. `base` is as in `hash_policy`.
    """
    if other := describe_changed_files(folder):
        return other
    now = hash_policy(folder, base)
    if now.weights != registered.weights:
        return _render_damage(" or ".join(path.name for path in _list_weights_files(folder)) or "the weights file")
    if registered.tokenizer and now.tokenizer != registered.tokenizer:
        return _render_damage(TOKENIZER_FILE)
    if registered.template and now.template != registered.template:
        return _render_damage(TEMPLATE_FILE if (folder / TEMPLATE_FILE).is_file() else "tokenizer_config.json")
    return ""


def describe_changed_files(folder: Path) -> str:
    """Describe which files differ from the folder's list of hashes.

    Empty if none does or there is no list.
    """
    other = [name for name, sha256 in _read_sums(folder).items() if _hash_file_hex(folder / name) != sha256]
    return _render_damage(", ".join(other)) if other else ""


def write_sums(folder: Path) -> None:
    """Write the folder's list of hashes. Files that are added later are not on it."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != SUMS_FILE)
    (folder / SUMS_FILE).write_text(
        "".join(f"{_hash_file_hex(path)}  {path.name}\n" for path in files), encoding="utf-8"
    )


def hash_weights(folder: Path) -> str:
    """Hash the configuration and every safetensors file with their names, in order of name."""
    return _hash_files(_list_weights_files(folder))


def hash_adapter(base: str, adapter: str) -> str:
    """Hash an adapter together with its base, because both compute the answer."""
    return hashlib.sha256(f"{base}+{adapter}".encode()).hexdigest()


def hash_tokenizer(folder: Path) -> str:
    """Hash tokenizer.json."""
    return _hash_files([folder / TOKENIZER_FILE])


def hash_template(template: str) -> str:
    return hashlib.sha256(template.encode()).hexdigest()


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in `path`. Empty if there is no such file."""
    return orjson.loads(path.read_bytes()) if path.is_file() else {}


def _read_template(folder: Path) -> str:
    """Return the text of the chat template. Empty if there is none."""
    file = folder / TEMPLATE_FILE
    if file.is_file():
        return file.read_text(encoding="utf-8")
    template = read_json(folder / "tokenizer_config.json").get("chat_template")
    return template if isinstance(template, str) else ""


def _list_weights_files(folder: Path) -> list[Path]:
    return sorted([*folder.glob("*.safetensors"), *folder.glob("config.json"), *folder.glob(ADAPTER_FILE)])


def _read_sums(folder: Path) -> Mapping[str, str]:
    file = folder / SUMS_FILE
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return {name: sha256 for sha256, _, name in (line.partition("  ") for line in lines)}


def _hash_file_hex(path: Path) -> str:
    """Return the hexadecimal hash of a file. Empty if there is no such file."""
    return _hash_file(path).hex() if path.is_file() else ""


def _render_damage(files: str) -> str:
    return f"{files} is missing or differs from the registered file"


def _hash_files(paths: list[Path]) -> str:
    total = hashlib.sha256()
    for path in sorted(paths):
        total.update(path.name.encode() + b"\0" + _hash_file(path))
    return total.hexdigest()


def _hash_file(path: Path) -> bytes:
    status = os.stat(path)
    return _hash_content(path, status.st_ino, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=4096)
def _hash_content(path: Path, _inode: int, _changed: int, _size: int) -> bytes:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.digest()


__all__ = [
    "ADAPTER_FILE",
    "BASE_FILE",
    "PolicyHashes",
    "check_folder",
    "check_unchanged",
    "hash_adapter",
    "hash_template",
    "hash_tokenizer",
    "hash_weights",
    "is_adapter",
    "parse_version_name",
    "read_json",
]

VERSION_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*@[A-Za-z0-9][A-Za-z0-9._-]*")
"""NAME@VERSION."""

BASE_FILE = "base.json"
"""In an adapter's folder: `{"weights_sha256": ...}` of the weights that it was trained over."""


def parse_version_name(name: str) -> str:
    """Return `name` if it has the form NAME@VERSION. Raises InvalidInput otherwise."""
    if not VERSION_PATTERN.fullmatch(name):
        raise InvalidInput(
            "name",
            f"{name!r} does not have the form NAME@VERSION",
            "Use letters, digits, dots and dashes, such as p@3.",
        )
    return name


def check_folder(folder: Path, field: str) -> Path:
    """Return `folder` if it can be a policy. Raises InvalidInput that names `field` otherwise."""
    if not folder.is_dir():
        raise InvalidInput(field, f"{folder} is not a folder", "Use a folder with config.json and safetensors files.")
    if not any(folder.glob("*.safetensors")):
        raise InvalidInput(field, f"{folder} contains no safetensors file", "Save the weights as safetensors.")
    return folder


def check_unchanged(folder: Path, name: str, field: str) -> None:
    """Raise InvalidInput if a file of the folder is missing or has changed since it was published."""
    if other := describe_changed_files(folder):
        raise InvalidInput(
            field, f"{name} is damaged: {other}, in {folder}", "Restore the file, or train another version."
        )
