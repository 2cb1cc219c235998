"""Tasks for rollouts and evaluations: questions of a world with their answers and evidence.

The same arguments give the same tasks, and each question occurs once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

from offing.core.errors import InvalidInput
from offing_world.compositions import Compositions, is_included, parse_compositions
from offing_world.documents import locate_statement
from offing_world.facts import World, world_from_name
from offing_world.question_generator import (
    KIND_FRACTIONS,
    LONG_KINDS,
    MAX_HOPS,
    MAX_HOPS_BY_KIND,
    MIN_HOPS,
    MIN_HOPS_BY_KIND,
    WorldQuestion,
    WorldQuestionKind,
    generate_question,
)
from offing_world.question_grammar import Expression

MAX_REPEATED_QUESTIONS = 300
"""Number of repeated questions in a row after which a world is considered exhausted."""


@dataclass(frozen=True, slots=True)
class WorldEvidence:
    """The span of a document that states the result of a look-up."""

    document: str
    """Path of the document within the world."""
    start: int
    end: int
    """Code points of the document's text. The end is exclusive."""
    quote: str
    relation: str
    entity: str


@dataclass(frozen=True, slots=True)
class WorldTask:
    """A question to answer with the tools of the world or from its documents."""

    name: str
    """Id of the task: the name of the world and the number of the task there."""
    dataset: str
    split: str
    question: str
    kind: str
    hops: int
    """Number of look-ups of a solution that wastes none."""
    answers: tuple[str, ...]
    """Accepted answers.

    Empty means that the question cannot be answered and that the correct response is to say so.
    """
    evidence: tuple[WorldEvidence, ...]
    scope: dict[str, Any]
    difficulty: float
    """Number of hops as a fraction of 6, at most 1."""
    tags: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the task as a dictionary in the format of a task file."""
        return {**asdict(self), "answers": list(self.answers), "tags": list(self.tags)}


def generate_tasks(
    world_name: str,
    *,
    count: int | None = None,
    hops: tuple[int, int] = (1, 4),
    kinds: Sequence[str] | None = None,
    seed: int = 0,
    compositions: str = "",
) -> Iterator[WorldTask]:
    """Yield tasks of a world as they are drawn.

    Only the questions drawn so far are kept in memory. `count` is the number of tasks; `None`
    means all that the world has. `hops` is the minimum and the maximum number of look-ups, both
    inclusive; all numbers are equally likely. `kinds` restricts the kinds of questions; `None`
    means all but the long ones, chain and census, in their default fractions. `compositions` is
    `trained`, `held-out`, or `all`, which an empty string means. Raises `InvalidInput` if an
    argument is invalid or if the world has fewer such questions than `count`.
    """
    world, chosen = world_from_name(world_name), _parse_kinds(kinds)
    _check_hops(hops, chosen)
    if count is not None and count < 0:
        raise InvalidInput("count", f"{count} is less than none", "Give a number of tasks, or leave it out")
    part = parse_compositions(compositions)
    return _generate_tasks(world, count, hops, chosen, part, Random(f"tasks {world.spec.base} {seed}"))


def _generate_tasks(
    world: World,
    count: int | None,
    hops: tuple[int, int],
    kinds: Sequence[WorldQuestionKind],
    compositions: Compositions,
    rng: Random,
) -> Iterator[WorldTask]:
    drawn: set[Expression] = set()
    barren = 0
    while count is None or len(drawn) < count:
        question = _draw_question(world, hops, kinds, rng)
        if question is not None and not is_included(question.text, compositions):
            question = None
        if question is not None and question.expression not in drawn:
            drawn.add(question.expression)
            barren = 0
            yield task_from_question(world, question, len(drawn) - 1)
        elif (barren := barren + 1) >= MAX_REPEATED_QUESTIONS:
            break
    if count is not None and len(drawn) < count:
        problem = f"{world.spec} has only {len(drawn)} such questions that could be found"
        raise InvalidInput("count", problem, "Ask for fewer, or take a world with more documents")


def task_from_question(world: World, question: WorldQuestion, number: int) -> WorldTask:
    """Build a task from a question. `number` is the number of the task in its world."""
    spec = str(world.spec)
    return WorldTask(
        name=f"{spec}/{number}",
        dataset=f"world:{spec}",
        split=str(world.spec.split),
        question=question.text,
        kind=str(question.kind),
        hops=question.hops,
        answers=() if question.answer is None else (question.answer,),
        evidence=tuple(_locate_evidence(world, need.relation, need.entity) for need in question.lookups),
        scope={"environment": spec},
        difficulty=round(min(1.0, question.hops / MAX_HOPS), 3),
        tags=(str(question.kind), f"hops:{question.hops}", str(world.spec.split)),
    )


def _locate_evidence(world: World, relation: str, entity: str) -> WorldEvidence:
    document, start, end = locate_statement(world, relation, entity)
    return WorldEvidence(document.path, start, end, document.text[start:end], relation, entity)


def _draw_question(
    world: World, hops: tuple[int, int], kinds: Sequence[WorldQuestionKind], rng: Random
) -> WorldQuestion | None:
    hop_count = rng.randint(*hops)
    fitting = [k for k in kinds if MIN_HOPS_BY_KIND.get(k, MIN_HOPS) <= hop_count <= MAX_HOPS_BY_KIND.get(k, MAX_HOPS)]
    if not fitting:
        return None
    kind = rng.choices(fitting, [KIND_FRACTIONS.get(k, 1.0) for k in fitting])[0]
    return generate_question(world, kind, hop_count, rng)


def _parse_kinds(kinds: Sequence[str] | None) -> tuple[WorldQuestionKind, ...]:
    unknown = [k for k in kinds or () if k not in set(WorldQuestionKind)]
    if unknown or (kinds is not None and not kinds):
        known = ", ".join(WorldQuestionKind)
        raise InvalidInput(
            "kinds", f"There is no kind {unknown[0]!r}" if unknown else "No kind is given", f"Take {known}"
        )
    if kinds:
        return tuple(WorldQuestionKind(k) for k in kinds)
    return tuple(kind for kind in WorldQuestionKind if kind not in LONG_KINDS)


def _check_hops(hops: tuple[int, int], kinds: Sequence[WorldQuestionKind]) -> None:
    min_hops, max_hops = hops
    most = max(MAX_HOPS_BY_KIND.get(k, MAX_HOPS) for k in kinds)
    if not MIN_HOPS <= min_hops <= max_hops <= most:
        longer = "" if most > MAX_HOPS else f". Kinds with more are {', '.join(sorted(LONG_KINDS))}"
        raise InvalidInput("hops", f"{min_hops} to {max_hops} cannot be", f"Take {MIN_HOPS} to {most}{longer}")
    if all(MIN_HOPS_BY_KIND.get(k, MIN_HOPS) > max_hops for k in kinds):
        raise InvalidInput("hops", f"No question of these kinds takes {max_hops}", "Allow more hops, or other kinds")
