"""The compact words of small planners for relations, tools and entities.

Relations are `r0..`, tools are `t0..`, and entities are `e0..` in order of first
appearance. One word is one token. A word keeps its meaning during a rollout, so that a
rollout only appends. The tags in the vocabulary serve every graph.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from offing.core.errors import InvalidInput
from offing.core.model import InvalidOutput
from offing_world.question_grammar import (
    Count,
    Difference,
    EntityName,
    Expression,
    Node,
    RelationOf,
    Sum,
    Superlative,
    Value,
    parse_question,
)
from offing_world.question_solver import KnownFact, extract_entities
from offing_world.semantics import COMPACT_RELATIONS, RELATIONS, TOOLS

MAX_ENTITIES = 128
MAX_RECORDS = 64

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
    *(f"e{i}" for i in range(MAX_ENTITIES)),
    *(f"m{i}" for i in range(MAX_RECORDS)),
    *(f"r{i}" for i in range(len(RELATIONS), len(COMPACT_RELATIONS))),
)
"""Every word that can occur, once. `m0..` are the records of a graph's memory.

Words that are added stand at the end, so that the others keep their numbers.
"""


@dataclass(frozen=True, slots=True)
class EntityIndex:
    """The entities of a question in order of first appearance. The index of an entity is its word."""

    entities: tuple[str, ...] = ()

    def with_entities(self, entities: Iterable[str]) -> "EntityIndex":
        """Return an index with the new entities appended.

        Numbers are skipped. The entities that the index already has keep their positions.
        """
        return EntityIndex(tuple(dict.fromkeys((*self.entities, *(e for e in entities if not e.isdecimal())))))

    def entity_word(self, entity: str) -> str:
        """Return `e` and the index of an entity.

        Raises `InvalidInput` if the entity has not appeared or its index is too large for the
        vocabulary.
        """
        index = self.entities.index(entity) if entity in self.entities else MAX_ENTITIES
        if index >= MAX_ENTITIES:
            raise InvalidInput(
                "entity", f"{entity!r} has no word", f"Name one of the first {MAX_ENTITIES} that appeared"
            )
        return f"e{index}"


@dataclass(frozen=True, slots=True)
class CompactCall:
    """A tool call in the words of a small planner."""

    tool: str
    relation: str
    entity: str

    @property
    def args(self) -> dict[str, str]:
        return {"relation": self.relation, "entity": self.entity}


def build_entity_index(question: str, known: Sequence[KnownFact] = ()) -> EntityIndex:
    """Return the entities of the question, followed by the entities of the known facts."""
    names = EntityIndex().with_entities(extract_entities(question))
    for fact in known:
        names = names.with_entities((fact.entity, *fact.values))
    return names


def render_compact_question(question: str) -> str:
    """Render a question as words, each part in the order in which it is looked up.

    `ask e0 r1 r0` is relation 0 of relation 1 of `e0`. Raises `InvalidInput` if the grammar
    cannot parse the question.
    """
    expression = parse_question(question)
    if expression is None:
        raise InvalidInput("question", "No world asks this", "Take a question of `offing world tasks`")
    return " ".join(_render_expression(expression, build_entity_index(question)))


def render_compact_call(tool: str, relation: str, entity: str, entity_index: EntityIndex) -> str:
    """Render a call such as `t3 r1 e0`.

    Raises `InvalidInput` if the tool, the relation or the entity has no word.
    """
    return f"{_render_tool(tool)} {render_compact_relation(relation)} {entity_index.entity_word(entity)}"


def render_compact_relation(relation: str) -> str:
    """Render a relation as `r` and its index.

    Raises `InvalidInput` if the relation does not exist.
    """
    if relation not in COMPACT_RELATIONS:
        raise InvalidInput("relation", f"There is no relation {relation!r}", f"Use one of: {', '.join(RELATIONS)}")
    return f"r{COMPACT_RELATIONS.index(relation)}"


def parse_compact_call(text: str, entity_index: EntityIndex) -> CompactCall | InvalidOutput:
    """Parse a call of exactly three words: a tool, a relation and an entity."""
    words = text.split()
    if len(words) != 3:
        return InvalidOutput("Write a tool, a relation and an entity, such as t0 r0 e0.")
    tool, relation, entity = (
        _find_by_word(word, letter, among)
        for word, letter, among in zip(words, "tre", (TOOLS, COMPACT_RELATIONS, entity_index.entities), strict=True)
    )
    if tool is None or relation is None or entity is None:
        wrong = words[(tool, relation, entity).index(None)]
        return InvalidOutput(f"{wrong[:20]!r} is not a word that can stand there; write for instance t0 r0 e0.")
    return CompactCall(tool, relation, entity)


def render_compact_values(values: Sequence[str], entity_index: EntityIndex, *, closed: bool = False) -> str:
    """Render the values of a tool result.

    Entities become their words and numbers become single digits. No values become `closed` if
    it is known that there are none, else `none`. Raises `InvalidInput` if an entity is not in
    the index.
    """
    if not values:
        return "closed" if closed else "none"
    return " ".join(" ".join(v) if v.isdecimal() else entity_index.entity_word(v) for v in values)


def _render_tool(tool: str) -> str:
    if tool not in TOOLS:
        raise InvalidInput("tool", f"There is no tool {tool!r}", f"Use one of: {', '.join(TOOLS)}")
    return f"t{TOOLS.index(tool)}"


def _find_by_word(word: str, letter: str, candidates: Sequence[str]) -> str | None:
    digits = word[1:]
    if word[:1] != letter or not digits.isdecimal() or not digits.isascii() or str(int(digits[:6])) != digits:
        return None
    return candidates[int(digits)] if int(digits) < len(candidates) else None


def _render_expression(expression: Expression, entity_index: EntityIndex) -> list[str]:
    match expression:
        case Value(node):
            return ["ask", *_render_node(node, entity_index)]
        case Count(node):
            return ["count", *_render_node(node, entity_index)]
        case Difference(relation, first, second):
            return _render_pair("difference", relation, (first, second), entity_index)
        case Sum(relation, first, second):
            return _render_pair("sum", relation, (first, second), entity_index)


def _render_pair(word: str, relation: str, nodes: Sequence[Node], entity_index: EntityIndex) -> list[str]:
    return [word, render_compact_relation(relation), *_render_options(nodes, entity_index)]


def _render_node(node: Node, entity_index: EntityIndex) -> list[str]:
    match node:
        case EntityName(entity):
            return [entity_index.entity_word(entity)]
        case RelationOf(relation, of):
            return [*_render_node(of, entity_index), render_compact_relation(relation)]
        case Superlative(relation, greatest, options):
            return [
                "most" if greatest else "least",
                render_compact_relation(relation),
                *_render_options(options, entity_index),
            ]


def _render_options(nodes: Sequence[Node], entity_index: EntityIndex) -> list[str]:
    words = ["("]
    for index, node in enumerate(nodes):
        words += ["|", *_render_node(node, entity_index)] if index else _render_node(node, entity_index)
    return [*words, ")"]
