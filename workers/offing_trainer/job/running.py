"""A job from its claim to its end: choose, read, step, save, commit; then export and register.

The only home of that order and of what survives a lost process. A step counts when its transaction commits; its
checkpoint is on disk before that. Whoever claims the job next loads the checkpoint of the last committed step and does
the next one from the store alone, so that it ends with the weights of an undisturbed run. All work on weights is one
thread's, while the event loop keeps the lease.
"""

import asyncio
import logging
import shutil
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from offing.core.errors import Fenced, InvalidInput, OffingError, Unavailable
from offing.finishing import finished
from offing.services import policy_files
from offing.services.job_lease import kept
from offing.storage import training_events, training_groups, training_jobs
from offing.storage.policy_versions import VersionRow
from offing.storage.pool import Database
from offing.storage.training_groups import GroupHead, GroupQuery
from offing.storage.training_jobs import Hold, JobRow, StepDone
from offing_trainer.config import TrainConfig, config_of
from offing_trainer.job import choosing, curriculum, publishing
from offing_trainer.job.checkpoints import found, job_folder, prune, step_folder
from offing_trainer.job.choosing import Choice, Wanted
from offing_trainer.job.contract import Said, Stepped, Trainee
from offing_trainer.job.guards import Tripped, tripped
from offing_trainer.job.lineage import Policies, policies_of
from offing_trainer.job.publishing import Made
from offing_trainer.job.query import groups_wanted
from offing_trainer.job.sinks import CLOSING_SECONDS, About, Sinks, opened
from offing_trainer.job.timing import Timing

log = logging.getLogger("offing.trainer")

SETTLING = timedelta(seconds=1)
"""How long after its time stamp a group may take to become visible."""

PAGE = 64
"""Groups that are looked up at once."""

TIMES_MORE = 4
"""See `config.DataConfig.most_groups_per_step`."""


OnThread = Callable[[Callable[[], Any]], Awaitable[Any]]


Begin = Callable[[TrainConfig, Policies], Trainee]
"""Opens weights; slow."""


Collect = Callable[[UUID, JobRow, TrainConfig, VersionRow, Said], Awaitable[Sequence[GroupHead]]]
"""The final groups of a job's next step, made under a version; see `collecting`."""


@dataclass(frozen=True, slots=True)
class Room:
    """What a process has for its jobs."""

    database: Database
    home: Path
    policies: Path
    """Where versions' folders lie."""
    begin: Begin
    said: Callable[[JobRow, str, Mapping[str, float]], None] = lambda job, phase, metrics: None
    """Hears of what a job does at the moment, with the figures of a step that was committed."""
    term: float = 60.0
    """Seconds that a claim lasts without a sign of life."""
    collect: Collect | None = None
    """None: its jobs train on what is stored."""
    makers: Callable[[Sequence[str], About], Sequence[Callable[[], Any]]] = opened
    closing_seconds: float = CLOSING_SECONDS


@dataclass(slots=True)
class _Course:
    """A job under way."""

    room: Room
    held: Hold
    job: JobRow
    config: TrainConfig
    policies: Policies
    trainee: Trainee
    query: GroupQuery
    total: int
    state: Mapping[str, Any]
    sinks: Sinks
    first: Mapping[str, float] = field(default_factory=dict[str, float])
    """Figures of the job's first step, which guards compare with."""
    timing: Timing = field(default_factory=lambda: Timing(time.monotonic))

    @property
    def folder(self) -> Path:
        return job_folder(self.room.home, self.held.job)

    def say(self, phase: str, metrics: Mapping[str, float] | None = None) -> None:
        self.timing.enter(phase)
        self.room.said(self.job, phase, metrics or {})


async def run_job(room: Room, held: Hold) -> JobRow:
    """Advance a claimed job to its end, a pause or a failure, which is noted in it. Raises Fenced when it is lost."""
    thread = ThreadPoolExecutor(1, "offing-learner")
    try:
        async with kept(room.database, held, room.term):
            return await _run_or_fail(room, held, _on(thread))
    except asyncio.CancelledError:
        await finished(_put_back(room, held, "its process was stopped"))
        raise
    except Unavailable:
        # A database that is away for longer than a connection waits for it leaves the job to its lease.
        await _put_back(room, held, "a server went away")
        raise
    finally:
        thread.shutdown(wait=False, cancel_futures=True)


async def _run_or_fail(room: Room, held: Hold, on_thread: OnThread) -> JobRow:
    try:
        return await _run(room, held, on_thread)
    except (Fenced, Unavailable):
        raise
    except OffingError as error:
        return await _failed(room, held, str(error))
    except Exception as error:
        log.exception("job %s failed", held.job)
        await _failed(room, held, f"{type(error).__name__}: {error}")
        raise


async def _put_back(room: Room, held: Hold, why: str) -> None:
    """Let whoever claims the job next go on at once."""
    async with room.database.transaction(held.tenant) as connection:
        await training_jobs.release(connection, held, "queued", reason=why)


def _on(thread: ThreadPoolExecutor) -> OnThread:
    return lambda work: asyncio.get_running_loop().run_in_executor(thread, work)


async def _run(room: Room, held: Hold, on_thread: OnThread) -> JobRow:
    course = await _begun(room, held, on_thread)
    try:
        while True:
            ended = await _next(course, on_thread)
            if ended is not None:
                return ended
    finally:
        await asyncio.to_thread(course.sinks.close, room.closing_seconds)


async def _begun(room: Room, held: Hold, on_thread: OnThread) -> _Course:
    async with room.database.transaction(held.tenant) as connection:
        job = await training_jobs.by_id(connection, held.job)
        config = config_of(job.config)
        policies = await policies_of(connection, config)
        query = groups_wanted(config.data)
        state = await training_jobs.state_of(connection, job.id)
        first = {
            m.name: m.value for m in await training_jobs.metrics_since(connection, job.id, 0, None, 500) if m.step == 1
        }
    room.said(job, "opening the policy", {})
    for version in filter(None, (policies.start, policies.reference)):
        await policy_files.refuse_damaged(room.database, held.tenant, version)
    trainee: Trainee = await on_thread(lambda: room.begin(config, policies))
    if job.checkpoint:
        await on_thread(lambda: trainee.load(Path(job.checkpoint)))
    await asyncio.sleep(SETTLING.total_seconds() if job.step == 0 else 0)
    async with room.database.transaction(held.tenant) as connection:
        total = sum((await training_groups.count(connection, query, job.bound)).values())
    about = About(job.id, config.policy, job.config, job_folder(room.home, job.id))
    sinks = Sinks(room.makers(config.sinks, about))
    return _Course(room, held, job, config, policies, trainee, query, total, state, sinks, first)


async def _next(course: _Course, on_thread: OnThread) -> JobRow | None:
    """One step, or the job's end. None: there is more to do."""
    job, config = course.job, course.config
    if (config.collect is None and job.phase == "registered") or (
        config.steps is not None and job.step >= config.steps
    ):
        return await _finished(course, on_thread, "all steps are done")
    course.say("choosing")
    taken = await _taken(course) if config.collect is None else await _collected(course, on_thread)
    if isinstance(taken, str):
        return await _finished(course, on_thread, taken)
    step = await _trained(course, taken, on_thread) if taken.choice.groups else _nothing()
    metrics = {**_data_figures(taken.choice), **step.metrics}
    if (trip := tripped(config.guards, course.first, metrics)) is not None:
        return await _stopped(course, trip, on_thread)
    checkpoint = await _saved(course, on_thread) if taken.choice.groups else course.job.checkpoint
    metrics |= course.timing.figures()
    wish = await _commit(course, taken, step, metrics, checkpoint)
    course.say("committed", metrics)
    course.sinks.write(course.job.step, metrics)
    prune(course.folder, course.job.step, course.job.good_step)
    return await _obeyed(course, wish)


async def _trained(course: _Course, taken: "_Taken", on_thread: OnThread) -> Stepped:
    config, number = course.config, course.job.step + 1
    course.say("reading")
    state = dict(course.state)
    read = await course.trainee.read(course.room.database, course.held.tenant, taken.choice.groups, state)
    choosing.refuse_mixed(read.tokenizers, course.policies.start.tokenizer_sha256, config.policy)
    progress = _progress(course)
    return await on_thread(lambda: course.trainee.step(read, state, number, progress, course.say))


def _progress(course: _Course) -> float:
    """Of the job, 0 to 1: of the groups that there are, or of the steps where each has its own made."""
    config, job = course.config, course.job
    if config.collect is not None and config.steps:
        return job.step / config.steps
    all_groups = course.total * config.data.passes
    return min(1.0, job.groups / all_groups) if all_groups else 0.0


def _nothing() -> Stepped:
    """Of a step whose groups were all stale or short."""
    return Stepped({}, {}, {})


async def _saved(course: _Course, on_thread: OnThread) -> str:
    folder = step_folder(course.folder, course.job.step + 1, course.held.fence)
    course.say("saving")
    await on_thread(lambda: course.trainee.save(folder))
    course.say("saved")
    return str(folder)


@dataclass(frozen=True, slots=True)
class _Taken:
    """The groups of a step, and which pass through all of them it belongs to."""

    choice: Choice
    round: int


async def _taken(course: _Course) -> _Taken | str:
    """The next step's groups, or why there is none."""
    job, passes = course.job, course.config.data.passes
    choice = await _choice(course, _place(job))
    if _worth(course, choice):
        return _Taken(choice, job.round)
    if job.round < passes and _worth(course, again := await _choice(course, None)):
        return _Taken(again, job.round + 1)
    return "no group is left" if not choice.looked else "too few groups whose rewards differ are left"


async def _collected(course: _Course, on_thread: OnThread) -> _Taken:
    """Groups that were made for the next step, under the weights of the last."""
    if course.room.collect is None:
        raise InvalidInput("collect", "nothing here makes rollouts", "Run the job with `offing loop`.")
    policy = await _published(course, on_thread) if course.job.step else course.policies.start
    heads = await course.room.collect(course.held.tenant, course.job, course.config, policy, course.say)
    wanted = Wanted(len(heads) + 1, 0, len(heads) + 1, course.config.data.max_version_lag)
    return _Taken(choosing.choose(heads, wanted, policy.label), 1)


def _worth(course: _Course, choice: Choice) -> bool:
    """Whether it is a whole step, or a rest that teaches something or is to be noted."""
    if choice.enough or (choice.decided and not choice.groups):
        return True
    return bool(choice.groups) and choice.informative >= min(course.config.data.minimum_informative_groups, 1)


async def _choice(course: _Course, after: tuple[datetime, UUID] | None) -> Choice:
    """The next step's groups. What is taken and not enough is all that is left."""
    data = course.config.data
    wanted = Wanted(
        data.groups_per_step,
        data.minimum_informative_groups,
        data.most_groups_per_step or data.groups_per_step * TIMES_MORE,
        data.max_version_lag,
    )
    heads: list[GroupHead] = []
    while True:
        async with course.room.database.transaction(course.held.tenant) as connection:
            page = await training_groups.page(connection, course.query, course.job.bound, after, PAGE)
        heads += page
        choice = choosing.choose(heads, wanted, course.config.policy)
        if choice.enough or len(page) < PAGE:
            return choice
        after = (page[-1].completed_at, page[-1].id)


async def _commit(
    course: _Course, taken: _Taken, step: Stepped, metrics: Mapping[str, float], checkpoint: str
) -> str | None:
    number, choice = course.job.step + 1, taken.choice
    state = {**step.state, **_of_tasks(course, choice)}
    done = StepDone(
        step=number,
        good_step=number - 1,
        checkpoint=checkpoint,
        used={**choice.decided, **step.reasons},
        groups=choice.looked,
        round=taken.round,
        after=choice.after,
        metrics=metrics,
        state=state,
        phase=f"step {number}",
    )
    held = course.held
    async with course.room.database.transaction(held.tenant) as connection:
        wish = await training_jobs.commit_step(connection, held, course.room.term, done)
        if metrics.get("skipped"):
            await training_events.add(connection, held.tenant, "not_finite", {"step": number}, job=held.job)
        course.job = await training_jobs.by_id(connection, held.job)
    course.state = {**course.state, **state}
    course.first = course.first or (metrics if choice.groups else {})
    return wish


def _of_tasks(course: _Course, choice: Choice) -> dict[str, Any]:
    """What is remembered of the tasks that were tried, where a curriculum asks for it."""
    collect = course.config.collect
    if collect is None or collect.curriculum is None:
        return {}
    return curriculum.recorded(collect.curriculum, course.state, choice.groups)


async def _obeyed(course: _Course, wish: str | None) -> JobRow | None:
    """Rest or end where people asked for it."""
    if wish is None:
        return None
    state = "paused" if wish == "pause" else "cancelled"
    async with course.room.database.transaction(course.held.tenant) as connection:
        return await training_jobs.release(connection, course.held, state, reason="a person asked for it")


async def _stopped(course: _Course, trip: Tripped, on_thread: OnThread) -> JobRow:
    """Go back to the last weights that passed the guards, and stop. The step that tripped is not committed."""
    good = course.job.good_step
    folder = found(course.folder, good) if good else None
    await on_thread(lambda: course.trainee.load(folder))
    detail = {"step": course.job.step + 1, "why": str(trip), "back_to_step": good}
    async with course.room.database.transaction(course.held.tenant) as connection:
        await training_events.add(connection, course.held.tenant, "guard", detail, job=course.held.job)
        return await training_jobs.release(
            connection,
            course.held,
            "failed",
            reason="guard",
            error=f"Stopped at step {course.job.step + 1}: {trip}. The weights of step {good} are the last good ones.",
            checkpoint=str(folder or ""),
        )


async def _finished(course: _Course, on_thread: OnThread, reason: str) -> JobRow:
    """Export what was learned and register it; without a step there is nothing to."""
    produced = None
    if course.job.rollouts and (course.job.produced is None or course.config.collect is not None):
        produced = (await _published(course, on_thread)).id
    async with course.room.database.transaction(course.held.tenant) as connection:
        done = await training_jobs.release(connection, course.held, "done", reason=reason, produced=produced)
    course.job = done
    course.say("done")
    shutil.rmtree(course.room.policies / f".export-{done.id}", ignore_errors=True)
    return done


async def _published(course: _Course, on_thread: OnThread) -> VersionRow:
    course.say("exporting")
    files: Path = await on_thread(
        lambda: publishing.exported(course.room.policies, course.held.job, course.trainee.export)
    )
    course.say("exported")
    job = course.job
    lineage = {
        "job": str(job.id),
        "config_sha256": job.config_sha256,
        "parent": course.config.policy,
        "steps": job.step,
        "groups": job.groups,
        "rollouts": job.rollouts,
    }
    policies = course.policies
    lora = course.config.learner.kind == "lora"
    base = (policies.base or policies.start) if lora else None
    made = Made(job.name, policies.start, base, lineage)
    row = await publishing.registered(course.room.database, course.held, made, files, course.say)
    course.say("registered")
    return row


async def _failed(room: Room, held: Hold, error: str) -> JobRow:
    async with room.database.transaction(held.tenant) as connection:
        await training_events.add(connection, held.tenant, "failed", {"error": error[:2000]}, job=held.job)
        return await training_jobs.release(connection, held, "failed", reason="error", error=error[:2000])


def _place(job: JobRow) -> tuple[Any, UUID] | None:
    return None if job.after_at is None or job.after_group is None else (job.after_at, job.after_group)


def _data_figures(choice: Choice) -> dict[str, float]:
    return {
        "groups": float(len(choice.groups)),
        "groups_looked_at": float(choice.looked),
        "groups_informative": float(choice.informative),
        "groups_stale": float(choice.stale),
        "groups_short": float(choice.short),
    }
