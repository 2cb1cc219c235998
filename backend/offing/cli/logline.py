"""A structured log line as a person reads it at a terminal: what happened, then the fields, then any traceback."""

from typing import Any

import orjson

HIDDEN = frozenset({"event", "level", "logger", "timestamp", "exception"})


def log_line(line: str) -> str:
    """`line` if it is not one of ours."""
    try:
        entry: Any = orjson.loads(line)
    except orjson.JSONDecodeError:
        return line
    if not isinstance(entry, dict) or "event" not in entry:
        return line
    known: dict[str, Any] = entry  # pyright: ignore[reportUnknownVariableType]
    fields = " ".join(f"{name}={value}" for name, value in known.items() if name not in HIDDEN)
    level = known.get("level", "info")
    said = f"{known['event']}  {fields}".rstrip()
    return "\n".join(part for part in (said if level == "info" else f"{level}: {said}", known.get("exception")) if part)
