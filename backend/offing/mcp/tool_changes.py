"""Differences between the pinned and the current tools of an MCP server, field by field, for people."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

from offing.core.step import shorten_line
from offing.core.untrusted_block import sanitize_text
from offing.mcp.tool_listing import McpToolListing

MAX_FIELD_CHANGES = 50
"""Maximum number of changed fields of a tool that are listed."""
MAX_VALUE_CHARS = 600
"""Maximum code points of a value."""


class ToolChangeKind(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A changed field of a tool. Its values are third-party text."""

    field: str
    """`description`, or the path in the schema, such as `schema.properties.limit.maximum`."""
    before: str | None
    """`None` means that the field did not exist."""
    after: str | None
    """`None` means that the field does not exist any more."""


@dataclass(frozen=True, slots=True)
class ToolChange:
    """A tool that was added, removed or changed."""

    tool: str
    kind: ToolChangeKind
    fields: tuple[FieldChange, ...]
    omitted_fields: int = 0
    """Number of further changed fields that are not listed."""


def list_tool_changes(before: Sequence[McpToolListing], after: Sequence[McpToolListing]) -> tuple[ToolChange, ...]:
    """Return the changes of a tool list, by name. The order of the lists does not matter."""
    old, new = ({tool.name: _flatten_tool(tool) for tool in tools} for tools in (before, after))
    changes = (_compare(name, old.get(name), new.get(name)) for name in sorted(old.keys() | new.keys()))
    return tuple(change for change in changes if change is not None)


def clean_value(text: str) -> str:
    """Return third-party text as one line without invisible characters, shortened."""
    return shorten_line(sanitize_text(text), MAX_VALUE_CHARS)


def _compare(name: str, old: Mapping[str, str] | None, new: Mapping[str, str] | None) -> ToolChange | None:
    if old == new:
        return None
    kind = ToolChangeKind.CHANGED if old and new else ToolChangeKind.ADDED if new else ToolChangeKind.REMOVED
    before, after = old or {}, new or {}
    fields = [field for field in dict.fromkeys((*before, *after)) if before.get(field) != after.get(field)]
    listed = tuple(
        FieldChange(clean_value(field), _clean(before.get(field)), _clean(after.get(field)))
        for field in fields[:MAX_FIELD_CHANGES]
    )
    return ToolChange(clean_value(name), kind, listed, len(fields) - len(listed))


def _clean(text: str | None) -> str | None:
    return None if text is None else clean_value(text)


def _flatten_tool(tool: McpToolListing) -> dict[str, str]:
    """Return the description and each leaf of the schema by its path."""
    return {"description": tool.description, **dict(_flatten("schema", tool.schema))}


def _flatten(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key, inner in cast(dict[str, Any], value).items():
            yield from _flatten(f"{path}.{key}", inner)
    else:
        yield path, json.dumps(value, ensure_ascii=False, sort_keys=True)
