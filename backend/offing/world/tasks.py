"""Tasks for rollouts and evaluations: questions of a world with what they come to and where that is written.

The only home of how tasks are drawn: the same arguments give the same tasks, each question once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

from offing.core.errors import InvalidInput
from offing.world.asking import FEWEST_HOPS, LEAST_HOPS, MOST_HOPS, SHARES, Question, QuestionKind, make_question
from offing.world.documents import stated
from offing.world.facts import World, world_of
from offing.world.language import Expression

BARREN = 300
"""Questions in a row that were asked before, after which a world has no more of them."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where a document of the world says what a look-up gives."""

    document: str
    """Its path within the world."""
    start: int
    end: int
    """Code points of the document's text, end excluded."""
    quote: str
    relation: str
    entity: str


@dataclass(frozen=True, slots=True)
class WorldTask:
    """A question to be answered with the world's tools, or over its documents."""

    name: str
    """Its own id: the world's name, and its number there."""
    dataset: str
    split: str
    question: str
    kind: str
    hops: int
    """Look-ups that it takes when none is wasted."""
    answers: tuple[str, ...]
    """Accepted answers. Empty: it cannot be answered, and saying so is right."""
    evidence: tuple[Evidence, ...]
    scope: dict[str, Any]
    difficulty: float
    """Hops, from 1 to 6, as a share of 6."""
    tags: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """As a line of a task file has it."""
        return {**asdict(self), "answers": list(self.answers), "tags": list(self.tags)}


def tasks(
    spec: str,
    *,
    count: int | None = None,
    hops: tuple[int, int] = (1, 4),
    kinds: Sequence[str] | None = None,
    seed: int = 0,
) -> Iterator[WorldTask]:
    """Tasks of a world, as they are drawn; nothing is kept but which questions were asked.

    `count` None: without end, until the world has no more. `hops`: fewest and most look-ups, both included, each number
    as often as the others. `kinds` None: all, in the world's own mix. Raises InvalidInput for arguments that cannot be,
    and when a world has fewer such questions than `count`.
    """
    world, chosen = world_of(spec), _kinds(kinds)
    _check(hops, chosen)
    if count is not None and count < 0:
        raise InvalidInput("count", f"{count} is less than none", "Give a number of tasks, or leave it out")
    return _tasks(world, count, hops, chosen, Random(f"tasks {world.spec} {seed}"))


def _tasks(
    world: World, count: int | None, hops: tuple[int, int], kinds: Sequence[QuestionKind], rng: Random
) -> Iterator[WorldTask]:
    asked: set[Expression] = set()
    barren = 0
    while count is None or len(asked) < count:
        question = _drawn(world, hops, kinds, rng)
        if question is not None and question.expression not in asked:
            asked.add(question.expression)
            barren = 0
            yield task_of(world, question, len(asked) - 1)
        elif (barren := barren + 1) >= BARREN:
            break
    if count is not None and len(asked) < count:
        problem = f"{world.spec} has only {len(asked)} such questions that could be found"
        raise InvalidInput("count", problem, "Ask for fewer, or take a world with more documents")


def task_of(world: World, question: Question, number: int) -> WorldTask:
    """A question as a task. `number`: what it is called by in its world."""
    spec = str(world.spec)
    return WorldTask(
        name=f"{spec}/{number}",
        dataset=f"world:{spec}",
        split=str(world.spec.split),
        question=question.text,
        kind=str(question.kind),
        hops=question.hops,
        answers=() if question.answer is None else (question.answer,),
        evidence=tuple(_evidence(world, need.relation, need.entity) for need in question.lookups),
        scope={"world": spec},
        difficulty=round(question.hops / MOST_HOPS, 3),
        tags=(str(question.kind), f"hops:{question.hops}", str(world.spec.split)),
    )


def _evidence(world: World, relation: str, entity: str) -> Evidence:
    document, start, end = stated(world, relation, entity)
    return Evidence(document.path, start, end, document.text[start:end], relation, entity)


def _drawn(world: World, hops: tuple[int, int], kinds: Sequence[QuestionKind], rng: Random) -> Question | None:
    wanted = rng.randint(*hops)
    fitting = [k for k in kinds if FEWEST_HOPS.get(k, LEAST_HOPS) <= wanted]
    if not fitting:
        return None
    kind = rng.choices(fitting, [SHARES[k] for k in fitting])[0]
    return make_question(world, kind, wanted, rng)


def _kinds(kinds: Sequence[str] | None) -> tuple[QuestionKind, ...]:
    unknown = [k for k in kinds or () if k not in set(QuestionKind)]
    if unknown or (kinds is not None and not kinds):
        known = ", ".join(QuestionKind)
        raise InvalidInput(
            "kinds", f"There is no kind {unknown[0]!r}" if unknown else "No kind is given", f"Take {known}"
        )
    return tuple(QuestionKind(k) for k in kinds) if kinds else tuple(QuestionKind)


def _check(hops: tuple[int, int], kinds: Sequence[QuestionKind]) -> None:
    fewest, most = hops
    if not LEAST_HOPS <= fewest <= most <= MOST_HOPS:
        raise InvalidInput("hops", f"{fewest} to {most} cannot be", f"Take {LEAST_HOPS} to {MOST_HOPS}, such as 1-4")
    if all(FEWEST_HOPS.get(k, LEAST_HOPS) > most for k in kinds):
        raise InvalidInput("hops", f"No question of these kinds takes {most}", "Allow more hops, or other kinds")
