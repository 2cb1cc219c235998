"""Generate questions about a world, each with its number of look-ups and its answer.

The mix of question kinds is defined here. `question_solver` computes the answers from the
facts of the world.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from offing_world.facts import World
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
    render_expression,
)
from offing_world.question_solver import NOT_ANSWERABLE, KnownFact, LookUp, find_answer, find_missing_look_ups
from offing_world.semantics import RELATION_TABLE, EntityKind, Relation

MIN_HOPS, MAX_HOPS = 1, 6
MAX_LONG_HOPS = 120
"""Maximum number of hops of a chain or a census. The compact format has words for 128 entities."""
MAX_ATTEMPTS = 2_000
"""Maximum number of expressions that are drawn for one question.

Most of them do not have the requested number of hops.
"""
MAX_STEP_ATTEMPTS = 20
"""Maximum number of relations that are drawn for one step of a long chain."""


class WorldQuestionKind(StrEnum):
    LOOKUP = "lookup"
    """A chain of relations."""
    COMPARISON = "comparison"
    COUNTING = "counting"
    ARITHMETIC = "arithmetic"
    UNANSWERABLE = "unanswerable"
    """A value that the question depends on is not recorded."""
    CHAIN = "chain"
    """A chain of relations of any length up to `MAX_LONG_HOPS`."""
    CENSUS = "census"
    """A count over the members of one or two guilds, which takes a look-up for each member."""


LONG_KINDS = frozenset({WorldQuestionKind.CHAIN, WorldQuestionKind.CENSUS})
"""Kinds that are drawn only if they are named."""

KIND_FRACTIONS = {
    WorldQuestionKind.LOOKUP: 0.42,
    WorldQuestionKind.COMPARISON: 0.18,
    WorldQuestionKind.COUNTING: 0.14,
    WorldQuestionKind.ARITHMETIC: 0.16,
    WorldQuestionKind.UNANSWERABLE: 0.10,
}
"""How often each kind is drawn. Named kinds that are not listed are equally frequent."""
MIN_HOPS_BY_KIND = {
    WorldQuestionKind.COMPARISON: 2,
    WorldQuestionKind.ARITHMETIC: 2,
    WorldQuestionKind.CHAIN: 2,
    WorldQuestionKind.CENSUS: 3,
}
"""Minimum number of hops of the kinds that need more than one look-up."""
MAX_HOPS_BY_KIND = {WorldQuestionKind.CHAIN: MAX_LONG_HOPS, WorldQuestionKind.CENSUS: 14}
"""Maximum number of hops of the kinds that may take more than `MAX_HOPS`."""


@dataclass(frozen=True, slots=True)
class WorldQuestion:
    text: str
    expression: Expression
    kind: WorldQuestionKind
    lookups: tuple[LookUp, ...]
    """The look-ups in an order in which they can be made. Each look-up is one hop."""
    answer: str | None
    """The short answer. `None` means that the question cannot be answered."""

    @property
    def hops(self) -> int:
        return len(self.lookups)


def generate_question(world: World, kind: WorldQuestionKind, hops: int, rng: Random) -> WorldQuestion | None:
    """Generate a question of a kind that takes exactly `hops` look-ups.

    Returns `None` if no such question was drawn within `MAX_ATTEMPTS`.
    """
    for _ in range(MAX_ATTEMPTS):
        expression = EXPRESSION_GENERATORS[kind](world, hops, rng)
        if expression is None:
            continue
        question = _build_question(world, expression, kind, rng)
        if question.hops == hops and (question.answer is None) == (kind is WorldQuestionKind.UNANSWERABLE):
            return question
    return None


def build_true_fact(world: World, look_up: LookUp) -> KnownFact:
    """Return the fact as a tool that answers the relation reports it."""
    return KnownFact(look_up.relation, look_up.entity, world.find_values(look_up.relation, look_up.entity), closed=True)


def _build_question(world: World, expression: Expression, kind: WorldQuestionKind, rng: Random) -> WorldQuestion:
    text = render_expression(expression, lambda n: int(rng.random() * n))
    known: list[KnownFact] = []
    limit = MAX_HOPS_BY_KIND.get(kind, MAX_HOPS)
    while (missing := find_missing_look_ups(text, known)) and len(known) <= limit:
        known.append(build_true_fact(world, missing[0]))
    short_answer = find_answer(text, known)
    lookups = tuple(LookUp(k.relation, k.entity) for k in known)
    return WorldQuestion(text, expression, kind, lookups, None if short_answer == NOT_ANSWERABLE else short_answer)


SINGLE_ENTITY_RELATIONS = tuple(r for r in RELATION_TABLE if not r.multi_valued and not r.is_numeric)
SINGLE_VALUE_RELATIONS = tuple(r for r in RELATION_TABLE if not r.multi_valued)
MULTI_VALUE_RELATIONS = tuple(r for r in RELATION_TABLE if r.multi_valued)
NUMERIC_RELATIONS = tuple(r for r in RELATION_TABLE if r.is_numeric)


@dataclass(frozen=True, slots=True)
class _Walk:
    """A part of a question with the entity or number that it denotes."""

    node: Node
    endpoint: str
    visited: tuple[str, ...]


def _start_walk(world: World, rng: Random, kind: EntityKind | None = None) -> _Walk:
    among = world.members[kind or rng.choice([*world.members])]
    entity = rng.choice(among)
    return _Walk(EntityName(entity), entity, (entity,))


def _extend_walk(
    world: World, walk: _Walk, relations: Sequence[Relation], rng: Random, *, recorded: bool = True
) -> _Walk | None:
    """Extend a walk by one relation to an entity that it has not visited.

    If `recorded` is false, the relation is one that has no recorded value. Returns `None` if
    there is no such relation.
    """
    kind = world.kinds.get(walk.endpoint)
    fitting = [r for r in relations if r.subject == kind and bool(world.find_values(r.name, walk.endpoint)) is recorded]
    if not fitting:
        return None
    relation = rng.choice(fitting)
    at = world.find_values(relation.name, walk.endpoint)[0] if recorded else ""
    return None if at in walk.visited else _Walk(RelationOf(relation.name, walk.node), at, (*walk.visited, at))


def _build_walk(world: World, steps: int, rng: Random, start: _Walk | None = None) -> _Walk | None:
    walk: _Walk | None = start or _start_walk(world, rng)
    for _ in range(steps):
        walk = walk and _extend_walk(world, walk, SINGLE_ENTITY_RELATIONS, rng)
    return walk


def _build_walk_to_kind(world: World, kind: EntityKind, steps: int, rng: Random) -> _Walk | None:
    walk = _build_walk(world, steps, rng, None if steps else _start_walk(world, rng, kind))
    return walk if walk and world.kinds.get(walk.endpoint) is kind else None


def _generate_lookup(world: World, hops: int, rng: Random) -> Expression | None:
    walk = _build_walk(world, hops - 1, rng)
    last = walk and _extend_walk(world, walk, SINGLE_VALUE_RELATIONS, rng)
    return Value(last.node) if last else None


def _generate_chain(world: World, hops: int, rng: Random) -> Expression | None:
    """Generate a chain of relations. A step that leads nowhere new is drawn again, or long chains would be rare."""
    walk: _Walk | None = _start_walk(world, rng)
    for step in range(hops):
        relations = SINGLE_VALUE_RELATIONS if step == hops - 1 else SINGLE_ENTITY_RELATIONS
        draws = (_extend_walk(world, walk, relations, rng) for _ in range(MAX_STEP_ATTEMPTS))
        walk = next((drawn for drawn in draws if drawn), None)
        if walk is None:
            return None
    return Value(walk.node)


def _generate_census(world: World, hops: int, rng: Random) -> Expression | None:
    """Generate the number of books by all members of a guild, or of two guilds together."""
    guilds = rng.sample(world.members[EntityKind.GUILD], 2)
    sizes = [1 + len(world.find_values("members", guild)) for guild in guilds]
    nodes = [RelationOf("members", EntityName(guild)) for guild in guilds]
    if min(sizes) < 2 or hops not in (sizes[0], sum(sizes)):
        return None
    return Count(RelationOf("works", nodes[0])) if hops == sizes[0] else Sum("works", nodes[0], nodes[1])


def _generate_unanswerable(world: World, hops: int, rng: Random) -> Expression | None:
    """Generate a chain of relations whose last look-up has no value.

    Sometimes the chain has another relation beyond it.
    """
    walk = _build_walk(world, hops - 1, rng)
    last = walk and _extend_walk(world, walk, SINGLE_VALUE_RELATIONS, rng, recorded=False)
    if last is None or not isinstance(last.node, RelationOf):
        return None
    value = next(r.value for r in SINGLE_VALUE_RELATIONS if r.name == last.node.relation)
    beyond = [r for r in SINGLE_VALUE_RELATIONS if r.subject == value]
    return Value(RelationOf(rng.choice(beyond).name, last.node) if beyond and rng.random() < 0.5 else last.node)


def _generate_counting(world: World, hops: int, rng: Random) -> Expression | None:
    relation = rng.choice(MULTI_VALUE_RELATIONS)
    walk = _build_walk_to_kind(world, relation.subject, hops - 1, rng)
    if walk is None or (not world.find_values(relation.name, walk.endpoint) and rng.random() < 0.9):
        return None
    return Count(RelationOf(relation.name, walk.node))


def _generate_comparison(world: World, hops: int, rng: Random) -> Expression | None:
    """Generate a comparison of two or three options or of all members of a list.

    If hops are left, the question asks for a property of the entity that the comparison
    selects.
    """
    relation = rng.choice(NUMERIC_RELATIONS)
    beyond = min(rng.choice((1, 1, 2)), max(0, hops - 2))
    picked = _compare_members if relation.subject is EntityKind.PERSON and rng.random() < 0.3 else _compare_options
    walk = picked(world, relation, hops - beyond, rng)
    walk = walk and _build_walk(world, beyond, rng, walk)
    return Value(walk.node) if walk else None


def _compare_options(world: World, relation: Relation, hops: int, rng: Random) -> _Walk | None:
    number = 3 if hops >= 3 and rng.random() < 0.5 else 2
    walks = _build_walks(world, relation.subject, number, hops - number, rng)
    return (
        _select_extreme(world, relation, tuple(w.node for w in walks), [w.endpoint for w in walks], rng)
        if walks
        else None
    )


def _compare_members(world: World, relation: Relation, hops: int, rng: Random) -> _Walk | None:
    walk = _build_walk_to_kind(world, EntityKind.GUILD, rng.choice((0, 0, 1)), rng)
    members = world.find_values("members", walk.endpoint) if walk else ()
    if walk is None or len(members) < 2:
        return None
    return _select_extreme(world, relation, (RelationOf("members", walk.node),), members, rng)


def _select_extreme(
    world: World, relation: Relation, nodes: tuple[Node, ...], entities: Sequence[str], rng: Random
) -> _Walk | None:
    """Select the entity with the greatest or the least number.

    Returns `None` unless the entities and their numbers are distinct.
    """
    numbers = {v[0]: e for e in entities if (v := world.find_values(relation.name, e))}
    if len(numbers) != len(entities) or len(set(entities)) != len(entities):
        return None
    greatest = rng.random() < 0.5
    best = numbers[(max if greatest else min)(numbers, key=int)]
    return _Walk(Superlative(relation.name, greatest, nodes), best, tuple(entities))


def _generate_arithmetic(world: World, hops: int, rng: Random) -> Expression | None:
    """Generate the sum or the difference of the numbers of two entities."""
    make: Callable[[str, Node, Node], Expression] = rng.choice((Difference, Difference, Sum))
    relation = rng.choice(
        [
            r
            for r in (*NUMERIC_RELATIONS, *MULTI_VALUE_RELATIONS)
            if (make is Sum) is (r.multi_valued or r.value is EntityKind.METERS)
        ]
    )
    walks = _build_walks(world, relation.subject, 2, hops - 2, rng)
    if walks is None or walks[0].endpoint == walks[1].endpoint:
        return None
    return make(relation.name, walks[0].node, walks[1].node)


def _build_walks(world: World, kind: EntityKind, count: int, steps: int, rng: Random) -> list[_Walk] | None:
    """Build walks that end at entities of one kind and have `steps` steps in total."""
    shares = [0] * count
    for _ in range(steps):
        shares[rng.randrange(count)] += 1
    walks = [w for share in shares if (w := _build_walk_to_kind(world, kind, share, rng))]
    return walks if len(walks) == count else None


EXPRESSION_GENERATORS: dict[WorldQuestionKind, Callable[[World, int, Random], Expression | None]] = {
    WorldQuestionKind.LOOKUP: _generate_lookup,
    WorldQuestionKind.COMPARISON: _generate_comparison,
    WorldQuestionKind.COUNTING: _generate_counting,
    WorldQuestionKind.ARITHMETIC: _generate_arithmetic,
    WorldQuestionKind.UNANSWERABLE: _generate_unanswerable,
    WorldQuestionKind.CHAIN: _generate_chain,
    WorldQuestionKind.CENSUS: _generate_census,
}
