"""Tokens of a turn as bytes, and back. The only home of that encoding.

Little-endian: ids are unsigned and 24 bits wide, log-probabilities float32, entropies float16; a mask is a bit a
completion id, lowest first. Knows no table.
"""

import struct
import sys
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from offing.core.token_checks import BrokenRecord, refuse_broken
from offing.core.tokens import TokenTrace

_BITS = [bytes(n >> bit & 1 for bit in range(8)) for n in range(256)]


@dataclass(frozen=True, slots=True)
class TokenColumns:
    """One turn's tokens as they are stored. Lengths in ids: p of the new prompt, n of the completion."""

    prompt_ids: bytes
    """p ids: what the prompt adds to its segment."""
    completion_ids: bytes
    logprobs: bytes
    entropy: bytes | None
    """Nats, rounded to 11 significant bits: it is watched and weighed, never recomputed. None: not given."""
    mask: bytes
    """(n + 7) // 8 bytes."""


def columns_of(trace: TokenTrace, text: str, offset: int) -> TokenColumns:
    """A trace as columns, its prompt from `offset` on. Raises BrokenRecord, see `refuse_broken`."""
    refuse_broken(trace, text)
    if offset > len(trace.prompt_ids):
        raise BrokenRecord("prompt_offset", f"{offset} is past the {len(trace.prompt_ids)} ids of the prompt")
    n = len(trace.completion_ids)
    return TokenColumns(
        packed_ids(trace.prompt_ids[offset:]),
        packed_ids(trace.completion_ids),
        packed_floats(trace.logprobs),
        None if trace.entropy is None else packed_halves(trace.entropy),
        packed_mask([True] * n),
    )


def packed_ids(ids: Iterable[int]) -> bytes:
    """Three bytes an id, which is from 0 to `LARGEST_ID`."""
    wide = _little(array("i", ids))
    packed = bytearray(len(wide) // 4 * 3)
    for byte in range(3):
        packed[byte::3] = wide[byte::4]
    return bytes(packed)


def packed_floats(values: Iterable[float]) -> bytes:
    """float32, little-endian."""
    return _little(array("f", values))


def packed_halves(values: Iterable[float]) -> bytes:
    """float16, little-endian."""
    given = tuple(values)
    return struct.pack(f"<{len(given)}e", *given)


def packed_mask(mask: Sequence[bool]) -> bytes:
    """A bit an entry, lowest first; bits beyond are 0."""
    value = sum(1 << n for n, bit in enumerate(mask) if bit) if not all(mask) else (1 << len(mask)) - 1
    return value.to_bytes((len(mask) + 7) // 8, "little")


def ids_in(packed: bytes) -> "array[int]":
    wide = bytearray(len(packed) // 3 * 4)
    for byte in range(3):
        wide[byte::4] = packed[byte::3]
    values = array("i", bytes(wide))
    if sys.byteorder == "big":
        values.byteswap()
    return values


def floats_in(packed: bytes) -> "array[float]":
    values = array("f", packed)
    if sys.byteorder == "big":
        values.byteswap()
    return values


def halves_in(packed: bytes) -> "array[float]":
    """float16 as float32, which holds every one of them."""
    return array("f", struct.unpack(f"<{len(packed) // 2}e", packed))


def mask_in(packed: bytes, n: int) -> bytes:
    """One byte, 0 or 1, for each of `n` ids. Raises BrokenRecord for another length and for bits beyond."""
    flags = b"".join(_BITS[byte] for byte in packed)
    if len(packed) != (n + 7) // 8 or any(flags[n:]):
        raise BrokenRecord("mask", f"it does not fit {n} completion ids")
    return flags[:n]


def _little(values: "array[int] | array[float]") -> bytes:
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes()
