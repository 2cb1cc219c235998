"""Items of LangGraph's store for writing, and the vectors for searching them."""

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import ge, gt, le, lt, mul
from typing import Any

ORDER_OPERATORS = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
FILTER_OPERATORS = frozenset({"$eq", "$ne", *ORDER_OPERATORS})
"""Operators of a filter."""

FLOAT_BYTES = 4
"""Bytes of a 32-bit float."""


@dataclass(frozen=True, slots=True)
class Vectors:
    """Unit vectors of texts. Only those of the same embedder can be compared."""

    embedder: str
    dims: int
    packed: bytes
    """Concatenated vectors as 32-bit floats."""

    def __iter__(self) -> Iterator["array[float]"]:
        size = self.dims * FLOAT_BYTES
        for start in range(0, len(self.packed), size):
            yield array("f", self.packed[start : start + size])


@dataclass(frozen=True, slots=True)
class ItemPut:
    """An item to store. It replaces the item with the same namespace and key."""

    namespace: tuple[str, ...]
    key: str
    value: Mapping[str, Any] | None
    """Value of the item. `None` deletes the item."""
    ttl_minutes: float | None = None
    """Minutes after which the item expires. `None` means never."""
    vectors: Vectors | None = field(default=None, compare=False, repr=False)
    """Vectors for semantic search. `None` means that such a search ranks the item last."""

    @property
    def address(self) -> tuple[tuple[str, ...], str]:
        return self.namespace, self.key


def pack_vectors(embedder: str, dims: int, vectors: Iterable[Sequence[float]]) -> Vectors:
    """Normalize and pack vectors.

    Raises ValueError if a vector has another number of dimensions.
    """
    packed = bytearray()
    for one in vectors:
        if len(one) != dims:
            raise ValueError(f"The embedding function gave {len(one)} dimensions; the index has {dims}.")
        length = math.sqrt(math.fsum(x * x for x in one)) or 1.0
        packed += array("f", [x / length for x in one]).tobytes()
    return Vectors(embedder, dims, bytes(packed))


def find_max_similarity(query: Vectors, packed: bytes) -> float | None:
    """Return the highest cosine similarity between a query's vector and the vectors of an item.

    `None` means that they cannot be compared.
    """
    if not packed or len(packed) % (query.dims * FLOAT_BYTES):
        return None
    (query_vector,) = query
    return max(sum(map(mul, query_vector, one)) for one in Vectors(query.embedder, query.dims, packed))


def deduplicate_puts(puts: Iterable[ItemPut]) -> list[ItemPut]:
    """Return the last put of each item, in an order that is the same for all writers."""
    last = {put.address: put for put in puts}
    return [last[address] for address in sorted(last)]


def matches_filter(value: Any, condition: Any) -> bool:
    """Return whether a field matches a filter condition.

    A mapping names fields or operators. A list is compared item by item.
    """
    if isinstance(condition, Mapping):
        return _matches_fields(value, dict(condition.items()))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    if isinstance(condition, list | tuple):
        ones: Sequence[Any] = condition  # pyright: ignore[reportUnknownVariableType]
        return isinstance(value, list | tuple) and len(value) == len(ones) and all(map(matches_filter, value, ones))  # pyright: ignore[reportUnknownArgumentType]
    return bool(value == condition)


def _matches_fields(field: Any, condition: Mapping[str, Any]) -> bool:
    if any(name.startswith("$") for name in condition):
        return all(_compare(field, operator, operand) for operator, operand in condition.items())
    return isinstance(field, Mapping) and all(
        matches_filter(field.get(name), one)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        for name, one in condition.items()
    )


def _compare(field: Any, operator: str, operand: Any) -> bool:
    """Compare a field with an operand: as numbers if the operand is a number, else as text.

    Returns `False` if they cannot be compared.
    """
    if operator in ("$eq", "$ne"):
        return (field == operand) is (operator == "$eq")
    if (number := _parse_number(operand)) is not None:
        pair: Any = (_parse_number(field), number)
    else:
        pair = (field, operand) if isinstance(operand, str) else (None, operand)
    if pair[0] is None or not isinstance(pair[0], type(pair[1])):
        return False
    return bool(ORDER_OPERATORS[operator](*pair))


def _parse_number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None
