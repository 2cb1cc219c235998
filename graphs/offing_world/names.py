"""Generated names, none of which is shared between training worlds and held-out worlds.

The hash of a word decides its split. Names consist only of words of the world's own split,
so that not even one word of a name occurs in worlds of the other split.
"""

from collections.abc import Callable, Iterator
from hashlib import blake2b
from random import Random

from offing_world.spec import Split

ONSETS = (*"bcdfghjklmnprstvwz", "br", "dr", "gr", "kr", "pr", "qu", "sk", "sl", "st", "tr")
VOWELS = (*"aeiou", "ei", "au")
CODAS = ("", "l", "n", "r", "s", "m", "k", "th", "rn", "ld", "sk", "x")

WORDS_PER_HELDOUT_WORD = 4
"""One word in `WORDS_PER_HELDOUT_WORD` belongs to held-out worlds."""


def assign_split(word: str) -> Split:
    """Return the split that a word of a name belongs to, ignoring case."""
    number = int.from_bytes(blake2b(word.lower().encode(), digest_size=4).digest(), "big")
    return Split.HELDOUT if number % WORDS_PER_HELDOUT_WORD == 0 else Split.TRAIN


def generate_names(split: Split, rng: Random) -> Iterator[str]:
    """Yield two-word names of a split, each once, without end."""
    used: set[str] = set()
    draw = _build_picker(rng)
    while True:
        name = f"{_generate_word(split, draw)} {_generate_word(split, draw)}"
        if name not in used:
            used.add(name)
            yield name


def _build_picker(rng: Random) -> Callable[[tuple[str, ...]], str]:
    return lambda among: among[int(rng.random() * len(among))]


def _generate_word(split: Split, draw: Callable[[tuple[str, ...]], str]) -> str:
    while True:
        word = draw(ONSETS) + draw(VOWELS) + draw(ONSETS) + draw(VOWELS) + draw(CODAS)
        if assign_split(word) is split:
            return word.capitalize()
