"""The tool lists that the operator has looked at, in a file beside the one that names the servers.

The only home of that file's form. A list that is not the pinned one is another server's as far as runs are concerned.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from offing.core.errors import InvalidInput
from offing.mcp.listed import Listed, digest
from offing.mcp.servers import VARIABLE, own_text


@dataclass(frozen=True, slots=True)
class Pin:
    """What was looked at, and where it came from."""

    url: str
    tools: tuple[Listed, ...]
    sha256: str
    """Of the tools."""


def pinned(url: str, tools: Sequence[Listed]) -> Pin:
    return Pin(url, tuple(sorted(tools, key=lambda tool: tool.name)), digest(tools))


def pins_path(servers: Path) -> Path:
    """Beside the operator's file: `mcp.toml` has `mcp.pins.json`."""
    return servers.with_suffix(".pins.json")


def read_pins(path: Path) -> dict[str, Pin]:
    """Pins by server. Empty: nothing was pinned. Raises InvalidInput where the file is not what was written."""
    if not path.exists():
        return {}
    try:
        stored: dict[str, Any] = orjson.loads(own_text(path))
        pins = {name: _pin(one) for name, one in stored["servers"].items()}
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError, ValueError):
        raise _damaged(path) from None
    if any(digest(pin.tools) != pin.sha256 for pin in pins.values()):
        raise _damaged(path)
    return pins


def write_pins(path: Path, pins: Mapping[str, Pin]) -> None:
    """All of them, in one step: a reader sees the old file or the new one."""
    body = orjson.dumps({"servers": {name: asdict(pins[name]) for name in sorted(pins)}}, option=orjson.OPT_INDENT_2)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(body + b"\n")
        os.replace(fresh, path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _pin(stored: dict[str, Any]) -> Pin:
    tools = tuple(Listed(str(one["name"]), str(one["description"]), dict(one["schema"])) for one in stored["tools"])
    return Pin(str(stored["url"]), tools, str(stored["sha256"]))


def _damaged(path: Path) -> InvalidInput:
    remedy = "Take the file away, look at each server's tools and pin them again."
    return InvalidInput(VARIABLE, f"{path} is not what `offing mcp pin` wrote", remedy)
