"""Make tasks from runs of people: to train on, and held out, without overlap.

Only runs that may be learned from become tasks. The set records for each task the run and the signals it comes from,
and for each other selected run why it was left out.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from offing.clock import new_id
from offing.core.errors import InvalidInput
from offing.core.report import Report
from offing.core.run_reference import RunReference, SignalLimits, build_run_reference
from offing.core.task_split import AskedRun, SplitPlan, is_held_out, is_same_question, plan_split
from offing.core.training_signal import SignalKind, TextOrigin, TrainingSignal
from offing.datasets.task import TaskCriterion, TaskEvidence, TaskScope, TaskSpec
from offing.services.tasks import StoredTasks, store_tasks_in
from offing.storage import reports_of_runs, task_origins, training_signals
from offing.storage.pool import Connection, Database
from offing.storage.task_origins import AskedRunRow, TaskOriginRow

TRAIN, HELD_OUT = "train", "held_out"
"""Splits of the tasks."""

MAX_READ_RUNS = 256
"""Maximum number of runs whose reports are in memory at once."""


class LeaveOutReason(StrEnum):
    """Why a selected run is not a task."""

    NO_CONSENT = "no_consent"
    """It may not be learned from."""
    NO_SIGNAL = "no_signal"
    """Nobody has said anything about it."""
    NO_REFERENCE = "no_reference"
    """What people said states nothing that could be scored."""
    FOLLOW_UP = "follow_up"
    """Its question continues a thread and does not stand alone."""
    UNUSABLE_QUESTION = "unusable_question"
    """Its question is too short or too long for a task."""
    DUPLICATE = "duplicate"
    """Another run with the same question was chosen."""
    BOTH_SPLITS = "both_splits"
    """It is about what tasks on both sides are about."""


@dataclass(frozen=True, slots=True)
class TaskSetRequest:
    """Which runs become tasks of which dataset."""

    dataset: str
    """Name of the dataset to train on. The held-out dataset has this name with `-held-out`."""
    graph: str | None = None
    """`None` means all graphs."""
    tag: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    """Time at which the runs were created; `None` means no limit."""
    min_rating: float = 0.5
    max_answer_chars: int = 200
    held_out_fraction: float = 0.25
    """Expected fraction of the clusters that are held out."""
    seed: int = 0
    includes_follow_ups: bool = False

    @property
    def held_out_dataset(self) -> str:
        return f"{self.dataset}-held-out"


@dataclass(frozen=True, slots=True)
class RunTask:
    """A task with what it was made from."""

    spec: TaskSpec
    run_id: UUID
    split_run_id: UUID
    signals: tuple[TrainingSignal, ...]


@dataclass(frozen=True, slots=True)
class ReportsOfRuns:
    """The reports of runs. Runs without one are left out."""

    own: Mapping[UUID, Report]
    """The newest version that the run wrote."""
    edited: Mapping[UUID, Report]
    """The newest version that a person saved."""


@dataclass(frozen=True, slots=True)
class TaskSet:
    """The tasks of a request."""

    tasks: tuple[RunTask, ...]
    left_out: Mapping[UUID, LeaveOutReason]
    id: UUID | None = None
    """`None` means that nothing was stored."""
    new_count: int = 0
    """Number of tasks that were not stored before."""

    def list_split(self, split: str) -> list[RunTask]:
        return [task for task in self.tasks if task.spec.split == split]

    def count_left_out(self) -> dict[str, int]:
        """Return the number of runs by the reason why they were left out."""
        return dict(sorted(Counter(reason.value for reason in self.left_out.values()).items()))


async def make_tasks_from_runs(
    database: Database, tenant_id: UUID, request: TaskSetRequest, *, person: str, is_dry_run: bool = False
) -> TaskSet:
    """Make tasks from runs and store them, unless it is a dry run.

    Raises InvalidInput for a value out of range, and for another seed or fraction than the dataset was split with.
    """
    _check_request(request)
    datasets = (request.dataset, request.held_out_dataset)
    async with database.transaction(tenant_id) as connection:
        await task_origins.lock_dataset(connection, tenant_id, request.dataset)
        _check_split(request, await task_origins.find_latest_request(connection, request.dataset))
        asked_runs = await task_origins.list_asked_runs(connection, datasets)
        plan = await asyncio.to_thread(plan_split, _list_asked(asked_runs), request.seed, request.held_out_fraction)
        task_set = await _choose_tasks(connection, request, asked_runs, plan)
        return task_set if is_dry_run else await _store(connection, tenant_id, request, task_set, person)


async def list_origins(database: Database, tenant_id: UUID, dataset: str) -> list[TaskOriginRow]:
    """List what the tasks of a dataset were made from."""
    async with database.transaction(tenant_id) as connection:
        return await task_origins.list_origins(connection, [dataset])


def scope_of_task(run: AskedRunRow) -> TaskScope:
    """Return the scope of the task of a run: the scope of the run, as far as a task's scope has its fields."""
    fields = {name: value for name, value in run.scope.items() if name in TaskScope.model_fields}
    return TaskScope.model_validate(fields)


def _check_request(request: TaskSetRequest) -> None:
    if not 0 < len(request.dataset.strip()) <= 190:
        raise InvalidInput("dataset", "the name is empty or too long", "Use 1 to 190 characters.")
    if not 0 <= request.held_out_fraction < 1:
        raise InvalidInput(
            "held_out", f"{request.held_out_fraction} is out of range", "Use 0 or more, and less than 1."
        )
    if not -1 <= request.min_rating <= 1:
        raise InvalidInput("min_rating", f"{request.min_rating} is out of range", "Use -1 to 1.")


def _check_split(request: TaskSetRequest, earlier: Mapping[str, Any] | None) -> None:
    """A task must not change sides, or a version could be evaluated with what it was trained on."""
    split = {"seed": request.seed, "held_out_fraction": request.held_out_fraction}
    if earlier is not None and (recorded := {name: earlier[name] for name in split}) != split:
        problem = f"the dataset {request.dataset!r} was split with seed {recorded['seed']} and the held-out fraction "
        remedy = "Use the same values, or another name for the dataset."
        raise InvalidInput("seed", problem + str(recorded["held_out_fraction"]), remedy)


def _list_asked(rows: Sequence[AskedRunRow]) -> list[AskedRun]:
    return [AskedRun(r.id, r.thread_id, r.question, r.forked_from_id, r.recorded_split_run_id) for r in rows]


async def _choose_tasks(
    connection: Connection, request: TaskSetRequest, asked_runs: Sequence[AskedRunRow], plan: SplitPlan
) -> TaskSet:
    selected = [run for run in asked_runs if _is_selected(run, request)]
    signals = await _group_signals(connection, [run.id for run in selected if run.may_learn])
    reasons = {run.id: _find_reason(run, request, plan, signals.get(run.id, ())) for run in selected}
    left_out = {run_id: reason for run_id, reason in reasons.items() if reason is not None}
    candidates = list[RunTask]()
    usable = [run for run in selected if reasons[run.id] is None]
    for start in range(0, len(usable), MAX_READ_RUNS):
        runs = usable[start : start + MAX_READ_RUNS]
        reports = await _read_reports(connection, [run.id for run in runs], signals)
        for run in runs:
            choice = _make_task(run, request, plan, signals[run.id], reports)
            if isinstance(choice, LeaveOutReason):
                left_out[run.id] = choice
            else:
                candidates.append(choice)
    chosen = _drop_duplicates(candidates, left_out)
    return TaskSet(tuple(chosen), left_out)


def _is_selected(run: AskedRunRow, request: TaskSetRequest) -> bool:
    return (
        (request.graph is None or run.graph == request.graph)
        and (request.tag is None or request.tag in run.tags)
        and (request.since is None or run.created_at >= request.since)
        and (request.until is None or run.created_at < request.until)
    )


async def _group_signals(connection: Connection, run_ids: Sequence[UUID]) -> dict[UUID, list[TrainingSignal]]:
    grouped = dict[UUID, list[TrainingSignal]]()
    for signal in await training_signals.list_signals(connection, run_ids):
        grouped.setdefault(signal.run_id, []).append(signal)
    return grouped


def _find_reason(
    run: AskedRunRow, request: TaskSetRequest, plan: SplitPlan, signals: Sequence[TrainingSignal]
) -> LeaveOutReason | None:
    if not run.may_learn:
        return LeaveOutReason.NO_CONSENT
    if not signals:
        return LeaveOutReason.NO_SIGNAL
    if run.is_follow_up and not request.includes_follow_ups:
        return LeaveOutReason.FOLLOW_UP
    if not 3 <= len(run.question.strip()) <= 8_000:
        return LeaveOutReason.UNUSABLE_QUESTION
    return LeaveOutReason.BOTH_SPLITS if run.id in plan.bridging else None


async def _read_reports(
    connection: Connection, run_ids: Sequence[UUID], signals: Mapping[UUID, Sequence[TrainingSignal]]
) -> ReportsOfRuns:
    edited = {run_id: version for run_id in run_ids if (version := _find_edited(signals[run_id])) is not None}
    return ReportsOfRuns(
        await reports_of_runs.list_own_reports(connection, run_ids),
        await reports_of_runs.list_reports(connection, edited),
    )


def _find_edited(signals: Sequence[TrainingSignal]) -> int | None:
    """Return the newest version that a person saved. `None` means that there is none."""
    versions = [
        one.report_version
        for one in signals
        if one.kind is SignalKind.REPORT_EDIT and one.text_origin is TextOrigin.PERSON
    ]
    return versions[-1] if versions else None


def _make_task(
    run: AskedRunRow,
    request: TaskSetRequest,
    plan: SplitPlan,
    signals: Sequence[TrainingSignal],
    reports: ReportsOfRuns,
) -> RunTask | LeaveOutReason:
    limits = SignalLimits(request.min_rating, request.max_answer_chars)
    reference = build_run_reference(reports.own.get(run.id), reports.edited.get(run.id), signals, limits)
    if reference is None:
        return LeaveOutReason.NO_REFERENCE
    split_run_id = plan.split_run_ids[run.id]
    split = HELD_OUT if is_held_out(split_run_id, request.seed, request.held_out_fraction) else TRAIN
    return RunTask(_build_spec(run, reference, split), run.id, split_run_id, reference.signals)


def _build_spec(run: AskedRunRow, reference: RunReference, split: str) -> TaskSpec:
    origin = [f"answer:{reference.answer_origin}"] if reference.answer_origin else []
    return TaskSpec(
        question=run.question,
        answers=None if reference.answer is None else [reference.answer],
        evidence=[TaskEvidence(source=one.source, start=one.start, end=one.end) for one in reference.evidence],
        rubric=[TaskCriterion(text=one.text, weight=one.weight, rejected=one.rejected) for one in reference.rubric],
        scope=scope_of_task(run),
        name=f"run {run.id}",
        split=split,
        tags=["from-runs", *origin],
    )


def _drop_duplicates(candidates: Sequence[RunTask], left_out: dict[UUID, LeaveOutReason]) -> list[RunTask]:
    """Return one task per question: that with a person's answer, else with any answer, else of the oldest run."""
    chosen = list[RunTask]()
    for task in sorted(candidates, key=_rank):
        related = [one for one in chosen if one.spec.scope == task.spec.scope]
        if any(is_same_question(one.spec.question, task.spec.question) for one in related):
            left_out[task.run_id] = LeaveOutReason.DUPLICATE
        else:
            chosen.append(task)
    return sorted(chosen, key=lambda task: str(task.run_id))


def _rank(task: RunTask) -> tuple[bool, bool, str]:
    return "answer:person" not in task.spec.tags, task.spec.answers is None, str(task.run_id)


async def _store(
    connection: Connection, tenant_id: UUID, request: TaskSetRequest, task_set: TaskSet, person: str
) -> TaskSet:
    set_id, origins, new_count, counts = new_id(), list[dict[str, Any]](), 0, list[int]()
    datasets = {TRAIN: request.dataset, HELD_OUT: request.held_out_dataset}
    for split, dataset in datasets.items():
        tasks = task_set.list_split(split)
        stored = await _store_split(connection, tenant_id, dataset, tasks)
        origins += [_describe_origin(id, task) for id, task in zip(stored.task_ids, tasks, strict=True)]
        new_count += stored.new_count
        counts.append(len(tasks))
    left_out = [{"run_id": str(id), "reason": reason.value} for id, reason in task_set.left_out.items()]
    await task_origins.insert_set(
        connection, tenant_id, set_id, request.dataset, asdict(request), left_out, (counts[0], counts[1]), person
    )
    await task_origins.replace_origins(connection, tenant_id, set_id, list(datasets.values()), origins)
    return TaskSet(task_set.tasks, task_set.left_out, set_id, new_count)


async def _store_split(connection: Connection, tenant_id: UUID, dataset: str, tasks: Sequence[RunTask]) -> StoredTasks:
    if not tasks:
        return StoredTasks([], 0)
    return await store_tasks_in(connection, tenant_id, dataset, [task.spec for task in tasks])


def _describe_origin(task_id: UUID, task: RunTask) -> dict[str, Any]:
    signals = [
        {"kind": one.kind, "id": one.id, "given_by": one.given_by, "text_origin": one.text_origin}
        for one in task.signals
    ]
    return {"task_id": task_id, "run_id": task.run_id, "split_run_id": task.split_run_id, "signals": signals}
