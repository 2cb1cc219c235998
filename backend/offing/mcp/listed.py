"""A tool as its server lists it, and the hash that a list is known by.

The only home of what counts as a change of a tool. Pure; what stands in a listing is other people's text.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Listed:
    """One tool."""

    name: str
    description: str
    schema: dict[str, Any]
    """JSON schema of its arguments, as it came."""


def digest(tools: Sequence[Listed]) -> str:
    """SHA-256 in hex over names, descriptions and schemas; in whatever order they are listed."""
    return _hashed([asdict(tool) for tool in sorted(tools, key=lambda tool: tool.name)])


def changed(before: Sequence[Listed], now: Sequence[Listed]) -> tuple[str, ...]:
    """Names of tools that were added, taken away or altered, in order."""
    old, new = ({tool.name: _hashed(asdict(tool)) for tool in tools} for tools in (before, now))
    return tuple(sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name)))


def _hashed(value: Any) -> str:
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
