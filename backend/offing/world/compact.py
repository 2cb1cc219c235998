"""The words of small planners: relations `r0..`, tools `t0..`, entities `e0..` by order of first appearance.

One word is one token. What was said once keeps its words, so that a rollout only ever appends. Knows no flow: the tags
in the vocabulary are there for all of them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from offing.core.errors import InvalidInput
from offing.core.model import Unusable
from offing.world.language import Count, Difference, Expression, Name, Node, Of, Pick, Sum, Value, read
from offing.world.semantics import RELATIONS, TOOLS
from offing.world.solving import Known, entities_in

MOST_ENTITIES = 128
MOST_RECORDS = 64

TAGS = ("think", "switch", "subgoal", "action", "report", "answer", "prune", "write", "summary", "result", "plan")

WORDS = (
    *("ask", "count", "difference", "sum", "most", "least", "(", "|", ")"),
    *("none", "closed", "KEEP", "SWITCH", "stop", "go", "question", "known", "failed", "unknown", "not", "answerable"),
)

VOCABULARY: tuple[str, ...] = (
    *WORDS,
    *(f"<{tag}>" for tag in TAGS),
    *(f"</{tag}>" for tag in TAGS),
    *TAGS,
    *(f"r{i}" for i in range(len(RELATIONS))),
    *(f"t{i}" for i in range(len(TOOLS))),
    *"0123456789",
    *(f"e{i}" for i in range(MOST_ENTITIES)),
    *(f"m{i}" for i in range(MOST_RECORDS)),
)
"""Every word that can occur, each once. `m0..` are for the records of a flow's own memory."""


@dataclass(frozen=True, slots=True)
class Names:
    """Entities in order of first appearance; an entity's place in it is its word."""

    entities: tuple[str, ...] = ()

    def adding(self, entities: Iterable[str]) -> "Names":
        """With those that are new at the end; numbers are no entities. Nothing that is there moves."""
        return Names(tuple(dict.fromkeys((*self.entities, *(e for e in entities if not e.isdecimal())))))

    def word(self, entity: str) -> str:
        """`e` and its index. Raises InvalidInput for one that has not appeared, or comes too late for a word."""
        index = self.entities.index(entity) if entity in self.entities else MOST_ENTITIES
        if index >= MOST_ENTITIES:
            raise InvalidInput(
                "entity", f"{entity!r} has no word", f"Name one of the first {MOST_ENTITIES} that appeared"
            )
        return f"e{index}"


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call as a planner's words say it."""

    tool: str
    relation: str
    entity: str

    @property
    def args(self) -> dict[str, str]:
        return {"relation": self.relation, "entity": self.entity}


def names_of(question: str, known: Sequence[Known] = ()) -> Names:
    """The question's entities, then those of what was learned, in order."""
    names = Names().adding(entities_in(question))
    for fact in known:
        names = names.adding((fact.entity, *fact.values))
    return names


def question_words(question: str) -> str:
    """The question, each part in the order in which it is looked up: `ask e0 r1 r0` is relation 0 of relation 1 of e0.

    Raises InvalidInput for a question that no world asks.
    """
    expression = read(question)
    if expression is None:
        raise InvalidInput("question", "No world asks this", "Take a question of `offing world tasks`")
    return " ".join(_expression_words(expression, names_of(question)))


def call_words(tool: str, relation: str, entity: str, names: Names) -> str:
    """`t3 r1 e0`. Raises InvalidInput for a tool, relation or entity that has no word."""
    return f"{_tool_word(tool)} {relation_word(relation)} {names.word(entity)}"


def relation_word(relation: str) -> str:
    """`r` and its index. Raises InvalidInput for one that does not exist."""
    if relation not in RELATIONS:
        raise InvalidInput("relation", f"There is no relation {relation!r}", f"Use one of: {', '.join(RELATIONS)}")
    return f"r{RELATIONS.index(relation)}"


def read_call(text: str, names: Names) -> Call | Unusable:
    """Reads exactly a tool's, a relation's and an entity's word."""
    words = text.split()
    if len(words) != 3:
        return Unusable("Write a tool, a relation and an entity, such as t0 r0 e0.")
    tool, relation, entity = (
        _indexed(word, letter, among)
        for word, letter, among in zip(words, "tre", (TOOLS, RELATIONS, names.entities), strict=True)
    )
    if tool is None or relation is None or entity is None:
        wrong = words[(tool, relation, entity).index(None)]
        return Unusable(f"{wrong[:20]!r} is not a word that can stand there; write for instance t0 r0 e0.")
    return Call(tool, relation, entity)


def values_words(values: Sequence[str], names: Names, *, closed: bool = False) -> str:
    """What a tool gave: entities' words, numbers digit by digit; `none` for nothing, `closed` if there is known to be
    nothing. Raises InvalidInput for an entity that `names` lacks."""
    if not values:
        return "closed" if closed else "none"
    return " ".join(" ".join(v) if v.isdecimal() else names.word(v) for v in values)


def _tool_word(tool: str) -> str:
    if tool not in TOOLS:
        raise InvalidInput("tool", f"There is no tool {tool!r}", f"Use one of: {', '.join(TOOLS)}")
    return f"t{TOOLS.index(tool)}"


def _indexed(word: str, letter: str, among: Sequence[str]) -> str | None:
    digits = word[1:]
    if word[:1] != letter or not digits.isdecimal() or not digits.isascii() or str(int(digits[:6])) != digits:
        return None
    return among[int(digits)] if int(digits) < len(among) else None


def _expression_words(expression: Expression, names: Names) -> list[str]:
    match expression:
        case Value(node):
            return ["ask", *_node_words(node, names)]
        case Count(node):
            return ["count", *_node_words(node, names)]
        case Difference(relation, first, second):
            return _pair_words("difference", relation, (first, second), names)
        case Sum(relation, first, second):
            return _pair_words("sum", relation, (first, second), names)


def _pair_words(word: str, relation: str, nodes: Sequence[Node], names: Names) -> list[str]:
    return [word, relation_word(relation), *_options(nodes, names)]


def _node_words(node: Node, names: Names) -> list[str]:
    match node:
        case Name(entity):
            return [names.word(entity)]
        case Of(relation, of):
            return [*_node_words(of, names), relation_word(relation)]
        case Pick(relation, greatest, options):
            return ["most" if greatest else "least", relation_word(relation), *_options(options, names)]


def _options(nodes: Sequence[Node], names: Names) -> list[str]:
    words = ["("]
    for index, node in enumerate(nodes):
        words += ["|", *_node_words(node, names)] if index else _node_words(node, names)
    return [*words, ")"]
