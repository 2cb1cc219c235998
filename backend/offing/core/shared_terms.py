"""The terms of a sentence, to tell whether another text speaks of the same. The functions are pure.

Terms are beginnings of words, so that forms of a word count as one, numbers, and pairs of Chinese or Japanese
characters. They do not say whether two texts state the same.
"""

import re
from functools import lru_cache

TERM_CHARS = 4
"""Letters of a word that are compared, so that `lens` and `lenses` are one term."""
MIN_SHARED_TERMS = 2
"""Minimum terms that a text shares with a sentence of at least `MANY_TERMS`. A shorter one needs one."""
MANY_TERMS = 4

_WORD = re.compile(r"[^\W\d_]{3,}|\d+")
_HAN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]+")
_FUNCTION_WORDS = frozenset(
    " ".join(
        (
            "the and for was were are has have had been being with from that this its their which who whose into than",
            "then also only when where while there them they not but did does all any both each more most other some",
            "such very can will would could should may might about over under between after before during per our your",
        )
    ).split()
)


@lru_cache(maxsize=4096)
def list_terms(text: str) -> frozenset[str]:
    """Return the terms of a text, without common English function words."""
    words = (word.casefold() for word in _WORD.findall(_HAN.sub(" ", text)))
    pairs = (run[at : at + 2] for run in _HAN.findall(text) for at in range(max(1, len(run) - 1)))
    return frozenset((*(w if w.isdecimal() else w[:TERM_CHARS] for w in words if w not in _FUNCTION_WORDS), *pairs))


def shares_terms(sentence: str, text: str) -> bool:
    """Return whether a text speaks of what a sentence speaks of. With a sentence without terms, every text does."""
    terms = list_terms(sentence)
    needed = MIN_SHARED_TERMS if len(terms) >= MANY_TERMS else min(1, len(terms))
    return len(terms & list_terms(text)) >= needed
