"""Thrift's compact protocol, as far as Parquet's headers and footers use it: bytes to values, and back.

A struct is a mapping from field id to `(type, value)` in the order of the ids; a list is `(element type, values)`.
Knows no field of Parquet's. Source: the compact protocol's specification of Apache Thrift.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, _SET, _MAP, STRUCT = range(1, 13)

Field = tuple[int, Any]

Struct = dict[int, Field]


_BYTES = [bytes((value,)) for value in range(0x80)]


class NotUnderstood(ValueError):
    """Bytes of a type that Parquet does not use."""


def packed(struct: Mapping[int, Field]) -> bytes:
    """A struct as bytes, its end included."""
    into = bytearray()
    _struct(into, struct)
    return bytes(into)


def unpacked(body: bytes) -> Struct:
    """The struct that the bytes begin with. Raises NotUnderstood."""
    return _Reader(body).struct()


def structs(struct: Mapping[int, Field], field: int) -> list[Struct]:
    """The elements of a list of structs."""
    return struct[field][1][1]


def _struct(into: bytearray, struct: Mapping[int, Field]) -> None:
    before = 0
    for field, (kind, value) in struct.items():
        step = field - before
        into += bytes((step << 4 | kind,)) if 0 < step < 16 else bytes((kind,)) + varint(_zigzag(field))
        if kind > FALSE:
            _value(into, kind, value)
        before = field
    into.append(0)


def _value(into: bytearray, kind: int, value: Any) -> None:
    if I16 <= kind <= I64:
        into += varint(_zigzag(value))
    elif kind == BINARY:
        into += varint(len(value)) + value
    elif kind == STRUCT:
        _struct(into, value)
    elif kind == LIST:
        _list(into, *value)
    elif kind == DOUBLE:
        into += value
    else:  # a byte, or a boolean in a list
        into.append(value)


def _list(into: bytearray, kind: int, values: Sequence[Any]) -> None:
    size = len(values)
    into += bytes((size << 4 | kind,)) if size < 15 else bytes((0xF0 | kind,)) + varint(size)
    for value in values:
        _value(into, kind, value)


def varint(value: int) -> bytes:
    """Seven bits a byte, lowest first; not negative."""
    if value < 0x80:
        return _BYTES[value]
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _zigzag(value: int) -> int:
    return value << 1 if value >= 0 else (-value << 1) - 1


@dataclass(slots=True)
class _Reader:
    body: bytes
    at: int = 0

    def struct(self) -> Struct:
        found: Struct = {}
        field = 0
        while head := self.byte():
            kind, step = head & 15, head >> 4
            field = field + step if step else self.number()
            found[field] = (kind, None if kind in (TRUE, FALSE) else self.value(kind))
        return found

    def value(self, kind: int) -> Any:
        if I16 <= kind <= I64:
            return self.number()
        if kind == BINARY:
            return self.take(self.varint())
        if kind == STRUCT:
            return self.struct()
        if kind == LIST:
            return self.list()
        if kind == DOUBLE:
            return self.take(8)
        if kind <= BYTE:
            return self.byte()
        raise NotUnderstood(f"type {kind}")

    def list(self) -> tuple[int, Any]:
        head = self.byte()
        size, kind = head >> 4, head & 15
        return kind, [self.value(kind) for _ in range(self.varint() if size == 15 else size)]

    def number(self) -> int:
        value = self.varint()
        return value >> 1 if not value & 1 else -(value >> 1) - 1

    def varint(self) -> int:
        value = shift = 0
        while (byte := self.byte()) > 0x7F:
            value |= (byte & 0x7F) << shift
            shift += 7
        return value | byte << shift

    def byte(self) -> int:
        self.at += 1
        return self.body[self.at - 1]

    def take(self, size: int) -> bytes:
        self.at += size
        return self.body[self.at - size : self.at]
