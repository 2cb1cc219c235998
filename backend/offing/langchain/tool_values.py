"""What a tool of a graph gave, as JSON and back: messages, commands, sends, documents and plain data, nothing else.

The only home of that form. It is typed and closed: a stored value names one of the kinds that are written here, never a
class, so that reading it builds nothing else. What has no form is NotKept, and is given anew by its tool. What a result
repeats of the state that its tool was given is written as a place there, since hand-overs repeat all of it. Pure.
"""

import base64
import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from hashlib import blake2b
from typing import Any, cast
from uuid import UUID

from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.types import Command, Overwrite, Send

KIND = "$"
"""The key that says which kind of value an object is. A mapping that has such a key itself is written as pairs."""

MESSAGES: Mapping[str, type[BaseMessage]] = {
    "ai": AIMessage,
    "chat": ChatMessage,
    "human": HumanMessage,
    "remove": RemoveMessage,
    "system": SystemMessage,
    "tool": ToolMessage,
}
CLASSES: Mapping[Any, str] = {kind: name for name, kind in MESSAGES.items()}

TEXTS: Mapping[str, Callable[[str], Any]] = {
    "bytes": base64.b64decode,
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
    "decimal": Decimal,
    "float": float,
    "uuid": UUID,
}
"""Kinds that are one text, and what reads it."""

SEQUENCES: Mapping[str, Callable[[list[Any]], Any]] = {"tuple": tuple, "set": set, "frozenset": frozenset}

State = Mapping[str, Any]
"""What the tool was given of its graph's state. Empty: nothing."""


class NotKept(ValueError):
    """A value has no form here."""


def encoded(value: Any, state: State | None = None) -> Any:
    """The value as JSON. Raises NotKept."""
    return _Encoder(state or {}).encode(value)


def decoded(stored: Any, state: State | None = None) -> Any:
    """The value that was encoded. Raises NotKept for what was not, and where the state is not what it was."""
    return _Decoder(state or {}).decode(stored)


class _Encoder:
    def __init__(self, state: State) -> None:
        self._places: dict[int, tuple[str, int | None]] = {
            id(value): (key, None) for key, value in state.items() if value
        }
        for key, value in state.items():
            if isinstance(value, list):
                self._places |= {id(m): (key, nth) for nth, m in enumerate(cast(list[Any], value)) if _is_message(m)}

    def encode(self, value: Any) -> Any:
        if value is None or (isinstance(value, bool | int | str) and type(value) in (bool, int, str)):
            return value
        if id(value) in self._places and isinstance(value, list | dict | BaseMessage):
            return self._same(cast(Any, value))
        return self._anew(value)

    def _same(self, value: Any) -> Any:
        """Where the state has this very value."""
        key, at = self._places[id(value)]
        return {KIND: "same", "key": key, "at": at, "digest": _digest(_Encoder({}).encode(value))}

    def _anew(self, value: Any) -> Any:
        match value:
            case float():
                return value if math.isfinite(value) else {KIND: "float", "text": repr(value)}
            case list():
                return self._list(cast(list[Any], value))
            case dict():
                return self._mapping(cast(dict[Any, Any], value))
            case Command() | Send() | Overwrite() | Document() | BaseMessage():
                return self._known(cast(Any, value))
            case _:
                return _as_text(value) or self._sequence(value)

    def _list(self, value: list[Any]) -> list[Any]:
        """Its items; what follows one another as it does in a list of the state is one item together."""
        items: list[Any] = []
        for run in _runs([self._places.get(id(one), ("", None)) for one in value]):
            part = value[run.start : run.stop]
            key, at = self._places.get(id(part[0]), ("", None))
            if at is None or not _is_message(part[0]):
                items += [self.encode(one) for one in part]
                continue
            digest = _digest([_Encoder({}).encode(one) for one in part])
            items.append({KIND: "part", "key": key, "at": at, "count": len(part), "digest": digest})
        return items

    def _mapping(self, value: dict[Any, Any]) -> Any:
        if all(type(key) is str for key in value) and KIND not in value:
            return {key: self.encode(one) for key, one in value.items()}
        return {KIND: "map", "items": [[self.encode(key), self.encode(one)] for key, one in value.items()]}

    def _sequence(self, value: Any) -> Any:
        name = type(value).__name__
        if type(value) not in (tuple, set, frozenset):
            raise NotKept(f"a value of type {name} is not kept")
        items = [self.encode(one) for one in value]
        return {KIND: name, "items": items if name == "tuple" else sorted(items, key=_text)}

    def _known(self, value: Any) -> Any:
        match value:
            case Command() if value.resume is None:
                said = {"graph": value.graph, "update": value.update, "goto": cast(Any, value).goto}
                return self._fields("command", **{name: one for name, one in said.items() if one not in (None, ())})
            case Send():
                return self._fields("send", node=value.node, arg=value.arg)
            case Overwrite():
                return self._fields("overwrite", value=value.value)
            case Document():
                return self._fields("document", **value.model_dump(exclude={"type"}))
            case BaseMessage() if type(value) in CLASSES:
                return self._fields("message", of=CLASSES[type(value)], fields=_set(value))
            case _:
                raise NotKept(f"a value of type {type(value).__name__} is not kept")

    def _fields(self, kind: str, **fields: Any) -> Any:
        return {KIND: kind, **{name: self.encode(one) for name, one in fields.items()}}


class _Decoder:
    def __init__(self, state: State) -> None:
        self._state = state

    def decode(self, stored: Any) -> Any:
        if isinstance(stored, list):
            return [one for each in cast(list[Any], stored) for one in self._items(each)]
        if not isinstance(stored, dict):
            return stored
        fields = cast(dict[str, Any], stored)
        if KIND not in fields:
            return {key: self.decode(one) for key, one in fields.items()}
        try:
            return self._kind(fields)
        except NotKept:
            raise
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise NotKept(f"a stored value cannot be read: {error}") from error

    def _items(self, stored: Any) -> list[Any]:
        """What one item of a stored list stands for."""
        if not isinstance(stored, dict) or cast(dict[str, Any], stored).get(KIND) != "part":
            return [self.decode(stored)]
        fields = cast(dict[str, Any], stored)
        value: Any = self._state.get(fields["key"])
        items = cast(list[Any], value) if isinstance(value, list) else []
        part = items[fields["at"] : fields["at"] + fields["count"]]
        return cast(list[Any], _unchanged(part, fields["digest"], fields["key"]))

    def _kind(self, fields: dict[str, Any]) -> Any:
        kind, rest = fields[KIND], {name: one for name, one in fields.items() if name != KIND}
        if kind in TEXTS:
            return TEXTS[kind](rest["text"])
        if kind == "same":
            return self._same(rest["key"], rest["at"], rest["digest"])
        rest = {name: self.decode(one) for name, one in rest.items()}
        if kind in SEQUENCES:
            return SEQUENCES[kind](rest["items"])
        match kind:
            case "map":
                return dict(rest["items"])
            case "command":
                return Command(**rest)
            case "send":
                return Send(**rest)
            case "overwrite":
                return Overwrite(**rest)
            case "document":
                return Document(**rest)
            case "message":
                return MESSAGES[rest["of"]](**rest["fields"])
            case _:
                raise NotKept(f"there is no kind {kind!r}")

    def _same(self, key: str, at: int | None, digest: str) -> Any:
        """What the state has in that place, if it is what it was."""
        value: Any = self._state.get(key)
        if at is not None:
            items = cast(list[Any], value) if isinstance(value, list) else []
            value = items[at] if at < len(items) else None
        return _unchanged(value, digest, key)


def _unchanged(value: Any, digest: str, key: str) -> Any:
    """The value of the state, if it is what it was. Raises NotKept."""
    if value is None or _digest(_Encoder({}).encode(value)) != digest:
        raise NotKept(f"the state's {key} is not what it was")
    return value


def _runs(places: Sequence[tuple[str, int | None]]) -> list[range]:
    """The stretches of a list of places in which each is the one after the one before."""
    found: list[range] = []
    for nth, (key, at) in enumerate(places):
        follows = nth > 0 and at is not None and places[nth - 1] == (key, at - 1)
        if follows:
            found[-1] = range(found[-1].start, nth + 1)
        else:
            found.append(range(nth, nth + 1))
    return found


def _as_text(value: Any) -> Any:
    match value:
        case bytes():
            return {KIND: "bytes", "text": base64.b64encode(value).decode()}
        case datetime():
            return {KIND: "datetime", "text": value.isoformat()}
        case date():
            return {KIND: "date", "text": value.isoformat()}
        case Decimal() | UUID():
            return {KIND: type(value).__name__.lower(), "text": str(value)}
        case _:
            return None


def _set(message: BaseMessage) -> dict[str, Any]:
    """Fields that say something; what is as it is by itself is left out."""
    fields = {name: field for name, field in type(message).model_fields.items() if name != "type"}
    said = {name: getattr(message, name) for name in fields}
    return {name: one for name, one in said.items() if one != fields[name].get_default(call_default_factory=True)}


def _is_message(value: object) -> bool:
    return isinstance(value, BaseMessage)


def _text(stored: Any) -> str:
    return json.dumps(stored, sort_keys=True, ensure_ascii=False)


def _digest(stored: Any) -> str:
    """Without the ids of messages, which LangGraph draws at random."""
    return blake2b(_text(_without_ids(stored)).encode(), digest_size=8).hexdigest()


def _without_ids(stored: Any) -> Any:
    if isinstance(stored, list):
        return [_without_ids(one) for one in cast(list[Any], stored)]
    if not isinstance(stored, dict):
        return stored
    fields = cast(dict[str, Any], stored)
    skipped = "id" if fields.get(KIND) == "message" else None
    return {
        name: _without_ids({k: v for k, v in one.items() if k != "id"} if skipped and name == "fields" else one)
        for name, one in fields.items()
    }
