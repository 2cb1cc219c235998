"""Whether text was copied from what a run has read: the only home of how copies are recognised.

Text is compared in shingles of `LENGTH` code points, after folding away case, width and white space, so that a copy is
found wherever it begins. Pure; hashes hold within one process only and are never stored.
"""

import base64
import binascii
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import unquote_plus

LENGTH = 12
"""Code points from which on a stretch counts as copied."""

MOST_SHINGLES = 1_000_000
"""Of one run. With more, it is no longer known what was copied, and everything counts as copied."""

_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_ENCODED_PART = re.compile(r"[A-Za-z0-9+_-]{16,}={0,2}")
_IGNORED = re.compile(r"[\s\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff\U000e0000-\U000e007f]+")


@dataclass(frozen=True, slots=True)
class Seen:
    """Untrusted text as shingles."""

    shingles: frozenset[int] | set[int] = frozenset()
    whole: bool = True
    """False: there was more than is kept, so nothing can be said not to be a copy."""

    def with_text(self, *texts: str) -> "Seen":
        """Everything so far, and these texts."""
        if not self.whole:
            return self
        together = set(self.shingles).union(*(shingles(text) for text in texts))
        return Seen(frozenset(together)) if len(together) <= MOST_SHINGLES else Seen(whole=False)


NOTHING_SEEN = Seen()


def shingles(text: str) -> set[int]:
    """A number for each stretch of `LENGTH` code points of the folded text. Empty: it is shorter."""
    folded = _folded(text)
    return {hash(folded[at : at + LENGTH]) for at in range(len(folded) - LENGTH + 1)}


def copied(text: str, seen: Seen) -> bool:
    """Whether a stretch of `text`, plain or in an encoding that hides it from the eye, was in what was seen."""
    if not seen.whole:
        return len(_folded(text)) >= LENGTH
    if not seen.shingles:
        return False
    return any(not seen.shingles.isdisjoint(shingles(form)) for form in _forms(text))


def strings_in(value: object) -> Iterator[str]:
    """Every text in a JSON value, keys included."""
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


def _folded(text: str) -> str:
    return _IGNORED.sub("", unicodedata.normalize("NFKC", text)).casefold()


def _forms(text: str) -> Iterator[str]:
    """The text itself, without percent signs, backwards, and what stretches of it say in base 64 or in hex."""
    yield text
    plain = unquote_plus(text)
    if plain != text:
        yield plain
        yield plain[::-1]
    yield text[::-1]
    yield from _decoded([*_ENCODED.findall(plain), *_ENCODED_PART.findall(text)])


def _decoded(stretches: Iterable[str]) -> Iterator[str]:
    for stretch in stretches:
        for decode in (_base64, bytes.fromhex):
            try:
                yield decode(stretch).decode()
            except (ValueError, binascii.Error):
                continue


def _base64(stretch: str) -> bytes:
    bare = stretch.rstrip("=").translate(str.maketrans("-_", "+/"))
    return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
