"""Learning from judged runs: read them, compare them, register what comes of it as a candidate.

The only home of that order. What is active is never changed by it; a name's first version is empty and active, so that
candidates are gated against bare prompts, and going back restores them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID

from offing.core.errors import InvalidInput
from offing.core.model import EngineChoice, EngineFailure, answering
from offing.core.prompt_library import Library, edited, told_experiences, with_cases
from offing.core.step import Step
from offing.models.engine import Meter, RoleRequest, engine_for
from offing.services import promotion, prompt_library
from offing.services.prompt_library import Stored
from offing.storage import rated_runs, steps, views
from offing.storage.policy_versions import VersionRow
from offing.storage.pool import Database
from offing.storage.rated_runs import RatedRun
from offing_trainer.prompts.comparing import Group, cases_of, groups_of, lines_of
from offing_trainer.prompts.distiller import DISTILLER, Attempt, Comparison, Lesson

MOST_RUNS = 5_000
"""Judged runs that are looked at: the newest."""

MOST_STEPS = 400
"""Of one run."""

MOST_SEEN = 10_000
"""Groups that a version remembers having learned from."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to learn from, and how."""

    name: str
    engine: EngineChoice
    """Who compares."""
    graph: str | None = None
    tag: str | None = None
    """Of batches. None: any."""
    groups: int = 50
    """At most."""
    cases: bool = True
    """Whether runs are remembered as cases, too."""
    usd: float | None = None
    """Money of all comparisons together, after which no further one is begun. None: the tenant's cap alone."""


@dataclass(frozen=True, slots=True)
class Learned:
    """What came of it."""

    version: VersionRow | None
    """The candidate. None: nothing was learned."""
    parent: VersionRow
    library: Library
    compared: int
    edits: int
    refused: tuple[str, ...]
    """Changes that could not be made, and why."""
    stopped: str = ""
    """Why fewer groups were compared than there are. Empty: all were."""


@dataclass(frozen=True, slots=True)
class _Course:
    """How far the comparisons are."""

    library: Library
    seen: tuple[str, ...] = ()
    compared: int = 0
    edits: int = 0
    refused: tuple[str, ...] = ()
    usd: float = 0.0
    stopped: str = ""


async def begun(database: Database, tenant: UUID, name: str, folder: Path) -> Stored:
    """The version to learn on from; a new name gets an empty one, which is active."""
    if (found := await prompt_library.latest(database, tenant, name)) is not None:
        return found
    row, _ = await prompt_library.register(database, tenant, name, Library(), folder)
    row, _ = await promotion.promote(database, tenant, f"{row.name}@{row.version}")
    return Stored(row, Library())


async def learn(database: Database, tenant: UUID, wanted: Wanted, folder: Path, meter: Meter) -> Learned:
    """Make a candidate out of judged runs that the present version has not learned from.

    An engine that fails ends the comparisons; what was learned before is kept. Raises InvalidInput where nothing was
    judged.
    """
    runs = await judged(database, tenant, wanted)
    parent = await begun(database, tenant, wanted.name, folder)
    before = frozenset(parent.version.lineage.get("seen", ()))
    told = [group for group in groups_of(runs) if group.digest not in before]
    course = _Course(parent.library)
    for group in told:
        if course.stopped or (group.telling and course.compared >= wanted.groups):
            course = course if course.stopped else replace(course, stopped=f"{wanted.groups} groups were asked for")
            break
        course = await _compared(database, tenant, wanted, group, course, meter)
    version = None
    if course.library != parent.library:
        lineage = _lineage(wanted, parent.version, course)
        version, _ = await prompt_library.register(
            database, tenant, wanted.name, course.library, folder, parent=parent.version.id, lineage=lineage
        )
    return Learned(
        version, parent.version, course.library, course.compared, course.edits, course.refused, course.stopped
    )


async def judged(database: Database, tenant: UUID, wanted: Wanted) -> list[RatedRun]:
    """Scored rollouts, and people's rated runs where the tenant lets them be learned from. Raises InvalidInput."""
    async with database.transaction(tenant) as connection:
        opted_in = (await views.tenant(connection, tenant)).training_opt_in
        found = await rated_runs.collected(connection, wanted.graph, wanted.tag, MOST_RUNS)
        asked = [] if wanted.tag else await rated_runs.asked(connection, wanted.graph, MOST_RUNS)
    if asked and not opted_in and not found:
        problem = f"{len(asked)} rated runs are people's own, and `training_opt_in` is off"
        raise InvalidInput("training_opt_in", problem, "Switch it on in the settings, or collect rollouts.")
    if not found and not asked:
        raise InvalidInput("runs", "none was judged", "Rate reports, or collect scored rollouts with `offing rollout`.")
    return [*found, *(asked if opted_in else [])]


async def _compared(
    database: Database, tenant: UUID, wanted: Wanted, group: Group, course: _Course, meter: Meter
) -> _Course:
    """The course after one group: its cases, and what its comparison teaches if it can teach anything."""
    did = await _steps(database, tenant, group.extremes)
    if group.telling:
        course = await _taught(wanted, group, did, course, meter)
    if course.stopped:
        return course
    cases = cases_of(group, did) if wanted.cases else []
    return replace(course, library=with_cases(course.library, cases), seen=(*course.seen, group.digest))


async def _taught(
    wanted: Wanted, group: Group, did: Mapping[UUID, Sequence[Step]], course: _Course, meter: Meter
) -> _Course:
    if wanted.usd is not None and course.usd >= wanted.usd:
        return replace(course, stopped=f"{course.usd:.4f} USD were spent")
    engine = engine_for(wanted.engine)
    if isinstance(engine, EngineFailure):
        return replace(course, stopped=engine.message)
    given = _comparison(group, did, course.library)
    answer = await engine.answer(RoleRequest(DISTILLER, given, wanted.engine, course.compared + 1, 0, meter))
    spent = course.usd + float(answer.usage.usd)
    if isinstance(answer, EngineFailure):
        return replace(course, usd=spent, stopped=f"{answer.kind}: {answer.message}")
    lesson = answer.output
    assert isinstance(lesson, Lesson)
    runs = [str(run.run) for run in group.extremes]
    library, refused = edited(course.library, lesson.edits, runs)
    return replace(
        course, library=library, usd=spent, compared=course.compared + 1, refused=(*course.refused, *refused),
        edits=course.edits + len(lesson.edits) - len(refused),
    )  # fmt: skip


def _comparison(group: Group, did: Mapping[UUID, Sequence[Step]], library: Library) -> Comparison:
    attempts = [
        Attempt(
            did=lines_of(did.get(run.run, ())), answer=run.answer[:2000], reward=run.reward, corrections=run.corrections
        )
        for run in group.extremes
    ]
    return Comparison(question=group.question, attempts=tuple(attempts), experiences=told_experiences(library))


async def _steps(database: Database, tenant: UUID, runs: Sequence[RatedRun]) -> dict[UUID, list[Step]]:
    async with database.transaction(tenant) as connection:
        return {run.run: await steps.after(connection, run.run, 0, MOST_STEPS) for run in runs}


def _lineage(wanted: Wanted, parent: VersionRow, course: _Course) -> dict[str, Any]:
    return {
        "from": f"{parent.name}@{parent.version}",
        "engine": answering(wanted.engine),
        "compared": course.compared,
        "edits": course.edits,
        "refused": list(course.refused),
        "usd": course.usd,
        "seen": [*parent.lineage.get("seen", ()), *course.seen][-MOST_SEEN:],
    }
