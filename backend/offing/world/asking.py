"""Makes questions about a world: which ones, how many look-ups they take, and what is the answer.

The only home of the mix of questions. What they come to is worked out by `solving` on the truth.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from offing.world.facts import World
from offing.world.language import Count, Difference, Expression, Name, Node, Of, Pick, Sum, Value, write
from offing.world.semantics import RELATION_TABLE, Kind, Relation
from offing.world.solving import NOT_ANSWERABLE, Known, Need, answer, needs

LEAST_HOPS, MOST_HOPS = 1, 6
TRIES = 2_000
"""Drafts of one question, of which most do not come out with the hops that are wanted."""


class QuestionKind(StrEnum):
    LOOKUP = "lookup"
    """A chain of relations."""
    COMPARISON = "comparison"
    COUNTING = "counting"
    ARITHMETIC = "arithmetic"
    UNANSWERABLE = "unanswerable"
    """Something on the way is not recorded."""


SHARES = {
    QuestionKind.LOOKUP: 0.42,
    QuestionKind.COMPARISON: 0.18,
    QuestionKind.COUNTING: 0.14,
    QuestionKind.ARITHMETIC: 0.16,
    QuestionKind.UNANSWERABLE: 0.10,
}
FEWEST_HOPS = {QuestionKind.COMPARISON: 2, QuestionKind.ARITHMETIC: 2}
"""Kinds that need more than one look-up."""


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    expression: Expression
    kind: QuestionKind
    lookups: tuple[Need, ...]
    """In the order in which they can be made; each is a hop."""
    answer: str | None
    """None: not answerable."""

    @property
    def hops(self) -> int:
        return len(self.lookups)


def make_question(world: World, kind: QuestionKind, hops: int, rng: Random) -> Question | None:
    """A question of a kind that takes exactly `hops` look-ups. None: the world gave none in many tries."""
    for _ in range(TRIES):
        expression = DRAFTS[kind](world, hops, rng)
        if expression is None:
            continue
        question = _finished(world, expression, kind, rng)
        if question.hops == hops and (question.answer is None) == (kind is QuestionKind.UNANSWERABLE):
            return question
    return None


def truth(world: World, need: Need) -> Known:
    """What is true, as a right tool says it."""
    return Known(need.relation, need.entity, world.values(need.relation, need.entity), closed=True)


def _finished(world: World, expression: Expression, kind: QuestionKind, rng: Random) -> Question:
    text = write(expression, lambda n: int(rng.random() * n))
    known: list[Known] = []
    while (missing := needs(text, known)) and len(known) <= MOST_HOPS:
        known.append(truth(world, missing[0]))
    found = answer(text, known)
    lookups = tuple(Need(k.relation, k.entity) for k in known)
    return Question(text, expression, kind, lookups, None if found == NOT_ANSWERABLE else found)


SINGLE = tuple(r for r in RELATION_TABLE if not r.many and not r.numeric)
LAST = tuple(r for r in RELATION_TABLE if not r.many)
MANY = tuple(r for r in RELATION_TABLE if r.many)
NUMERIC = tuple(r for r in RELATION_TABLE if r.numeric)


@dataclass(frozen=True, slots=True)
class _Walk:
    """A part of a question and the entity, or the number, that it comes to."""

    node: Node
    at: str
    passed: tuple[str, ...]


def _start(world: World, rng: Random, kind: Kind | None = None) -> _Walk:
    among = world.members[kind or rng.choice([*world.members])]
    entity = rng.choice(among)
    return _Walk(Name(entity), entity, (entity,))


def _step(world: World, walk: _Walk, among: Sequence[Relation], rng: Random, *, recorded: bool = True) -> _Walk | None:
    """One relation on, to a place not passed yet. `recorded` False: over one that leads nowhere."""
    kind = world.kinds.get(walk.at)
    fitting = [r for r in among if r.subject == kind and bool(world.values(r.name, walk.at)) is recorded]
    if not fitting:
        return None
    relation = rng.choice(fitting)
    at = world.values(relation.name, walk.at)[0] if recorded else ""
    return None if at in walk.passed else _Walk(Of(relation.name, walk.node), at, (*walk.passed, at))


def _walk(world: World, steps: int, rng: Random, start: _Walk | None = None) -> _Walk | None:
    walk: _Walk | None = start or _start(world, rng)
    for _ in range(steps):
        walk = walk and _step(world, walk, SINGLE, rng)
    return walk


def _walk_to(world: World, kind: Kind, steps: int, rng: Random) -> _Walk | None:
    walk = _walk(world, steps, rng, None if steps else _start(world, rng, kind))
    return walk if walk and world.kinds.get(walk.at) is kind else None


def _lookup(world: World, hops: int, rng: Random) -> Expression | None:
    walk = _walk(world, hops - 1, rng)
    last = walk and _step(world, walk, LAST, rng)
    return Value(last.node) if last else None


def _unanswerable(world: World, hops: int, rng: Random) -> Expression | None:
    """A chain that leads nowhere at its last look-up, with or without a relation beyond it."""
    walk = _walk(world, hops - 1, rng)
    last = walk and _step(world, walk, LAST, rng, recorded=False)
    if last is None or not isinstance(last.node, Of):
        return None
    value = next(r.value for r in LAST if r.name == last.node.relation)
    beyond = [r for r in LAST if r.subject == value]
    return Value(Of(rng.choice(beyond).name, last.node) if beyond and rng.random() < 0.5 else last.node)


def _counting(world: World, hops: int, rng: Random) -> Expression | None:
    relation = rng.choice(MANY)
    walk = _walk_to(world, relation.subject, hops - 1, rng)
    if walk is None or (not world.values(relation.name, walk.at) and rng.random() < 0.9):
        return None
    return Count(Of(relation.name, walk.node))


def _comparison(world: World, hops: int, rng: Random) -> Expression | None:
    """One of two or three things, or of all that a list names; with a question about it beyond where hops are left."""
    relation = rng.choice(NUMERIC)
    beyond = min(rng.choice((1, 1, 2)), max(0, hops - 2))
    picked = _among_members if relation.subject is Kind.PERSON and rng.random() < 0.3 else _among_options
    walk = picked(world, relation, hops - beyond, rng)
    walk = walk and _walk(world, beyond, rng, walk)
    return Value(walk.node) if walk else None


def _among_options(world: World, relation: Relation, hops: int, rng: Random) -> _Walk | None:
    number = 3 if hops >= 3 and rng.random() < 0.5 else 2
    walks = _several(world, relation.subject, number, hops - number, rng)
    return _best(world, relation, tuple(w.node for w in walks), [w.at for w in walks], rng) if walks else None


def _among_members(world: World, relation: Relation, hops: int, rng: Random) -> _Walk | None:
    walk = _walk_to(world, Kind.GUILD, rng.choice((0, 0, 1)), rng)
    members = world.values("members", walk.at) if walk else ()
    if walk is None or len(members) < 2:
        return None
    return _best(world, relation, (Of("members", walk.node),), members, rng)


def _best(
    world: World, relation: Relation, nodes: tuple[Node, ...], entities: Sequence[str], rng: Random
) -> _Walk | None:
    """The greatest or least of distinct entities with distinct numbers."""
    numbers = {v[0]: e for e in entities if (v := world.values(relation.name, e))}
    if len(numbers) != len(entities) or len(set(entities)) != len(entities):
        return None
    greatest = rng.random() < 0.5
    best = numbers[(max if greatest else min)(numbers, key=int)]
    return _Walk(Pick(relation.name, greatest, nodes), best, tuple(entities))


def _arithmetic(world: World, hops: int, rng: Random) -> Expression | None:
    """A sum or a difference of two things' numbers."""
    make: Callable[[str, Node, Node], Expression] = rng.choice((Difference, Difference, Sum))
    relation = rng.choice([r for r in (*NUMERIC, *MANY) if (make is Sum) is (r.many or r.value is Kind.METRES)])
    walks = _several(world, relation.subject, 2, hops - 2, rng)
    if walks is None or walks[0].at == walks[1].at:
        return None
    return make(relation.name, walks[0].node, walks[1].node)


def _several(world: World, kind: Kind, number: int, steps: int, rng: Random) -> list[_Walk] | None:
    """Walks that end at things of a kind, with so many steps in all."""
    shares = [0] * number
    for _ in range(steps):
        shares[rng.randrange(number)] += 1
    walks = [w for share in shares if (w := _walk_to(world, kind, share, rng))]
    return walks if len(walks) == number else None


DRAFTS: dict[QuestionKind, Callable[[World, int, Random], Expression | None]] = {
    QuestionKind.LOOKUP: _lookup,
    QuestionKind.COMPARISON: _comparison,
    QuestionKind.COUNTING: _counting,
    QuestionKind.ARITHMETIC: _arithmetic,
    QuestionKind.UNANSWERABLE: _unanswerable,
}
