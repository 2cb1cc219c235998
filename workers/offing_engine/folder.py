"""What a policy folder is: its kind and the hashes under which its version is known.

The only home of these hashes; a trainer that publishes a version computes the same ones. Knows no torch.
"""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from offing.core.errors import InvalidInput

VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*@[A-Za-z0-9][A-Za-z0-9._-]*")
"""NAME@VERSION."""

ADAPTER = "adapter_config.json"
BASE_NOTE = "base.json"
"""In an adapter's folder: `{"weights_sha256": ...}` of the weights that it was trained over."""

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Hashes:
    """What a version is made of, as hexadecimal SHA-256."""

    weights: str
    tokenizer: str
    template: str
    """Of the chat template's text."""


def version_name(name: str) -> str:
    """`name`, when it is NAME@VERSION. Raises InvalidInput."""
    if not VERSION.fullmatch(name):
        raise InvalidInput("name", f"{name!r} is not NAME@VERSION", "Use letters, digits, dots, dashes, such as p@3.")
    return name


def is_adapter(folder: Path) -> bool:
    """Whether `folder` holds a LoRA adapter, not full weights."""
    return (folder / ADAPTER).is_file()


def checked_folder(folder: Path, field: str) -> Path:
    """`folder`, when it can be a policy. Raises InvalidInput naming `field`."""
    if not folder.is_dir():
        raise InvalidInput(field, f"{folder} is not a folder", "Name a folder with config.json and safetensors files.")
    if not any(folder.glob("*.safetensors")):
        raise InvalidInput(field, f"{folder} holds no safetensors file", "Save the weights as safetensors.")
    return folder


def weights_sha256(folder: Path) -> str:
    """Of the configuration and every safetensors file, names included, in order of name."""
    return _of_files([*folder.glob("*.safetensors"), *folder.glob("config.json"), *folder.glob(ADAPTER)])


def adapter_sha256(base: str, adapter: str) -> str:
    """Of an adapter's `weights_sha256` over that of its base: what answers is both together."""
    return hashlib.sha256(f"{base}+{adapter}".encode()).hexdigest()


def tokenizer_sha256(folder: Path) -> str:
    """Of tokenizer.json."""
    return _of_files([folder / "tokenizer.json"])


def template_sha256(template: str) -> str:
    return hashlib.sha256(template.encode()).hexdigest()


def read_json(path: Path) -> dict[str, Any]:
    """The object in `path`; empty when there is no such file."""
    return orjson.loads(path.read_bytes()) if path.is_file() else {}


def _of_files(paths: list[Path]) -> str:
    total = hashlib.sha256()
    for path in sorted(paths):
        total.update(path.name.encode() + b"\0" + _of_file(path))
    return total.hexdigest()


def _of_file(path: Path) -> bytes:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.digest()
