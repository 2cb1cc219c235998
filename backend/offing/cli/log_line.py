"""Render structured log lines for a terminal: the event, then its fields, then any traceback."""

from typing import Any

import orjson

HIDDEN_KEYS = frozenset({"event", "level", "logger", "timestamp", "exception"})


def render_log_line(line: str) -> str:
    """Return a structured log line in readable form. Other lines are returned unchanged."""
    try:
        entry: Any = orjson.loads(line)
    except orjson.JSONDecodeError:
        return line
    if not isinstance(entry, dict) or "event" not in entry:
        return line
    fields_by_name: dict[str, Any] = entry  # pyright: ignore[reportUnknownVariableType]
    fields = " ".join(f"{name}={value}" for name, value in fields_by_name.items() if name not in HIDDEN_KEYS)
    level = fields_by_name.get("level", "info")
    text = f"{fields_by_name['event']}  {fields}".rstrip()
    return "\n".join(
        part for part in (text if level == "info" else f"{level}: {text}", fields_by_name.get("exception")) if part
    )
