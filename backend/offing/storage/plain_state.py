"""Serialize graph state as plain values, so that what a stored checkpoint gives back needs no class of a graph's."""

from collections.abc import Sequence
from enum import Enum
from typing import Any, cast

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer


class PlainStateSerializer(JsonPlusSerializer):
    """msgpack of plain data, LangGraph's own types and `types`.

    A member of an enumeration that is not in `types` is stored as its value. LangGraph would store the name of its
    class, and refuse to load it with a warning, because a stored blob must never name code to run.
    """

    def __init__(self, types: Sequence[type] = ()) -> None:
        allowed = tuple(types) or None
        super().__init__(pickle_fallback=False, allowed_json_modules=None, allowed_msgpack_modules=allowed)
        self._types = frozenset(types)

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        return super().dumps_typed(self._plain(obj))

    def _plain(self, value: Any) -> Any:
        """`value` with the enumerations in its mappings and sequences replaced by their values."""
        if isinstance(value, Enum):
            return value if type(value) in self._types else value.value
        if type(value) is dict:
            mapping = cast(dict[Any, Any], value)
            return {self._plain(key): self._plain(item) for key, item in mapping.items()}
        if type(value) is list or type(value) is tuple:
            items = cast("list[Any] | tuple[Any, ...]", value)
            return type(items)(map(self._plain, items))
        return value


def serializer(types: Sequence[type] = ()) -> PlainStateSerializer:
    """msgpack with no types but plain data, LangGraph's own and `types`; a stored blob can never name code to run."""
    return PlainStateSerializer(types)
