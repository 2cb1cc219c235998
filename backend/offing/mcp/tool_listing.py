"""Tool listings of MCP servers and their hash.

Names, descriptions and schemas are third-party text.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class McpToolListing:
    """One tool as its server lists it."""

    name: str
    description: str
    schema: dict[str, Any]
    """JSON schema of the arguments, unchanged."""


def hash_tools(tools: Sequence[McpToolListing]) -> str:
    """Return the SHA-256 in hex over names, descriptions and schemas. The order of the list does not matter."""
    return _hash_json([asdict(tool) for tool in sorted(tools, key=lambda tool: tool.name)])


def find_changed_tools(previous: Sequence[McpToolListing], current: Sequence[McpToolListing]) -> tuple[str, ...]:
    """Return the names of tools that were added, removed or changed, in order."""
    old, new = ({tool.name: _hash_json(asdict(tool)) for tool in tools} for tools in (previous, current))
    return tuple(sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name)))


def _hash_json(value: Any) -> str:
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
