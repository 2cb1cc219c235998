"""Encoding of the tokens of a role call as bytes.

Little-endian: ids are unsigned and 24 bits wide, logprobs float32, entropies float16. A mask has
one bit per completion token, lowest bit first.
"""

import struct
import sys
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from offing.core.token_checks import CorruptTokensError, check_token_trace
from offing.core.tokens import TokenTrace

_BYTE_BITS = [bytes(n >> bit & 1 for bit in range(8)) for n in range(256)]


@dataclass(frozen=True, slots=True)
class TokenColumns:
    """The tokens of a role call as stored.

    Lengths are p ids of the new prompt part and n ids of the completion.
    """

    prompt_ids: bytes
    """p ids: the new part of the prompt in the segment."""
    completion_ids: bytes
    logprobs: bytes
    entropy: bytes | None
    """In nats, rounded to 11 significant bits. It is used for metrics and weights and never
    recomputed. `None` if not known.
    """
    loss_mask: bytes
    """(n + 7) // 8 bytes."""


def build_token_columns(trace: TokenTrace, text: str, prompt_offset: int) -> TokenColumns:
    """Encode a token trace, with its prompt from `prompt_offset` on.

    Raises `CorruptTokensError`, see `check_token_trace`.
    """
    check_token_trace(trace, text)
    if prompt_offset > len(trace.prompt_ids):
        raise CorruptTokensError(
            "prompt_offset", f"{prompt_offset} is greater than {len(trace.prompt_ids)}, the number of ids of the prompt"
        )
    n = len(trace.completion_ids)
    return TokenColumns(
        pack_ids(trace.prompt_ids[prompt_offset:]),
        pack_ids(trace.completion_ids),
        pack_floats(trace.logprobs),
        None if trace.entropy is None else pack_halves(trace.entropy),
        pack_mask([True] * n),
    )


def pack_ids(ids: Iterable[int]) -> bytes:
    """Pack ids with three bytes each. An id is from 0 to `MAX_TOKEN_ID`."""
    wide = _to_little_endian(array("i", ids))
    packed = bytearray(len(wide) // 4 * 3)
    for byte in range(3):
        packed[byte::3] = wide[byte::4]
    return bytes(packed)


def pack_floats(values: Iterable[float]) -> bytes:
    """Pack values as float32, little-endian."""
    return _to_little_endian(array("f", values))


def pack_halves(values: Iterable[float]) -> bytes:
    """Pack values as float16, little-endian."""
    floats = tuple(values)
    return struct.pack(f"<{len(floats)}e", *floats)


def pack_mask(mask: Sequence[bool]) -> bytes:
    """Pack a mask with one bit per entry, lowest bit first. The remaining bits are 0."""
    value = sum(1 << n for n, bit in enumerate(mask) if bit) if not all(mask) else (1 << len(mask)) - 1
    return value.to_bytes((len(mask) + 7) // 8, "little")


def unpack_ids(packed: bytes) -> "array[int]":
    wide = bytearray(len(packed) // 3 * 4)
    for byte in range(3):
        wide[byte::4] = packed[byte::3]
    values = array("i", bytes(wide))
    if sys.byteorder == "big":
        values.byteswap()
    return values


def unpack_floats(packed: bytes) -> "array[float]":
    values = array("f", packed)
    if sys.byteorder == "big":
        values.byteswap()
    return values


def unpack_halves(packed: bytes) -> "array[float]":
    """Unpack float16 values to float32, which represents all of them exactly."""
    return array("f", struct.unpack(f"<{len(packed) // 2}e", packed))


def unpack_mask(packed: bytes, count: int) -> bytes:
    """Unpack a mask to one byte, 0 or 1, per token.

    Raises `CorruptTokensError` if the length is wrong or a remaining bit is set.
    """
    flags = b"".join(_BYTE_BITS[byte] for byte in packed)
    if len(packed) != (count + 7) // 8 or any(flags[count:]):
        raise CorruptTokensError("mask", f"has the wrong length for {count} completion ids")
    return flags[:count]


def _to_little_endian(values: "array[int] | array[float]") -> bytes:
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes()
