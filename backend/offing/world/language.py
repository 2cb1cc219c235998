"""The questions of the worlds as expressions and as English; the only home of their grammar.

The same phrases write a question and read it back: `read(write(expression, choice)) == expression`. Knows no world, no
fact, and nothing of how a question is answered.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from offing.world.semantics import BY_NAME

LONGEST = 1_200
"""Code points of a question that is read."""


@dataclass(frozen=True, slots=True)
class Name:
    """An entity, by its name."""

    entity: str


@dataclass(frozen=True, slots=True)
class Of:
    """The values of a relation of what `of` denotes."""

    relation: str
    of: "Node"


@dataclass(frozen=True, slots=True)
class Pick:
    """The one among the options whose number is the greatest, or the least. One option: it denotes several things."""

    relation: str
    greatest: bool
    options: tuple["Node", ...]


Node = Name | Of | Pick


@dataclass(frozen=True, slots=True)
class Value:
    """What `node` denotes."""

    node: Node


@dataclass(frozen=True, slots=True)
class Count:
    """How many things `node` denotes."""

    node: Of


@dataclass(frozen=True, slots=True)
class Difference:
    """How far the numbers of two things are apart."""

    relation: str
    first: Node
    second: Node


@dataclass(frozen=True, slots=True)
class Sum:
    """The numbers of two things together; of a relation with many values, how many there are of both."""

    relation: str
    first: Node
    second: Node


Expression = Value | Count | Difference | Sum

Choice = Callable[[int], int]
"""Which of n wordings: a number from 0 to n - 1."""

NAME = re.compile(r"[A-Z][a-z]+ [A-Z][a-z]+")
"""An entity's name: two words, both capitalised. No phrase of the grammar looks like one."""

PHRASES: dict[str, tuple[str, ...]] = {
    "teacher": ("the teacher of {}", "the person who taught {}"),
    "home": ("the home of {}", "the town where {} lives"),
    "guild": ("the guild of {}", "the guild that {} belongs to"),
    "master": ("the master of {}", "the person who leads {}"),
    "seat": ("the seat of {}", "the town where {} meets"),
    "founder": ("the founder of {}", "the person who founded {}"),
    "twin": ("the twin town of {}", "the town that {} is twinned with"),
    "author": ("the author of {}", "the person who wrote {}"),
    "members": ("the members of {}", "those who belong to {}"),
    "works": ("the books by {}", "the works of {}"),
    "born": ("the year of birth of {}", "the year in which {} was born"),
    "elevation": ("the elevation of {}", "the height above the sea of {}"),
}

POSSESSIVES: dict[str, str] = {
    "teacher": "teacher",
    "home": "home town",
    "guild": "guild",
    "master": "master",
    "seat": "seat",
    "founder": "founder",
    "twin": "twin town",
    "author": "author",
    "members": "members",
    "works": "books",
    "born": "year of birth",
    "elevation": "elevation",
}
"""After a name, or after another possessive: `Velan Torsk's teacher's guild`."""

PICKS: dict[tuple[str, bool, int], tuple[str, ...]] = {
    ("born", False, 2): ("the older of {} and {}", "whichever of {} and {} was born first"),
    ("born", True, 2): ("the younger of {} and {}", "whichever of {} and {} was born last"),
    ("born", False, 3): ("the oldest of {}, {} and {}",),
    ("born", True, 3): ("the youngest of {}, {} and {}",),
    ("born", False, 1): ("the eldest among {}", "the first-born of {}"),
    ("born", True, 1): ("the youngest among {}", "the last-born of {}"),
    ("elevation", True, 2): ("the higher of {} and {}", "whichever of {} and {} lies higher"),
    ("elevation", False, 2): ("the lower of {} and {}", "whichever of {} and {} lies lower"),
    ("elevation", True, 3): ("the highest of {}, {} and {}",),
    ("elevation", False, 3): ("the lowest of {}, {} and {}",),
}
"""By relation, greatest, and number of options."""

DIRECT: dict[str, tuple[str, ...]] = {
    "teacher": ("Who taught {}?",),
    "home": ("Where does {} live?", "In which town does {} live?"),
    "guild": ("Which guild does {} belong to?",),
    "master": ("Who leads {}?",),
    "seat": ("Where does {} meet?", "In which town is the hall of {}?"),
    "founder": ("Who founded {}?",),
    "twin": ("Which town is {} twinned with?",),
    "author": ("Who wrote {}?",),
    "members": ("Who belongs to {}?",),
    "works": ("Which books did {} write?",),
    "born": ("When was {} born?", "In which year was {} born?"),
    "elevation": ("How many metres above the sea does {} lie?", "How high does {} lie?"),
}
"""Whole questions whose last step is the relation."""

VALUES = ("What is {}?", "Name {}.", "Tell me {}.", "I want to know {}.")
PERSONS = ("Who is {}?", *VALUES)
COUNTS: dict[str, tuple[str, ...]] = {
    "members": ("How many members does {} have?", "Of how many people does {} consist?"),
    "works": ("How many books did {} write?", "How many books are by {}?"),
}
DIFFERENCES: dict[str, tuple[str, ...]] = {
    "born": (
        "How many years lie between the birth of {} and the birth of {}?",
        "By how many years do {} and {} differ in age?",
    ),
    "elevation": (
        "How many metres of elevation lie between {} and {}?",
        "By how many metres do {} and {} differ in elevation?",
    ),
}
SUMS: dict[str, tuple[str, ...]] = {
    "members": ("How many members do {} and {} have together?",),
    "works": ("How many books did {} and {} write together?",),
    "elevation": ("What do the elevations of {} and {} add up to?", "Add the elevations of {} and {}."),
}


def write(expression: Expression, choice: Choice) -> str:
    """The question in English, in the wording that `choice` takes among those that say the same."""
    match expression:
        case Value(Of(relation, inner)) if not choice(2):
            return _filled(DIRECT[relation], choice, (inner,))
        case Value(node):
            person = isinstance(node, Of) and BY_NAME[node.relation].value == "person"
            return _filled(PERSONS if person else VALUES, choice, (node,))
        case Count(Of(relation, inner)):
            return _filled(COUNTS[relation], choice, (inner,))
        case Difference(relation, first, second):
            return _filled(DIFFERENCES[relation], choice, (first, second))
        case Sum(relation, first, second):
            return _filled(SUMS[relation], choice, (first, second))


def read(question: str) -> Expression | None:
    """What a question asks. None: it is not one that the grammar can write."""
    text = " ".join(question.split())
    return _read(text) if len(text) <= LONGEST else None


def _filled(wordings: Sequence[str], choice: Choice, nodes: Sequence[Node]) -> str:
    return wordings[choice(len(wordings))].format(*(_phrase(node, choice) for node in nodes))


def _phrase(node: Node, choice: Choice) -> str:
    match node:
        case Name(entity):
            return entity
        case Of(relation, inner) if _possessable(inner) and not choice(3):
            return f"{_possessive(inner)}'s {POSSESSIVES[relation]}"
        case Of(relation, inner):
            return _filled(_flat(PHRASES[relation], inner), choice, (inner,))
        case Pick(relation, greatest, options):
            return _filled(PICKS[relation, greatest, len(options)], choice, options)


def _flat(wordings: Sequence[str], inner: Node) -> Sequence[str]:
    """Wordings that go on after their gap are for names alone: nested in one another nobody could follow them."""
    return wordings if isinstance(inner, Name) else [w for w in wordings if w.endswith("{}")]


def _possessable(node: Node) -> bool:
    """A chain of look-ups from a name: nothing in it can be mistaken for the possessor of something else."""
    return isinstance(node, Name) or (isinstance(node, Of) and _possessable(node.of))


def _possessive(node: Node) -> str:
    if isinstance(node, Name):
        return node.entity
    assert isinstance(node, Of)
    return f"{_possessive(node.of)}'s {POSSESSIVES[node.relation]}"


@dataclass(frozen=True, slots=True)
class _Form:
    """A wording and what it makes of the nodes in its gaps."""

    pieces: tuple[str, ...]
    """The literal text around the gaps: one more piece than gaps."""
    make: Callable[[tuple[Node, ...]], "Expression | Node"]


def _forms(wordings: Sequence[str], make: Callable[[tuple[Node, ...]], "Expression | Node"]) -> list[_Form]:
    return [_Form(tuple(w.split("{}")), make) for w in wordings]


def _node_forms() -> list[_Form]:
    forms = [f for r, w in PHRASES.items() for f in _forms(w, lambda nodes, r=r: Of(r, nodes[0]))]
    for (relation, greatest, _), wordings in PICKS.items():
        forms += _forms(wordings, lambda nodes, r=relation, g=greatest: Pick(r, g, nodes))
    return forms


def _question_forms() -> list[_Form]:
    forms = [f for r, w in DIRECT.items() for f in _forms(w, lambda nodes, r=r: Value(Of(r, nodes[0])))]
    forms += [f for r, w in COUNTS.items() for f in _forms(w, lambda nodes, r=r: Count(Of(r, nodes[0])))]
    forms += [f for r, w in DIFFERENCES.items() for f in _forms(w, lambda nodes, r=r: Difference(r, *nodes))]
    forms += [f for r, w in SUMS.items() for f in _forms(w, lambda nodes, r=r: Sum(r, *nodes))]
    return forms + _forms(PERSONS, lambda nodes: Value(nodes[0]))


NODE_FORMS = _node_forms()
QUESTION_FORMS = _question_forms()
AFTER_NAME = [(f"'s {noun}", relation) for relation, noun in POSSESSIVES.items()]


@lru_cache(maxsize=4_096)
def _read(text: str) -> Expression | None:
    reader = _Reader(text)
    for form in QUESTION_FORMS:
        for nodes, end in reader.gaps(form, 0):
            if end == len(text):
                made = form.make(nodes)
                assert not isinstance(made, Name | Of | Pick)
                return made
    return None


class _Reader:
    """All readings of a text at a place, each found once, so that hostile text takes no exponential time."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._seen: dict[int, list[tuple[Node, int]]] = {}

    def gaps(self, form: _Form, start: int) -> Iterator[tuple[tuple[Node, ...], int]]:
        """The nodes in a wording's gaps, and where it ends."""
        first, *rest = form.pieces
        if not self._text.startswith(first, start):
            return
        found: list[tuple[tuple[Node, ...], int]] = [((), start + len(first))]
        for piece in rest:
            found = [
                ((*nodes, node), end + len(piece))
                for nodes, at in found
                for node, end in self._nodes(at)
                if self._text.startswith(piece, end)
            ]
        yield from found

    def _nodes(self, start: int) -> list[tuple[Node, int]]:
        if start not in self._seen:
            self._seen[start] = []  # what is being read at this place cannot be part of itself
            self._seen[start] = [*self._named(start), *self._phrased(start)]
        return self._seen[start]

    def _named(self, start: int) -> Iterator[tuple[Node, int]]:
        """A name with all possessives after it: nothing but its longest reading is one that is written."""
        match = NAME.match(self._text, start)
        if match is None:
            return
        node: Node = Name(match.group())
        end = match.end()
        while after := next((a for a in AFTER_NAME if self._text.startswith(a[0], end)), None):
            node, end = Of(after[1], node), end + len(after[0])
        yield node, end

    def _phrased(self, start: int) -> Iterator[tuple[Node, int]]:
        if not self._text.startswith(("the ", "those ", "whichever "), start):
            return
        for form in NODE_FORMS:
            for nodes, end in self.gaps(form, start):
                made = form.make(nodes)
                assert isinstance(made, Of | Pick)
                yield made, end
