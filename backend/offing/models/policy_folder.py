"""The files of a policy folder: the hashes under which its version is known, and whether they are still those.

The only home of these hashes; who publishes a version, serves it or makes it active computes the same ones. A file is
read again only when it has changed. Knows no torch and no table.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson

ADAPTER = "adapter_config.json"

TOKENIZER = "tokenizer.json"

TEMPLATE = "chat_template.jinja"

SUMS = "SHA256SUMS"
"""In a folder that training made: each of its files with its hash, as `sha256sum -c` reads them."""

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Hashes:
    """What a version is made of, as hexadecimal SHA-256."""

    weights: str
    tokenizer: str
    """Empty: there is none."""
    template: str
    """Of the chat template's text."""


def is_adapter(folder: Path) -> bool:
    """Whether `folder` holds a LoRA adapter, not full weights."""
    return (folder / ADAPTER).is_file()


def hashes_in(folder: Path, base: Hashes | None) -> Hashes:
    """As the engine computes them. `base`: what an adapter stands on; its tokenizer answers where there is no other."""
    own = weights_sha256(folder)
    weights = own if base is None else adapter_sha256(base.weights, own)
    if not (folder / TOKENIZER).is_file():
        return Hashes(weights, base.tokenizer if base else "", base.template if base else "")
    return Hashes(weights, tokenizer_sha256(folder), template_sha256(_template(folder)))


def damage(folder: Path, registered: Hashes, base: Hashes | None) -> str:
    """Which files are not what was registered, in words. Empty: all are. A hash that was not registered is not asked
    for. `base`: see `hashes_in`."""
    if other := changed_files(folder):
        return other
    now = hashes_in(folder, base)
    if now.weights != registered.weights:
        return _told(" or ".join(path.name for path in _weights_files(folder)) or "every file of its weights")
    if registered.tokenizer and now.tokenizer != registered.tokenizer:
        return _told(TOKENIZER)
    if registered.template and now.template != registered.template:
        return _told(TEMPLATE if (folder / TEMPLATE).is_file() else "tokenizer_config.json")
    return ""


def changed_files(folder: Path) -> str:
    """Which files are not those that the folder's own list names, in words. Empty: all are, or there is no list."""
    other = [name for name, sha256 in _noted(folder).items() if _sum_of(folder / name) != sha256]
    return _told(", ".join(other)) if other else ""


def note_sums(folder: Path) -> None:
    """Write the folder's list of its files. Its last file: what is added later is not on it."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != SUMS)
    (folder / SUMS).write_text("".join(f"{_sum_of(path)}  {path.name}\n" for path in files), encoding="utf-8")


def weights_sha256(folder: Path) -> str:
    """Of the configuration and every safetensors file, names included, in order of name."""
    return _of_files(_weights_files(folder))


def adapter_sha256(base: str, adapter: str) -> str:
    """Of an adapter's `weights_sha256` over that of its base: what answers is both together."""
    return hashlib.sha256(f"{base}+{adapter}".encode()).hexdigest()


def tokenizer_sha256(folder: Path) -> str:
    """Of tokenizer.json."""
    return _of_files([folder / TOKENIZER])


def template_sha256(template: str) -> str:
    return hashlib.sha256(template.encode()).hexdigest()


def read_json(path: Path) -> dict[str, Any]:
    """The object in `path`; empty when there is no such file."""
    return orjson.loads(path.read_bytes()) if path.is_file() else {}


def _template(folder: Path) -> str:
    """The chat template's text. Empty: there is none."""
    file = folder / TEMPLATE
    if file.is_file():
        return file.read_text(encoding="utf-8")
    found = read_json(folder / "tokenizer_config.json").get("chat_template")
    return found if isinstance(found, str) else ""


def _weights_files(folder: Path) -> list[Path]:
    return sorted([*folder.glob("*.safetensors"), *folder.glob("config.json"), *folder.glob(ADAPTER)])


def _noted(folder: Path) -> Mapping[str, str]:
    file = folder / SUMS
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return {name: sha256 for sha256, _, name in (line.partition("  ") for line in lines)}


def _sum_of(path: Path) -> str:
    """Empty: there is no such file."""
    return _of_file(path).hex() if path.is_file() else ""


def _told(files: str) -> str:
    return f"{files} is missing, or is not what was registered"


def _of_files(paths: list[Path]) -> str:
    total = hashlib.sha256()
    for path in sorted(paths):
        total.update(path.name.encode() + b"\0" + _of_file(path))
    return total.hexdigest()


def _of_file(path: Path) -> bytes:
    found = os.stat(path)
    return _read(path, found.st_ino, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=4096)
def _read(path: Path, _inode: int, _changed: int, _size: int) -> bytes:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.digest()
