"""Read and write the tool lists that the operator has approved, in a file next to the MCP configuration file.

A tool list that differs from the pinned one makes the server unusable for runs.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from offing.core.errors import InvalidInput
from offing.mcp.servers import CONFIG_VARIABLE, read_trusted_file
from offing.mcp.tool_listing import McpToolListing, hash_tools


@dataclass(frozen=True, slots=True)
class PinnedTools:
    """An approved tool list and the address it came from."""

    url: str
    tools: tuple[McpToolListing, ...]
    sha256: str
    """Hash of the tools."""


def pin_tools(url: str, tools: Sequence[McpToolListing]) -> PinnedTools:
    return PinnedTools(url, tuple(sorted(tools, key=lambda tool: tool.name)), hash_tools(tools))


def pins_path(servers: Path) -> Path:
    """Return the path of the pins next to the configuration file: `mcp.toml` has `mcp.pins.json`."""
    return servers.with_suffix(".pins.json")


def read_pins(path: Path) -> dict[str, PinnedTools]:
    """Read the pins by server.

    Empty if nothing is pinned. Raises InvalidInput for a file that was modified by hand.
    """
    if not path.exists():
        return {}
    try:
        stored: dict[str, Any] = orjson.loads(read_trusted_file(path))
        pins = {name: _pin_from_json(one) for name, one in stored["servers"].items()}
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError, ValueError):
        raise _damaged_file_error(path) from None
    if any(hash_tools(pin.tools) != pin.sha256 for pin in pins.values()):
        raise _damaged_file_error(path)
    return pins


def write_pins(path: Path, pins: Mapping[str, PinnedTools]) -> None:
    """Write all pins atomically: a reader sees the old file or the new one."""
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


def _pin_from_json(stored: dict[str, Any]) -> PinnedTools:
    tools = tuple(
        McpToolListing(str(one["name"]), str(one["description"]), dict(one["schema"])) for one in stored["tools"]
    )
    return PinnedTools(str(stored["url"]), tools, str(stored["sha256"]))


def _damaged_file_error(path: Path) -> InvalidInput:
    remedy = "Delete the file, then review and pin the tools of each server again."
    return InvalidInput(CONFIG_VARIABLE, f"{path} was not written by `offing mcp pin` or has been changed", remedy)
