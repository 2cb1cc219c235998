"""What each id of a completion decodes to, in bytes.

The only home of the rule that pieces, joined, are the completion's text. Byte-level tokenizers give every id's own
bytes, halves of a character included; others are decoded step by step, each id with what stands before it.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Sequence
from typing import Any

import orjson

WINDOW = 8
"""Ids before one that can change what it decodes to."""


class Pieces:
    """The pieces of one tokenizer's ids. Special tokens decode to nothing."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._table = _byte_table(tokenizer)

    def last(self, ids: Sequence[int]) -> bytes:
        """What the last of `ids` adds to the text of those before it."""
        if self._table is not None:
            return self._table[ids[-1]]
        window = list(ids[-WINDOW - 1 :])
        before, after = self._text(window[:-1]), self._text(window)
        return after[len(before) :].encode() if after.startswith(before) else b""

    def of(self, ids: Sequence[int]) -> tuple[bytes, ...]:
        """One piece an id."""
        if self._table is not None:
            return tuple([self._table[id] for id in ids])
        return tuple([self.last(ids[: n + 1]) for n in range(len(ids))])

    def _text(self, ids: list[int]) -> str:
        return self._tokenizer.decode(ids, skip_special_tokens=True)


def _byte_table(tokenizer: Any) -> list[bytes] | None:
    """Bytes of every id; None for a tokenizer that is not byte-level."""
    backend = orjson.loads(tokenizer.backend_tokenizer.to_str())
    if not _is_byte_level(backend.get("decoder") or {}):
        return None
    letters = _byte_letters()
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


def _byte_letters() -> dict[str, int]:
    """The visible letter that byte-level tokenizers write for each byte: printable bytes stand for themselves, the
    others follow from code point 256 on (the scheme of GPT-2's vocabulary)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}
