"""Compositions: what a question combines, apart from the names in it, and which of them are never trained.

A small planner reads a question without names, so that a question with other names is the same to it. To measure
whether a planner answers combinations that it never saw, training leaves some of them out: a fifth of the compact forms
with two or more relations, by their hash. Every relation occurs in training, in questions with a single one.
"""

import hashlib
from enum import StrEnum

from offing.core.errors import InvalidInput
from offing_world.compact_notation import render_compact_question, render_compact_relation
from offing_world.semantics import RELATIONS

RELATION_WORDS = frozenset(map(render_compact_relation, RELATIONS))

HELD_OUT_FRACTION = 5
"""One in this many compositions is held out."""


class Compositions(StrEnum):
    """A part of the compositions."""

    ALL = "all"
    TRAINED = "trained"
    HELD_OUT = "held-out"


def parse_compositions(text: str) -> Compositions:
    """Return the part with this name; an empty name means all. Raises InvalidInput."""
    if text and text not in set(Compositions):
        remedy = f"Use one of: {', '.join(Compositions)}."
        raise InvalidInput("compositions", f"there are no compositions {text!r}", remedy)
    return Compositions(text) if text else Compositions.ALL


def is_included(question: str, compositions: Compositions) -> bool:
    """Return whether a question of a world belongs to a part."""
    if compositions is Compositions.ALL:
        return True
    return is_held_out(render_compact_question(question)) == (compositions is Compositions.HELD_OUT)


def is_held_out(form: str) -> bool:
    """Return whether a compact form is left out of training."""
    if sum(word in RELATION_WORDS for word in form.split()) < 2:
        return False
    digest = hashlib.sha256(form.encode()).digest()
    return int.from_bytes(digest[:8], "big") % HELD_OUT_FRACTION == 0
