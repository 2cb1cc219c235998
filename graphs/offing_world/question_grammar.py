"""The grammar of the questions: expressions and their English wordings.

The same wordings render a question and parse it:
`parse_question(render_expression(expression, choose_wording)) == expression`. The module
uses no world and no facts.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from offing_world.semantics import RELATIONS_BY_NAME

MAX_QUESTION_CHARS = 3_000
"""Maximum number of characters of a question that is parsed."""


@dataclass(frozen=True, slots=True)
class EntityName:
    """An entity, given by its name."""

    entity: str


@dataclass(frozen=True, slots=True)
class RelationOf:
    """The values of a relation of the entities that `subject` denotes."""

    relation: str
    subject: "Node"


@dataclass(frozen=True, slots=True)
class Superlative:
    """The option with the greatest or the least number. A single option denotes several entities."""

    relation: str
    greatest: bool
    options: tuple["Node", ...]


Node = EntityName | RelationOf | Superlative


@dataclass(frozen=True, slots=True)
class Value:
    """What `node` denotes."""

    node: Node


@dataclass(frozen=True, slots=True)
class Count:
    """The number of entities that `node` denotes."""

    node: RelationOf


@dataclass(frozen=True, slots=True)
class Difference:
    """The absolute difference of the numbers of two entities."""

    relation: str
    first: Node
    second: Node


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of the numbers of two entities.

    For a multi-valued relation, the sum of their numbers of values.
    """

    relation: str
    first: Node
    second: Node


Expression = Value | Count | Difference | Sum

WordingChooser = Callable[[int], int]
"""Selects one of n wordings by returning a number from 0 to n - 1."""

NAME_PATTERN = re.compile(r"[A-Z][a-z]+ [A-Z][a-z]+")
"""The name of an entity: two capitalized words. No wording of the grammar matches it."""

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
"""Wordings after a name or after another possessive, such as `Velan Torsk's teacher's guild`."""

SUPERLATIVES: dict[tuple[str, bool, int], tuple[str, ...]] = {
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
"""Wordings by relation, by whether the greatest is asked for, and by number of options."""

DIRECT_QUESTIONS: dict[str, tuple[str, ...]] = {
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
"""Wordings of whole questions whose last step is the relation."""

VALUE_WORDINGS = ("What is {}?", "Name {}.", "Tell me {}.", "I want to know {}.")
PERSON_WORDINGS = ("Who is {}?", *VALUE_WORDINGS)
COUNT_WORDINGS: dict[str, tuple[str, ...]] = {
    "members": ("How many members does {} have?", "Of how many people does {} consist?"),
    "works": ("How many books did {} write?", "How many books are by {}?"),
}
DIFFERENCE_WORDINGS: dict[str, tuple[str, ...]] = {
    "born": (
        "How many years lie between the birth of {} and the birth of {}?",
        "By how many years do {} and {} differ in age?",
    ),
    "elevation": (
        "How many metres of elevation lie between {} and {}?",
        "By how many metres do {} and {} differ in elevation?",
    ),
}
SUM_WORDINGS: dict[str, tuple[str, ...]] = {
    "members": ("How many members do {} and {} have together?",),
    "works": ("How many books did {} and {} write together?",),
    "elevation": ("What do the elevations of {} and {} add up to?", "Add the elevations of {} and {}."),
}


def render_expression(expression: Expression, choose_wording: WordingChooser) -> str:
    """Render an expression as an English question.

    `choose_wording` selects among equivalent wordings.
    """
    match expression:
        case Value(RelationOf(relation, inner)) if not choose_wording(2):
            return _fill_wording(DIRECT_QUESTIONS[relation], choose_wording, (inner,))
        case Value(node):
            person = isinstance(node, RelationOf) and RELATIONS_BY_NAME[node.relation].value == "person"
            return _fill_wording(PERSON_WORDINGS if person else VALUE_WORDINGS, choose_wording, (node,))
        case Count(RelationOf(relation, inner)):
            return _fill_wording(COUNT_WORDINGS[relation], choose_wording, (inner,))
        case Difference(relation, first, second):
            return _fill_wording(DIFFERENCE_WORDINGS[relation], choose_wording, (first, second))
        case Sum(relation, first, second):
            return _fill_wording(SUM_WORDINGS[relation], choose_wording, (first, second))


def parse_question(question: str) -> Expression | None:
    """Parse a question. Returns `None` if the grammar cannot produce it."""
    text = " ".join(question.split())
    return _parse(text) if len(text) <= MAX_QUESTION_CHARS else None


def _fill_wording(wordings: Sequence[str], choose_wording: WordingChooser, nodes: Sequence[Node]) -> str:
    return wordings[choose_wording(len(wordings))].format(*(_render_node(node, choose_wording) for node in nodes))


def _render_node(node: Node, choose_wording: WordingChooser) -> str:
    match node:
        case EntityName(entity):
            return entity
        case RelationOf(relation, inner) if _can_be_possessive(inner) and not choose_wording(3):
            return f"{_render_possessive(inner)}'s {POSSESSIVES[relation]}"
        case RelationOf(relation, inner):
            return _fill_wording(_select_wordings(PHRASES[relation], inner), choose_wording, (inner,))
        case Superlative(relation, greatest, options):
            return _fill_wording(SUPERLATIVES[relation, greatest, len(options)], choose_wording, options)


def _select_wordings(wordings: Sequence[str], inner: Node) -> Sequence[str]:
    """Return the wordings that may contain `inner`.

    Wordings that continue after their gap are used for names only, because nesting them would
    make the question unreadable.
    """
    return wordings if isinstance(inner, EntityName) else [w for w in wordings if w.endswith("{}")]


def _can_be_possessive(node: Node) -> bool:
    """Return whether a node is a chain of look-ups from a name, so that a possessive is unambiguous."""
    return isinstance(node, EntityName) or (isinstance(node, RelationOf) and _can_be_possessive(node.subject))


def _render_possessive(node: Node) -> str:
    if isinstance(node, EntityName):
        return node.entity
    assert isinstance(node, RelationOf)
    return f"{_render_possessive(node.subject)}'s {POSSESSIVES[node.relation]}"


@dataclass(frozen=True, slots=True)
class _WordingPattern:
    """A wording with the function that builds a node from the nodes in its gaps."""

    literals: tuple[str, ...]
    """The literal text around the gaps. There is one literal more than there are gaps."""
    build: Callable[[tuple[Node, ...]], "Expression | Node"]


def _build_patterns(
    wordings: Sequence[str], build: Callable[[tuple[Node, ...]], "Expression | Node"]
) -> list[_WordingPattern]:
    return [_WordingPattern(tuple(w.split("{}")), build) for w in wordings]


def _build_node_patterns() -> list[_WordingPattern]:
    forms = [f for r, w in PHRASES.items() for f in _build_patterns(w, lambda nodes, r=r: RelationOf(r, nodes[0]))]
    for (relation, greatest, _), wordings in SUPERLATIVES.items():
        forms += _build_patterns(wordings, lambda nodes, r=relation, g=greatest: Superlative(r, g, nodes))
    return forms


def _build_question_patterns() -> list[_WordingPattern]:
    forms = [
        f
        for r, w in DIRECT_QUESTIONS.items()
        for f in _build_patterns(w, lambda nodes, r=r: Value(RelationOf(r, nodes[0])))
    ]
    forms += [
        f
        for r, w in COUNT_WORDINGS.items()
        for f in _build_patterns(w, lambda nodes, r=r: Count(RelationOf(r, nodes[0])))
    ]
    forms += [
        f for r, w in DIFFERENCE_WORDINGS.items() for f in _build_patterns(w, lambda nodes, r=r: Difference(r, *nodes))
    ]
    forms += [f for r, w in SUM_WORDINGS.items() for f in _build_patterns(w, lambda nodes, r=r: Sum(r, *nodes))]
    return forms + _build_patterns(PERSON_WORDINGS, lambda nodes: Value(nodes[0]))


NODE_PATTERNS = _build_node_patterns()
QUESTION_PATTERNS = _build_question_patterns()
POSSESSIVE_SUFFIXES = [(f"'s {noun}", relation) for relation, noun in POSSESSIVES.items()]


@lru_cache(maxsize=4_096)
def _parse(text: str) -> Expression | None:
    reader = _Parser(text)
    for form in QUESTION_PATTERNS:
        for nodes, end in reader.iter_matches(form, 0):
            if end == len(text):
                expression = form.build(nodes)
                assert not isinstance(expression, EntityName | RelationOf | Superlative)
                return expression
    return None


class _Parser:
    """A parser that finds all readings of a text at a position.

    Each reading is computed once, so that hostile text does not take exponential time.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._parsed: dict[int, list[tuple[Node, int]]] = {}

    def iter_matches(self, pattern: _WordingPattern, start: int) -> Iterator[tuple[tuple[Node, ...], int]]:
        """Yield the nodes in the gaps of a wording, with the end of the match."""
        first, *rest = pattern.literals
        if not self._text.startswith(first, start):
            return
        matches: list[tuple[tuple[Node, ...], int]] = [((), start + len(first))]
        for literal in rest:
            matches = [
                ((*nodes, node), end + len(literal))
                for nodes, at in matches
                for node, end in self._parse_nodes(at)
                if self._text.startswith(literal, end)
            ]
        yield from matches

    def _parse_nodes(self, start: int) -> list[tuple[Node, int]]:
        if start not in self._parsed:
            self._parsed[start] = []  # a node that is being parsed at this position cannot be a part of itself
            self._parsed[start] = [*self._parse_name(start), *self._parse_phrase(start)]
        return self._parsed[start]

    def _parse_name(self, start: int) -> Iterator[tuple[Node, int]]:
        """Yield a name with all possessives after it.

        Only the longest reading can be a rendered question.
        """
        match = NAME_PATTERN.match(self._text, start)
        if match is None:
            return
        node: Node = EntityName(match.group())
        end = match.end()
        while after := next((a for a in POSSESSIVE_SUFFIXES if self._text.startswith(a[0], end)), None):
            node, end = RelationOf(after[1], node), end + len(after[0])
        yield node, end

    def _parse_phrase(self, start: int) -> Iterator[tuple[Node, int]]:
        if not self._text.startswith(("the ", "those ", "whichever "), start):
            return
        for form in NODE_PATTERNS:
            for nodes, end in self.iter_matches(form, start):
                node = form.build(nodes)
                assert isinstance(node, RelationOf | Superlative)
                yield node, end
