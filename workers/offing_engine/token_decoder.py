"""Bytes that each token id of a completion decodes to.

The bytes of all ids, joined, are the completion's text. Byte-level tokenizers give the bytes of
each id, which may be parts of a character. Other tokenizers are decoded step by step, each id with
those before it.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Sequence
from typing import Any

import orjson

WINDOW_TOKENS = 8
"""Number of ids before one that can change what it decodes to."""


class TokenDecoder:
    """Decoder of token ids of one tokenizer. Special tokens decode to nothing."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._table = _build_byte_table(tokenizer)

    def decode_last(self, ids: Sequence[int]) -> bytes:
        """Return the bytes that the last of `ids` adds to the text of those before it."""
        if self._table is not None:
            return self._table[ids[-1]]
        window = list(ids[-WINDOW_TOKENS - 1 :])
        before, after = self._decode(window[:-1]), self._decode(window)
        return after[len(before) :].encode() if after.startswith(before) else b""

    def decode_each(self, ids: Sequence[int]) -> tuple[bytes, ...]:
        """Return the bytes of each id."""
        if self._table is not None:
            return tuple([self._table[id] for id in ids])
        return tuple([self.decode_last(ids[: n + 1]) for n in range(len(ids))])

    def _decode(self, ids: list[int]) -> str:
        return self._tokenizer.decode(ids, skip_special_tokens=True)


def _build_byte_table(tokenizer: Any) -> list[bytes] | None:
    """Return the bytes of every id. `None` means that the tokenizer is not byte-level."""
    backend = orjson.loads(tokenizer.backend_tokenizer.to_str())
    if not _is_byte_level(backend.get("decoder") or {}):
        return None
    letters = _byte_characters()
    special, added = set(tokenizer.all_special_ids), {one["id"]: one for one in backend.get("added_tokens", [])}
    table: list[bytes] = []
    for id in range(len(tokenizer)):
        token = tokenizer.convert_ids_to_tokens(id)
        if token is None or id in special or added.get(id, {}).get("special"):
            table.append(b"")
        elif id in added:
            table.append(token.encode())
        else:
            table.append(bytes(letters[letter] for letter in token))
    return table


def _is_byte_level(decoder: dict[str, Any]) -> bool:
    parts = decoder.get("decoders", [decoder])
    return any(part.get("type") == "ByteLevel" for part in parts)


def _byte_characters() -> dict[str, int]:
    """Return the byte for each visible character of byte-level tokenizers.

    Printable bytes are represented by themselves, and the others by code points from 256 on (the scheme
    of GPT-2's vocabulary).
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}
