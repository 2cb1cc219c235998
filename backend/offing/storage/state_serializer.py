"""Serialization of graph state as plain values.

Stored checkpoints can be read without the graph's classes.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Any, cast

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer


class StateSerializer(JsonPlusSerializer):
    """msgpack of plain data, LangGraph's own types and `types`.

    A member of an enumeration that is not in `types` is stored as its value. LangGraph would
    store the name of its class and later reject it with a warning, because a stored blob
    must never name code to run.
    """

    def __init__(self, types: Sequence[type] = ()) -> None:
        allowed = tuple(types) or None
        super().__init__(pickle_fallback=False, allowed_json_modules=None, allowed_msgpack_modules=allowed)
        self._types = frozenset(types)

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        return super().dumps_typed(self._replace_enums(obj))

    def _replace_enums(self, value: Any) -> Any:
        """Return a copy of `value` in which enumeration members are replaced by their values.

        Mappings and sequences are searched recursively.
        """
        if isinstance(value, Enum):
            return value if type(value) in self._types else value.value
        if type(value) is dict:
            mapping = cast(dict[Any, Any], value)
            return {self._replace_enums(key): self._replace_enums(item) for key, item in mapping.items()}
        if type(value) is list or type(value) is tuple:
            items = cast("list[Any] | tuple[Any, ...]", value)
            return type(items)(map(self._replace_enums, items))
        return value


def build_serializer(types: Sequence[type] = ()) -> StateSerializer:
    """Return a serializer for plain data, LangGraph's own types and `types`.

    A stored blob can never name code to run.
    """
    return StateSerializer(types)
