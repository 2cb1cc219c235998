"""Names that nobody has, and the guarantee that training and held-out worlds share none.

Every word belongs to one split by its hash. A world's names are made of words of its own split only, so that not even a
word of a name occurs on the other side.
"""

from collections.abc import Callable, Iterator
from hashlib import blake2b
from random import Random

from offing.world.spec import Split

ONSETS = (*"bcdfghjklmnprstvwz", "br", "dr", "gr", "kr", "pr", "qu", "sk", "sl", "st", "tr")
VOWELS = (*"aeiou", "ei", "au")
CODAS = ("", "l", "n", "r", "s", "m", "k", "th", "rn", "ld", "sk", "x")

HELDOUT_SHARE = 4
"""One word in this many belongs to held-out worlds."""


def split_of(word: str) -> Split:
    """The split that a name's word belongs to, in any case."""
    number = int.from_bytes(blake2b(word.lower().encode(), digest_size=4).digest(), "big")
    return Split.HELDOUT if number % HELDOUT_SHARE == 0 else Split.TRAIN


def names(split: Split, rng: Random) -> Iterator[str]:
    """Two-word names of a split without end, each once."""
    used: set[str] = set()
    draw = _picker(rng)
    while True:
        name = f"{_word(split, draw)} {_word(split, draw)}"
        if name not in used:
            used.add(name)
            yield name


def _picker(rng: Random) -> Callable[[tuple[str, ...]], str]:
    return lambda among: among[int(rng.random() * len(among))]


def _word(split: Split, draw: Callable[[tuple[str, ...]], str]) -> str:
    while True:
        word = draw(ONSETS) + draw(VOWELS) + draw(ONSETS) + draw(VOWELS) + draw(CODAS)
        if split_of(word) is split:
            return word.capitalize()
