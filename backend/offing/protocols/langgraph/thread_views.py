"""What of a thread a client asks for: chosen fields, and values at paths such as `values.messages[-1].content`."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import orjson

from offing.core.errors import InvalidInput
from offing.kernel.langgraph_json import dump_json

MAX_PATHS = 10
"""Maximum number of paths of a request."""

STATE_FIELDS = frozenset({"values", "interrupts"})
"""Fields of a thread that are read from its state."""

_PART = re.compile(r"([^.\[\]]+)|\[(-?\d{1,6})\]")

_PATH = re.compile(r"[^.\[\]]+(\[-?\d{1,6}\]|\.[^.\[\]]+)*")


def needs_state(select: Sequence[str] | None, extract: Mapping[str, str]) -> bool:
    """Return whether the state of each thread must be read."""
    roots = {path.partition(".")[0].partition("[")[0] for path in extract.values()}
    return select is None or bool(STATE_FIELDS & (set(select) | roots))


def check_paths(extract: Mapping[str, str]) -> None:
    """Raise InvalidInput for paths that cannot be followed."""
    if len(extract) > MAX_PATHS:
        raise InvalidInput("extract", f"it has more than {MAX_PATHS} paths", "Send fewer.")
    for path in extract.values():
        if not _PATH.fullmatch(path):
            raise InvalidInput(
                "extract", f"{path[:100]!r} is not a path", "Send one such as values.messages[-1].content."
            )


def view_thread(
    thread: Mapping[str, Any], select: Sequence[str] | None, extract: Mapping[str, str]
) -> Mapping[str, Any]:
    """Return the chosen fields of a thread, with the values at the paths under `extracted`."""
    chosen = thread if select is None else {name: thread[name] for name in select if name in thread}
    if not extract:
        return chosen
    plain = orjson.loads(dump_json(thread))
    return {**chosen, "extracted": {name: follow_path(plain, path) for name, path in extract.items()}}


def follow_path(document: Any, path: str) -> Any:
    """Return the value at a path. `None` also means that there is none."""
    for name, index in _PART.findall(path):
        if index:
            items: list[Any] = cast(list[Any], document) if isinstance(document, list) else []
            document = items[int(index)] if -len(items) <= int(index) < len(items) else None
        else:
            document = cast(Mapping[str, Any], document).get(name) if isinstance(document, Mapping) else None
    return document


def contains(document: Any, searched: Any) -> bool:
    """Return whether a JSON document contains another one, as Postgres's `@>` decides it."""
    if isinstance(searched, Mapping):
        if not isinstance(document, Mapping):
            return False
        held = cast(Mapping[str, Any], document)
        return all(
            name in held and contains(held[name], value) for name, value in cast(Mapping[str, Any], searched).items()
        )
    if isinstance(searched, list):
        several = cast(list[Any], document) if isinstance(document, list) else []
        return isinstance(document, list) and all(
            any(contains(one, element) for one in several) for element in cast(list[Any], searched)
        )
    return (type(document) is type(searched) and document == searched) or _are_equal_numbers(document, searched)


def _are_equal_numbers(left: Any, right: Any) -> bool:
    return all(isinstance(one, int | float) and not isinstance(one, bool) for one in (left, right)) and left == right
