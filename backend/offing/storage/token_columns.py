"""Tokens of a turn as bytes, and back. The only home of that encoding and of what may not be written in it.

Little-endian: ids are unsigned and 24 bits wide, log-probabilities float32, entropies float16; a mask is a bit a
completion id, lowest first. Knows no table.
"""

import math
import struct
import sys
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from offing.core.errors import OffingError
from offing.core.tokens import TokenTrace

LARGEST_ID = 2**24 - 1

LARGEST_ENTROPY = 65504.0
"""Of float16. A vocabulary of 2^24 has at most 16.7 nats."""

_BITS = [bytes(n >> bit & 1 for bit in range(8)) for n in range(256)]


class BrokenRecord(OffingError):
    """`BrokenRecord(field, problem)`: a turn whose tokens contradict one another; it is not written."""

    code = "broken_record"

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(field, problem)
        self.field, self.problem = field, problem

    def __str__(self) -> str:
        return f"{self.field}: {self.problem}. The turn is not recorded; the engine that gave it has to be corrected."


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


def refuse_broken(trace: TokenTrace, text: str) -> None:
    """Raises BrokenRecord for lengths that differ, ids and log-probabilities that cannot be, and ids of another text.

    `text`: what the flow used. The ids must decode to it, end-of-turn tokens aside, which decode to nothing.
    """
    n = len(trace.completion_ids)
    if n == 0 or not trace.prompt_ids:
        raise BrokenRecord("completion_ids" if n == 0 else "prompt_ids", "there are none")
    for field, values in (("logprobs", trace.logprobs), ("pieces", trace.pieces), ("entropy", trace.entropy)):
        if values is not None and len(values) != n:
            raise BrokenRecord(field, f"{len(values)} for {n} completion ids")
    _refuse_ids("prompt_ids", trace.prompt_ids)
    _refuse_ids("completion_ids", trace.completion_ids)
    if not all(math.isfinite(value) and value <= 0 for value in trace.logprobs):
        raise BrokenRecord("logprobs", "one is no logarithm of a probability: not finite, or above 0")
    if not all(0 <= value <= LARGEST_ENTROPY for value in trace.entropy or ()):
        raise BrokenRecord("entropy", f"one is not finite, below 0 or above {LARGEST_ENTROPY:.0f}")
    if trace.text != text:
        raise BrokenRecord("completion_ids", "they decode to another text than the flow used")


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


def _refuse_ids(field: str, ids: Sequence[int]) -> None:
    if min(ids) < 0 or max(ids) > LARGEST_ID:
        raise BrokenRecord(field, f"one is negative or above {LARGEST_ID}, which no vocabulary reaches")


def _little(values: "array[int] | array[float]") -> bytes:
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes()
