"""A job that learns from judged runs, from its claim to its end: read them, compare them, register a candidate.

The only home of that order and of what survives a lost process. A step is one comparison; it counts when its
transaction commits, with the library as edited, what was learned from, and a ledger row for each run. Whoever claims
the job next goes on after the last committed step. What is active is never changed by it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import structlog
from pydantic import BaseModel

from offing.core.errors import Fenced, OffingError, Unavailable
from offing.core.model import EngineFailure, Usage, answering
from offing.core.prompt_library import Library, edited, told_experiences, with_cases
from offing.core.run import StopReason
from offing.core.step import Step
from offing.finishing import finished
from offing.models.engine import Meter, RoleRequest, engine_for
from offing.sdk import Graph
from offing.services import learning, prompt_library
from offing.services.comparing import Group, cases_of, lines_of
from offing.services.job_lease import kept
from offing.services.learning import Wanted
from offing.services.prompt_library import Stored
from offing.services.rollouts import Hints
from offing.storage import policy_versions, steps, training_events, training_jobs, views
from offing.storage.pool import Database
from offing.storage.rated_runs import RatedRun
from offing.storage.training_jobs import Hold, JobRow, StepDone
from offing_workers.collection import TenantMeter
from offing_workers.prompts.distiller import DISTILLER, Attempt, Comparison, Lesson
from offing_workers.prompts.measuring import measured

FOLDER = "prompts"
"""Under OFFING_HOME: the readable copies, a folder a version."""

MOST_STEPS = 400
"""Of one run."""

MOST_SEEN = 10_000
"""Groups that a version remembers having learned from."""

MOST_REFUSED = 100
"""Reasons that are kept of changes that could not be made."""

COURSE = "course"

log = structlog.get_logger()


class Course(BaseModel, frozen=True):
    """How far the comparisons are, as of the last committed step."""

    start: str
    """The version learned on from: NAME@VERSION."""
    library: Library
    seen: tuple[str, ...] = ()
    """Digests of groups that were learned from."""
    compared: int = 0
    total: int = 0
    """Comparisons that there will be."""
    edits: int = 0
    refused: tuple[str, ...] = ()
    """Changes that could not be made, and why."""
    usd: float = 0.0
    priced: bool = True
    """False: `usd` is a lower bound."""
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Room:
    """What a process has for its jobs."""

    database: Database
    folder: Path
    """Where the readable copies go."""
    worker: str
    term: float
    """Seconds that a claim lasts without a sign of life."""
    graphs: Mapping[str, Graph] = field(default_factory=dict[str, Graph])
    hints: Hints | None = None
    """With `graphs`, to measure candidates. None: nothing is measured here."""


@dataclass(frozen=True, slots=True)
class _Run:
    """A job in hand."""

    room: Room
    held: Hold
    job: JobRow
    wanted: Wanted
    parent: Stored
    course: Course
    stopped: str = ""
    """Why it ends before all is compared. Empty: it goes on."""

    def after(self, **changed: Any) -> "_Run":
        """With another course."""
        return replace(self, course=self.course.model_copy(update=changed))


class CappedMeter:
    """The tenant's meter, and the job's own limit of money over what it has spent so far."""

    def __init__(self, inner: Meter, limit: float | None, spent: float) -> None:
        self._inner, self._limit, self.spent = inner, limit, Decimal(str(spent))

    async def reserve(self, tokens: int, usd: Decimal) -> StopReason | None:
        if self._limit is not None and usd and self.spent + usd > Decimal(str(self._limit)):
            return StopReason.SPEND_LIMIT
        return await self._inner.reserve(tokens, usd)

    async def settle(self, usage: Usage) -> None:
        self.spent += usage.usd
        await self._inner.settle(usage)


async def work_one(room: Room) -> JobRow | None:
    """Claim the oldest job that waits, and do it. None: there is none. Raises Fenced when it is lost meanwhile."""
    held = await training_jobs.claim_learning(room.database, room.worker, room.term)
    return None if held is None else await run_job(room, held)


async def run_job(room: Room, held: Hold) -> JobRow:
    """Advance a claimed job to its end, a pause or a failure, which is noted in it."""
    try:
        async with kept(room.database, held, room.term):
            return await _run_or_fail(room, held)
    except asyncio.CancelledError:
        await finished(_put_back(room, held))
        raise


async def _run_or_fail(room: Room, held: Hold) -> JobRow:
    try:
        return await _worked(await _begun(room, held))
    except (Fenced, Unavailable):
        raise
    except OffingError as error:
        return await _released(room, held, "failed", error=str(error))
    except Exception as error:
        log.exception("learning failed", job=str(held.job))
        return await _released(room, held, "failed", error=f"{type(error).__name__}: {error}")


async def _begun(room: Room, held: Hold) -> _Run:
    async with room.database.transaction(held.tenant) as connection:
        job = await training_jobs.by_id(connection, held.job)
        kept = (await training_jobs.state_of(connection, held.job)).get(COURSE)
    wanted = learning.wanted_of(job)
    if kept is not None:
        course = Course.model_validate(kept)
        parent = await prompt_library.of_version(room.database, held.tenant, course.start)
        return _Run(room, held, job, wanted, parent, course)
    parent = await learning.begun(room.database, held.tenant, job.name, room.folder)
    course = Course(start=parent.version.label, library=parent.library)
    run = _Run(room, held, job, wanted, parent, course)
    telling = sum(group.telling for group in await _left(run))
    run = replace(run, course=course.model_copy(update={"total": min(telling, wanted.groups)}))
    async with room.database.transaction(held.tenant) as connection:
        await training_jobs.remember(connection, held, room.term, {COURSE: run.course.model_dump(mode="json")})
    return run


async def _worked(run: _Run) -> JobRow:
    """All of its steps, then its candidate, then how that measures."""
    if run.job.produced is not None:
        return await _measured(run, run.job.produced)
    left = await _left(run)
    wish = await _hold(run, _phase(run))
    while left and not wish and not run.stopped:
        taken = _next(left)
        run = await _learned(run, taken)
        if not run.stopped:
            wish, run = await _committed(run, taken)
            left = left[len(taken) :]
    if wish:
        return await _released(run.room, run.held, "paused" if wish == "pause" else "cancelled")
    return await _finished(run)


async def _left(run: _Run) -> list[Group]:
    """Groups that neither the version before nor an earlier step of this job learned from, as they were judged when the
    job was made."""
    wanted, tenant = run.wanted, run.held.tenant
    found = await learning.usable(run.room.database, tenant, wanted.graph, wanted.tag, run.job.bound)
    seen = frozenset(run.course.seen)
    return [group for group in learning.unlearned(found.runs, run.parent.version) if group.digest not in seen]


def _next(left: Sequence[Group]) -> Sequence[Group]:
    """The groups of a step: what says nothing, up to and with the first that is to be compared."""
    at = next((n for n, group in enumerate(left) if group.telling), len(left) - 1)
    return left[: at + 1]


async def _learned(run: _Run, groups: Sequence[Group]) -> _Run:
    """The job after a step's groups, not committed yet; `stopped` where it ends before them."""
    if groups[-1].telling and run.course.compared >= run.wanted.groups:
        return replace(run, stopped=f"{run.wanted.groups} groups were asked for")
    did = await _steps(run, groups)
    if did is None:
        return replace(run, stopped="training_opt_in was switched off")
    if groups[-1].telling:
        run = await _taught(run, groups[-1], did)
    library = run.course.library
    for group in groups if run.wanted.cases else ():
        library = with_cases(library, cases_of(group, did))
    seen = (*run.course.seen, *(group.digest for group in groups))
    return run if run.stopped else run.after(library=library, seen=seen)


async def _taught(run: _Run, group: Group, did: Mapping[UUID, Sequence[Step]]) -> _Run:
    """What one comparison teaches, and what it cost, also where it failed."""
    course, wanted = run.course, run.wanted
    if wanted.usd is not None and course.usd >= wanted.usd:
        return replace(run, stopped=f"{course.usd:.4f} USD were spent")
    engine = engine_for(wanted.engine)
    if isinstance(engine, EngineFailure):
        return replace(run, stopped=engine.message)
    given = _comparison(group, did, course.library)
    meter = CappedMeter(TenantMeter(run.room.database, run.held.tenant), wanted.usd, course.usd)
    answer = await engine.answer(RoleRequest(DISTILLER, given, wanted.engine, course.compared + 1, 0, meter))
    run = run.after(**_paid(course, answer.usage))
    if isinstance(answer, EngineFailure):
        return replace(run, stopped=f"{answer.kind}: {answer.message}")
    lesson = answer.output
    assert isinstance(lesson, Lesson)
    library, refused = edited(course.library, lesson.edits, [str(one.run) for one in group.extremes])
    made = course.edits + len(lesson.edits) - len(refused)
    told = (*course.refused, *refused)[-MOST_REFUSED:]
    return run.after(library=library, compared=course.compared + 1, edits=made, refused=told)


def _paid(course: Course, usage: Usage) -> dict[str, Any]:
    return {
        "usd": course.usd + float(usage.usd),
        "priced": course.priced and usage.priced,
        "prompt_tokens": course.prompt_tokens + usage.prompt_tokens,
        "completion_tokens": course.completion_tokens + usage.completion_tokens,
    }


def _comparison(group: Group, did: Mapping[UUID, Sequence[Step]], library: Library) -> Comparison:
    attempts = [
        Attempt(
            did=lines_of(did.get(run.run, ())), answer=run.answer[:2000], reward=run.reward, corrections=run.corrections
        )
        for run in group.extremes
    ]
    return Comparison(question=group.question, attempts=tuple(attempts), experiences=told_experiences(library))


async def _steps(run: _Run, groups: Sequence[Group]) -> dict[UUID, list[Step]] | None:
    """What the runs did that a step shows. None: people do not let their runs be learned from any more."""
    wanted: list[RatedRun] = [one for group in groups for one in group.extremes]
    async with run.room.database.transaction(run.held.tenant) as connection:
        people = any(group.people for group in groups)
        if people and not (await views.tenant(connection, run.held.tenant)).training_opt_in:
            return None
        return {one.run: await steps.after(connection, one.run, 0, MOST_STEPS) for one in wanted}


async def _hold(run: _Run, phase: str) -> str | None:
    """Say what is done now; what people wish of the job."""
    async with run.room.database.transaction(run.held.tenant) as connection:
        return await training_jobs.hold(connection, run.held, run.room.term, phase)


async def _committed(run: _Run, groups: Sequence[Group]) -> tuple[str | None, _Run]:
    """Store a step whole. What people wish of the job, and the job after it."""
    step = run.job.step + 1
    done = StepDone(
        step, step, "", _ledger(groups), groups=len(groups), metrics=_figures(run.course),
        state={COURSE: run.course.model_dump(mode="json")}, phase=_phase(run),
    )  # fmt: skip
    async with run.room.database.transaction(run.held.tenant) as connection:
        wish = await training_jobs.commit_step(connection, run.held, run.room.term, done)
    return wish, replace(run, job=replace(run.job, step=step))


def _ledger(groups: Sequence[Group]) -> dict[UUID, str]:
    """What became of each run; its key in the store makes sure that no run is learned from twice."""
    found: dict[UUID, str] = {}
    for group in groups:
        shown = {one.run for one in group.extremes}
        for one in group.runs:
            found[one.run] = "zero_advantage" if not group.telling else "kept" if one.run in shown else "unselected"
    return found


def _figures(course: Course) -> dict[str, float]:
    """As of the end of a step, all of the job so far."""
    return {
        "compared": course.compared,
        "total": course.total,
        "edits": course.edits,
        "experiences": len(course.library.experiences),
        "cases": len(course.library.cases),
        "usd": course.usd,
        "priced": float(course.priced),
        "prompt_tokens": course.prompt_tokens,
        "completion_tokens": course.completion_tokens,
    }


def _phase(run: _Run) -> str:
    course = run.course
    return f"comparing {course.compared + 1} of {course.total}" if course.compared < course.total else "registering"


async def _finished(run: _Run) -> JobRow:
    """Register what was learned. Nothing, because the first comparison failed: the job can be resumed."""
    course, parent = run.course, run.parent
    if course.library == parent.library:
        if run.stopped:
            return await _released(run.room, run.held, "failed", error=run.stopped)
        return await _released(run.room, run.held, "done", reason="nothing new was learned")
    version, _ = await prompt_library.register(
        run.room.database, run.held.tenant, run.job.name, course.library, run.room.folder,
        parent=parent.version.id, lineage=_lineage(run),
    )  # fmt: skip
    async with run.room.database.transaction(run.held.tenant) as connection:
        await training_jobs.set_produced(connection, run.held, version.id)
    return await _measured(run, version.id)


async def _measured(run: _Run, candidate: UUID) -> JobRow:
    """Measure a registered candidate where that was asked for, and end the job."""
    room, held, gate, wish = run.room, run.held, run.wanted.gate, None
    if gate is not None and room.hints is not None:
        async with room.database.transaction(held.tenant) as connection:
            version = await policy_versions.by_id(connection, candidate)
        tell = partial(_hold, run)
        wish = await measured(room.database, held, room.hints, room.graphs, gate, version, tell)
    state = "done" if wish is None else "paused" if wish == "pause" else "cancelled"
    return await _released(room, held, state, reason=run.stopped, produced=candidate)


def _lineage(run: _Run) -> dict[str, Any]:
    course, before = run.course, run.parent.version.lineage
    return {
        "from": course.start,
        "job": str(run.held.job),
        "engine": answering(run.wanted.engine),
        "compared": course.compared,
        "edits": course.edits,
        "refused": list(course.refused),
        "usd": course.usd,
        "prompt_tokens": course.prompt_tokens,
        "completion_tokens": course.completion_tokens,
        "seen": [*before.get("seen", ()), *course.seen][-MOST_SEEN:],
    }


async def _released(
    room: Room, held: Hold, state: str, *, reason: str = "", error: str = "", produced: UUID | None = None
) -> JobRow:
    async with room.database.transaction(held.tenant) as connection:
        row = await training_jobs.release(connection, held, state, reason=reason, error=error, produced=produced)
        if error:
            await training_events.add(connection, held.tenant, "failed", {"error": error}, job=held.job)
    return row


async def _put_back(room: Room, held: Hold) -> None:
    """Let another process go on at once, where this one was told to stop; else it does when the lease lapses."""
    try:
        await _released(room, held, "queued", reason="its process was stopped")
    except (Fenced, Unavailable) as error:
        log.info("not put back", job=str(held.job), reason=str(error))
