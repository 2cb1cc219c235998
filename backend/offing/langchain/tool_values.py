"""Conversion of a tool's result to JSON and back: messages, commands, sends, documents and plain data.

The format is typed and closed. A stored value names one of the kinds below and never a class, so
that decoding cannot construct anything else. Other values raise UnsupportedValueError, and their
tool runs again. Parts of a result that repeat the state passed to the tool are stored as references
to it, because handoffs repeat the whole state. The functions are pure.
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

KIND_KEY = "$"
"""Key that holds the kind of an object. A mapping that itself has this key is stored as pairs."""

MESSAGE_CLASSES: Mapping[str, type[BaseMessage]] = {
    "ai": AIMessage,
    "chat": ChatMessage,
    "human": HumanMessage,
    "remove": RemoveMessage,
    "system": SystemMessage,
    "tool": ToolMessage,
}
MESSAGE_KINDS: Mapping[Any, str] = {kind: name for name, kind in MESSAGE_CLASSES.items()}

TEXT_KINDS: Mapping[str, Callable[[str], Any]] = {
    "bytes": base64.b64decode,
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
    "decimal": Decimal,
    "float": float,
    "uuid": UUID,
}
"""Kinds that are stored as one text, with their parsers."""

SEQUENCE_KINDS: Mapping[str, Callable[[list[Any]], Any]] = {"tuple": tuple, "set": set, "frozenset": frozenset}

State = Mapping[str, Any]
"""The graph's state that the tool received. Empty means none."""


class UnsupportedValueError(ValueError):
    """A value cannot be stored in this format."""


def encode_value(value: Any, state: State | None = None) -> Any:
    """Encode a value as JSON. Raises UnsupportedValueError."""
    return _ValueEncoder(state or {}).encode(value)


def decode_value(stored: Any, state: State | None = None) -> Any:
    """Decode a value. Raises UnsupportedValueError if it was not encoded here or if the state has changed."""
    return _ValueDecoder(state or {}).decode(stored)


class _ValueEncoder:
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
            return self._encode_reference(cast(Any, value))
        return self._encode_new(value)

    def _encode_reference(self, value: Any) -> Any:
        """Encode a reference to the same value in the state."""
        key, at = self._places[id(value)]
        return {KIND_KEY: "same", "key": key, "at": at, "digest": _hash_value(_ValueEncoder({}).encode(value))}

    def _encode_new(self, value: Any) -> Any:
        match value:
            case float():
                return value if math.isfinite(value) else {KIND_KEY: "float", "text": repr(value)}
            case list():
                return self._encode_list(cast(list[Any], value))
            case dict():
                return self._encode_mapping(cast(dict[Any, Any], value))
            case Command() | Send() | Overwrite() | Document() | BaseMessage():
                return self._encode_framework_value(cast(Any, value))
            case _:
                return _encode_text_kind(value) or self._encode_sequence(value)

    def _encode_list(self, value: list[Any]) -> list[Any]:
        """Encode the items of a list. Consecutive items of a list in the state become one reference."""
        items: list[Any] = []
        for run in _find_consecutive([self._places.get(id(one), ("", None)) for one in value]):
            part = value[run.start : run.stop]
            key, at = self._places.get(id(part[0]), ("", None))
            if at is None or not _is_message(part[0]):
                items += [self.encode(one) for one in part]
                continue
            digest = _hash_value([_ValueEncoder({}).encode(one) for one in part])
            items.append({KIND_KEY: "part", "key": key, "at": at, "count": len(part), "digest": digest})
        return items

    def _encode_mapping(self, value: dict[Any, Any]) -> Any:
        if all(type(key) is str for key in value) and KIND_KEY not in value:
            return {key: self.encode(one) for key, one in value.items()}
        return {KIND_KEY: "map", "items": [[self.encode(key), self.encode(one)] for key, one in value.items()]}

    def _encode_sequence(self, value: Any) -> Any:
        name = type(value).__name__
        if type(value) not in (tuple, set, frozenset):
            raise UnsupportedValueError(f"a value of type {name} cannot be stored")
        items = [self.encode(one) for one in value]
        return {KIND_KEY: name, "items": items if name == "tuple" else sorted(items, key=_dump_json)}

    def _encode_framework_value(self, value: Any) -> Any:
        match value:
            case Command() if value.resume is None:
                fields = {"graph": value.graph, "update": value.update, "goto": cast(Any, value).goto}
                return self._encode_fields(
                    "command", **{name: one for name, one in fields.items() if one not in (None, ())}
                )
            case Send():
                return self._encode_fields("send", node=value.node, arg=value.arg)
            case Overwrite():
                return self._encode_fields("overwrite", value=value.value)
            case Document():
                return self._encode_fields("document", **value.model_dump(exclude={"type"}))
            case BaseMessage() if type(value) in MESSAGE_KINDS:
                return self._encode_fields("message", of=MESSAGE_KINDS[type(value)], fields=_list_set_fields(value))
            case _:
                raise UnsupportedValueError(f"a value of type {type(value).__name__} cannot be stored")

    def _encode_fields(self, kind: str, **fields: Any) -> Any:
        return {KIND_KEY: kind, **{name: self.encode(one) for name, one in fields.items()}}


class _ValueDecoder:
    def __init__(self, state: State) -> None:
        self._state = state

    def decode(self, stored: Any) -> Any:
        if isinstance(stored, list):
            return [one for each in cast(list[Any], stored) for one in self._decode_items(each)]
        if not isinstance(stored, dict):
            return stored
        fields = cast(dict[str, Any], stored)
        if KIND_KEY not in fields:
            return {key: self.decode(one) for key, one in fields.items()}
        try:
            return self._decode_kind(fields)
        except UnsupportedValueError:
            raise
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise UnsupportedValueError(f"a stored value cannot be read: {error}") from error

    def _decode_items(self, stored: Any) -> list[Any]:
        """Decode one item of a stored list, which may stand for several items."""
        if not isinstance(stored, dict) or cast(dict[str, Any], stored).get(KIND_KEY) != "part":
            return [self.decode(stored)]
        fields = cast(dict[str, Any], stored)
        value: Any = self._state.get(fields["key"])
        items = cast(list[Any], value) if isinstance(value, list) else []
        part = items[fields["at"] : fields["at"] + fields["count"]]
        return cast(list[Any], _require_unchanged(part, fields["digest"], fields["key"]))

    def _decode_kind(self, fields: dict[str, Any]) -> Any:
        kind, rest = fields[KIND_KEY], {name: one for name, one in fields.items() if name != KIND_KEY}
        if kind in TEXT_KINDS:
            return TEXT_KINDS[kind](rest["text"])
        if kind == "same":
            return self._decode_reference(rest["key"], rest["at"], rest["digest"])
        rest = {name: self.decode(one) for name, one in rest.items()}
        if kind in SEQUENCE_KINDS:
            return SEQUENCE_KINDS[kind](rest["items"])
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
                return MESSAGE_CLASSES[rest["of"]](**rest["fields"])
            case _:
                raise UnsupportedValueError(f"there is no kind {kind!r}")

    def _decode_reference(self, key: str, index: int | None, digest: str) -> Any:
        """Return the referenced value from the state if it has not changed."""
        value: Any = self._state.get(key)
        if index is not None:
            items = cast(list[Any], value) if isinstance(value, list) else []
            value = items[index] if index < len(items) else None
        return _require_unchanged(value, digest, key)


def _require_unchanged(value: Any, digest: str, key: str) -> Any:
    """Return the value from the state if its digest matches.

    Raises UnsupportedValueError if it has changed.
    """
    if value is None or _hash_value(_ValueEncoder({}).encode(value)) != digest:
        raise UnsupportedValueError(f"{key} of the state has changed")
    return value


def _find_consecutive(positions: Sequence[tuple[str, int | None]]) -> list[range]:
    """Return the ranges of a list of positions within which the positions are consecutive."""
    ranges: list[range] = []
    for nth, (key, at) in enumerate(positions):
        follows = nth > 0 and at is not None and positions[nth - 1] == (key, at - 1)
        if follows:
            ranges[-1] = range(ranges[-1].start, nth + 1)
        else:
            ranges.append(range(nth, nth + 1))
    return ranges


def _encode_text_kind(value: Any) -> Any:
    match value:
        case bytes():
            return {KIND_KEY: "bytes", "text": base64.b64encode(value).decode()}
        case datetime():
            return {KIND_KEY: "datetime", "text": value.isoformat()}
        case date():
            return {KIND_KEY: "date", "text": value.isoformat()}
        case Decimal() | UUID():
            return {KIND_KEY: type(value).__name__.lower(), "text": str(value)}
        case _:
            return None


def _list_set_fields(message: BaseMessage) -> dict[str, Any]:
    """Return the fields of a message that do not have their default values."""
    fields = {name: field for name, field in type(message).model_fields.items() if name != "type"}
    values = {name: getattr(message, name) for name in fields}
    return {name: one for name, one in values.items() if one != fields[name].get_default(call_default_factory=True)}


def _is_message(value: object) -> bool:
    return isinstance(value, BaseMessage)


def _dump_json(stored: Any) -> str:
    return json.dumps(stored, sort_keys=True, ensure_ascii=False)


def _hash_value(stored: Any) -> str:
    """Return the hash of a stored value without the ids of messages, which LangGraph generates at random."""
    return blake2b(_dump_json(_remove_message_ids(stored)).encode(), digest_size=8).hexdigest()


def _remove_message_ids(stored: Any) -> Any:
    if isinstance(stored, list):
        return [_remove_message_ids(one) for one in cast(list[Any], stored)]
    if not isinstance(stored, dict):
        return stored
    fields = cast(dict[str, Any], stored)
    skipped = "id" if fields.get(KIND_KEY) == "message" else None
    return {
        name: _remove_message_ids({k: v for k, v in one.items() if k != "id"} if skipped and name == "fields" else one)
        for name, one in fields.items()
    }
