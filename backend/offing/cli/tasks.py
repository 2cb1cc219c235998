"""`offing tasks`: make tasks from runs, and show which runs they come from."""

from datetime import datetime
from typing import Annotated, Any

from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table

from offing.cli.options import Flag, Json
from offing.cli.show import COMMAND_LINE, run_with_database
from offing.cli.terminal import print_json, strip_control
from offing.services import run_tasks
from offing.services.run_tasks import RunTask, TaskSet, TaskSetRequest
from offing.storage.migrate import LOCAL_TENANT

app = App(name="tasks", help="Tasks for training: make them from rated runs, and show where they come from.")

REASONS = {
    "no_consent": "may not be learned from",
    "no_signal": "not rated, corrected or edited",
    "no_reference": "what people said cannot be scored",
    "follow_up": "continues a thread (--includes-follow-ups)",
    "unusable_question": "question too short or too long",
    "duplicate": "same question as another run",
    "both_splits": "about tasks of both splits",
}


@app.command
def from_runs(
    dataset: str,
    *,
    graph: str | None = None,
    tag: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    min_rating: float = 0.5,
    max_answer_chars: int = 200,
    held_out: float = 0.25,
    seed: int = 0,
    includes_follow_ups: Flag = False,
    dry_run: Flag = False,
    json: Json = False,
) -> int:
    """Make tasks from runs that people rated, corrected or edited, and that may be learned from.

    They are stored in the datasets DATASET and DATASET-held-out. What is about the same is in one of them only.

    Parameters
    ----------
    graph
        Only runs of this graph.
    tag
        Only runs with this tag.
    since, until
        Only runs that were created in this time.
    min_rating
        From which mean rating, -1 to 1, the answer of a run counts as right.
    max_answer_chars
        Longest answer of a run that counts as a reference answer.
    held_out
        Expected part of the clusters of questions that are held out.
    seed
        Seed of the split. A dataset keeps its first one.
    includes_follow_ups
        Also make tasks from questions that continue a thread.
    dry_run
        Store nothing, and show what would be stored.
    """
    request = TaskSetRequest(
        dataset, graph, tag, _with_zone(since), _with_zone(until), min_rating, max_answer_chars, held_out, seed,
        includes_follow_ups,
    )  # fmt: skip
    task_set = run_with_database(
        lambda database: run_tasks.make_tasks_from_runs(
            database, LOCAL_TENANT, request, person=COMMAND_LINE, is_dry_run=dry_run
        )
    )
    if json:
        return print_json(_to_json(request, task_set))
    _print_set(request, task_set)
    return 0


@app.command
def origins(
    dataset: Annotated[str, Parameter(help="A dataset of `offing tasks from-runs`.")], *, json: Json = False
) -> int:
    """Show the run, the signals and the people that each task of a dataset comes from."""
    rows = run_with_database(lambda database: run_tasks.list_origins(database, LOCAL_TENANT, dataset))
    if json:
        return print_json([
            {"task_id": str(r.task_id), "run_id": str(r.run_id), "is_selectable": r.is_selectable, "signals": r.signals}
            for r in rows
        ])  # fmt: skip
    table = Table("task", "run", "used", "signals", box=None)
    for row in rows:
        signals = ", ".join(f"{one['kind']} by {one['given_by']}" for one in row.signals)
        table.add_row(str(row.task_id), str(row.run_id), "yes" if row.is_selectable else "no", strip_control(signals))
    Console(soft_wrap=True, highlight=False).print(table)
    return 0


def _with_zone(time: datetime | None) -> datetime | None:
    """Return a time with its zone. A time without one is of this machine."""
    return time.astimezone() if time is not None else None


def _print_set(request: TaskSetRequest, task_set: TaskSet) -> None:
    for task in task_set.tasks:
        print(f"{task.spec.split:<9} {task.run_id}  {strip_control(task.spec.question)}  ({_describe(task)})")
    stored = "nothing stored (dry run)" if task_set.id is None else f"{task_set.new_count} new"
    train, held_out = len(task_set.list_split("train")), len(task_set.list_split("held_out"))
    print(f"{request.dataset}: {train} tasks, {request.held_out_dataset}: {held_out} tasks, {stored}")
    for reason, count in task_set.count_left_out().items():
        print(f"left out {count:>5}  {reason}: {REASONS[reason]}")


def _describe(task: RunTask) -> str:
    parts = ["answer" if task.spec.answers is not None else ""]
    parts += [f"{len(task.spec.evidence)} passages" if task.spec.evidence else ""]
    parts += [f"{len(task.spec.rubric)} criteria" if task.spec.rubric else ""]
    return ", ".join(part for part in parts if part)


def _to_json(request: TaskSetRequest, task_set: TaskSet) -> dict[str, Any]:
    return {
        "id": task_set.id and str(task_set.id),
        "dataset": request.dataset,
        "held_out_dataset": request.held_out_dataset,
        "new_count": task_set.new_count,
        "left_out": task_set.count_left_out(),
        "tasks": [
            {"run_id": str(one.run_id), "split": one.spec.split, "question": one.spec.question,
             "signals": [signal.kind for signal in one.signals]}
            for one in task_set.tasks
        ],
    }  # fmt: skip
