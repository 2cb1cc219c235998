"""What a policy folder is to the engine: its name, its kind, and whether it can be used at all.

Hashes are `offing.models.policy_folder`'s, and are passed on from here. Knows no torch.
"""

import re
from pathlib import Path

from offing.core.errors import InvalidInput
from offing.models.policy_folder import (
    ADAPTER,
    Hashes,
    adapter_sha256,
    changed_files,
    is_adapter,
    read_json,
    template_sha256,
    tokenizer_sha256,
    weights_sha256,
)

__all__ = [
    "ADAPTER",
    "BASE_NOTE",
    "Hashes",
    "adapter_sha256",
    "checked_folder",
    "is_adapter",
    "read_json",
    "refuse_changed",
    "template_sha256",
    "tokenizer_sha256",
    "version_name",
    "weights_sha256",
]

VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*@[A-Za-z0-9][A-Za-z0-9._-]*")
"""NAME@VERSION."""

BASE_NOTE = "base.json"
"""In an adapter's folder: `{"weights_sha256": ...}` of the weights that it was trained over."""


def version_name(name: str) -> str:
    """`name`, when it is NAME@VERSION. Raises InvalidInput."""
    if not VERSION.fullmatch(name):
        raise InvalidInput("name", f"{name!r} is not NAME@VERSION", "Use letters, digits, dots, dashes, such as p@3.")
    return name


def checked_folder(folder: Path, field: str) -> Path:
    """`folder`, when it can be a policy. Raises InvalidInput naming `field`."""
    if not folder.is_dir():
        raise InvalidInput(field, f"{folder} is not a folder", "Name a folder with config.json and safetensors files.")
    if not any(folder.glob("*.safetensors")):
        raise InvalidInput(field, f"{folder} holds no safetensors file", "Save the weights as safetensors.")
    return folder


def refuse_changed(folder: Path, name: str, field: str) -> None:
    """Raises InvalidInput for a folder whose files are not those that it was published with."""
    if other := changed_files(folder):
        raise InvalidInput(field, f"{name} is damaged: {other}, in {folder}", "Put it back, or train another version.")
