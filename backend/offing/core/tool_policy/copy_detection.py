"""Copy detection: whether text was copied from untrusted content that the run has read.

Text is compared in shingles of `SHINGLE_CHARS` code points. Case, character width and white space
are normalized first, so that a copy is found at any offset. The functions are pure. The hashes are
valid within one process only and are never stored.
"""

import base64
import binascii
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import unquote_plus

SHINGLE_CHARS = 12
"""Minimum number of code points of a range that counts as copied."""

MAX_SHINGLES = 1_000_000
"""Maximum number of shingles of one run.

Above it the record is incomplete, and all text counts as copied.
"""

_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_ENCODED_PART = re.compile(r"[A-Za-z0-9+_-]{16,}={0,2}")
_IGNORED = re.compile(r"[\s\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff\U000e0000-\U000e007f]+")


@dataclass(frozen=True, slots=True)
class UntrustedShingles:
    """Untrusted text as a set of shingles."""

    shingles: frozenset[int] | set[int] = frozenset()
    is_complete: bool = True
    """`False` means that text was dropped, so that no text can be shown not to be a copy."""

    def add_texts(self, *texts: str) -> "UntrustedShingles":
        """Return a copy that also contains these texts."""
        if not self.is_complete:
            return self
        together = set(self.shingles).union(*(compute_shingles(text) for text in texts))
        return (
            UntrustedShingles(frozenset(together))
            if len(together) <= MAX_SHINGLES
            else UntrustedShingles(is_complete=False)
        )


NO_SHINGLES = UntrustedShingles()


def compute_shingles(text: str) -> set[int]:
    """Return the hash of each range of `SHINGLE_CHARS` code points of the normalized text.

    The set is empty if the text is shorter.
    """
    folded = _fold(text)
    return {hash(folded[at : at + SHINGLE_CHARS]) for at in range(len(folded) - SHINGLE_CHARS + 1)}


def contains_copied_text(text: str, untrusted_shingles: UntrustedShingles) -> bool:
    """Return whether a range of `text` was copied from the untrusted text.

    Encodings that hide the text from a reader are decoded first.
    """
    if not untrusted_shingles.is_complete:
        return len(_fold(text)) >= SHINGLE_CHARS
    if not untrusted_shingles.shingles:
        return False
    return any(not untrusted_shingles.shingles.isdisjoint(compute_shingles(form)) for form in _iter_decodings(text))


def iter_strings(value: object) -> Iterator[str]:
    """Yield every text in a JSON value, including keys."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str() as text:
                yield text
            case dict() as mapping:  # pyright: ignore[reportUnknownVariableType]
                waiting += [*mapping.keys(), *mapping.values()]  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
            case list() as items:  # pyright: ignore[reportUnknownVariableType]
                waiting += items  # pyright: ignore[reportUnknownArgumentType]
            case _:
                pass


def _fold(text: str) -> str:
    return _IGNORED.sub("", unicodedata.normalize("NFKC", text)).casefold()


def _iter_decodings(text: str) -> Iterator[str]:
    """Yield the text itself and its decodings.

    These are the percent-decoded text, both texts reversed, and decoded base64 and hex ranges.
    """
    yield text
    plain = unquote_plus(text)
    if plain != text:
        yield plain
        yield plain[::-1]
    yield text[::-1]
    yield from _iter_decoded_ranges([*_ENCODED.findall(plain), *_ENCODED_PART.findall(text)])


def _iter_decoded_ranges(ranges: Iterable[str]) -> Iterator[str]:
    for encoded in ranges:
        for decode in (_decode_base64, bytes.fromhex):
            try:
                yield decode(encoded).decode()
            except (ValueError, binascii.Error):
                continue


def _decode_base64(encoded: str) -> bytes:
    bare = encoded.rstrip("=").translate(str.maketrans("-_", "+/"))
    return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
