"""Items of LangGraph's store as they are written, and the vectors by which they are found."""

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import ge, gt, le, lt, mul
from typing import Any

ORDERS = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
OPERATORS = frozenset({"$eq", "$ne", *ORDERS})
"""Of a filter."""

BYTES = 4
"""Of a 32-bit float."""


@dataclass(frozen=True, slots=True)
class Vectors:
    """Unit vectors of texts. Only those of the same embedder can be compared."""

    embedder: str
    dims: int
    packed: bytes
    """As 32-bit floats, one vector behind the other."""

    def __iter__(self) -> Iterator["array[float]"]:
        size = self.dims * BYTES
        for start in range(0, len(self.packed), size):
            yield array("f", self.packed[start : start + size])


@dataclass(frozen=True, slots=True)
class ItemPut:
    """An item to store in the place of the one under its namespace and key."""

    namespace: tuple[str, ...]
    key: str
    value: Mapping[str, Any] | None
    """`None` deletes the item."""
    ttl_minutes: float | None = None
    """`None` means that it does not expire."""
    vectors: Vectors | None = field(default=None, compare=False, repr=False)
    """`None` means that a search by meaning ranks it last."""

    @property
    def place(self) -> tuple[tuple[str, ...], str]:
        return self.namespace, self.key


def vectors_of(embedder: str, dims: int, found: Iterable[Sequence[float]]) -> Vectors:
    """Pack vectors. Raises ValueError for one that has another number of dimensions."""
    packed = bytearray()
    for one in found:
        if len(one) != dims:
            raise ValueError(f"The embedding function gave {len(one)} dimensions; the index has {dims}.")
        length = math.sqrt(math.fsum(x * x for x in one)) or 1.0
        packed += array("f", [x / length for x in one]).tobytes()
    return Vectors(embedder, dims, bytes(packed))


def similarity(query: Vectors, packed: bytes) -> float | None:
    """Return the cosine of a query's vector and the nearest of an item's. `None`: they cannot be compared."""
    if not packed or len(packed) % (query.dims * BYTES):
        return None
    (wanted,) = query
    return max(sum(map(mul, wanted, one)) for one in Vectors(query.embedder, query.dims, packed))


def last_puts(puts: Iterable[ItemPut]) -> list[ItemPut]:
    """Return the last put of each item, in an order that is the same for all writers."""
    last = {put.place: put for put in puts}
    return [last[place] for place in sorted(last)]


def matches(field: Any, wanted: Any) -> bool:
    """Whether a field is as a filter wants it: a mapping names fields or operators, a list is compared one by one."""
    if isinstance(wanted, Mapping):
        return _has(field, dict(wanted.items()))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    if isinstance(wanted, list | tuple):
        ones: Sequence[Any] = wanted  # pyright: ignore[reportUnknownVariableType]
        return isinstance(field, list | tuple) and len(field) == len(ones) and all(map(matches, field, ones))  # pyright: ignore[reportUnknownArgumentType]
    return bool(field == wanted)


def _has(field: Any, wanted: Mapping[str, Any]) -> bool:
    if any(name.startswith("$") for name in wanted):
        return all(_compares(field, operator, operand) for operator, operand in wanted.items())
    return isinstance(field, Mapping) and all(
        matches(field.get(name), one)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        for name, one in wanted.items()
    )


def _compares(field: Any, operator: str, operand: Any) -> bool:
    """As numbers where the operand is one, else as text. A field that cannot be compared with it does not."""
    if operator in ("$eq", "$ne"):
        return (field == operand) is (operator == "$eq")
    if (number := _number(operand)) is not None:
        pair: Any = (_number(field), number)
    else:
        pair = (field, operand) if isinstance(operand, str) else (None, operand)
    if pair[0] is None or not isinstance(pair[0], type(pair[1])):
        return False
    return bool(ORDERS[operator](*pair))


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None
