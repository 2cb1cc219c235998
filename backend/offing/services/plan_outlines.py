"""The plan of a run as an outline: read it, and change it while the run works."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast
from uuid import UUID

from offing.bus.notifier import RunNotifier
from offing.core.errors import Conflict, InvalidInput
from offing.core.plan_outline import (
    MAX_PLAN_ITEM_CHARS,
    MAX_PLAN_ITEMS,
    PLAN_FIELD,
    PlanItem,
    draft_plan_change,
    items_from_analysis,
    parse_plan_items,
)
from offing.core.step import Step
from offing.sdk import Graph
from offing.services.runs import lock_active_run
from offing.storage import plan_outlines, runs, steps
from offing.storage.plan_outlines import PlanSteps
from offing.storage.pool import Database
from offing.storage.runs import RunRow


class ItemState(StrEnum):
    OPEN = "open"
    PARTLY = "partly"
    """Passages answer some of it."""
    COVERED = "covered"
    NOT_IN_DOCUMENTS = "not_in_documents"
    """It was looked for in several ways and not found."""


class ChangeState(StrEnum):
    QUEUED = "queued"
    """Recorded. The graph has not read it yet."""
    DELIVERED = "delivered"
    """The graph has read it. No step was planned since."""
    USED = "used"
    """A step was planned with it."""
    TOO_LATE = "too_late"
    """The run ended before its graph read it."""


@dataclass(frozen=True, slots=True)
class OutlineItem:
    text: str
    must_answer: bool
    state: ItemState
    missing: str
    """What the latest verification misses. Empty means nothing, or no verification yet."""


@dataclass(frozen=True, slots=True)
class OutlineChange:
    """The latest change by a person."""

    seq: int
    state: ChangeState
    consumed_seq: int
    """Step with which the graph has read it. 0 means not yet."""
    used_seq: int
    """The first plan made with it. 0 means none yet."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    supports_changes: bool
    """Whether the run's graph reads changes of its plan."""
    version: int
    """Step that set the outline, which a change names. 0 means that there is no outline yet."""
    items: tuple[OutlineItem, ...]
    change: OutlineChange | None
    """`None` means that nobody has changed the plan."""


async def get_plan(database: Database, tenant_id: UUID, run_id: UUID, graphs: Mapping[str, Graph]) -> RunPlan:
    """Return the plan of a run. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        run = await runs.get_run(connection, run_id)
        plan_steps = await plan_outlines.load_plan_steps(connection, run_id)
    return _build_plan(run, plan_steps, graphs)


async def change_plan(
    database: Database,
    notifier: RunNotifier,
    tenant_id: UUID,
    run_id: UUID,
    items: Sequence[PlanItem],
    version: int,
    graphs: Mapping[str, Graph],
) -> RunPlan:
    """Replace the outline of an active run. The graph reads it in its next turn.

    `version` is that of the outline which the person saw. Raises Conflict if it is not the latest, if the run has
    ended, or if its graph has no plan that can be changed.
    """
    checked = _check_items(items)
    async with database.transaction(tenant_id) as connection:
        run = await lock_active_run(connection, run_id)
        plan_steps = await plan_outlines.load_plan_steps(connection, run_id)
        _check_change(run, plan_steps, version, graphs)
        written = await steps.append_external(connection, run_id, [draft_plan_change(checked)])
        after = await plan_outlines.load_plan_steps(connection, run_id)
    await notifier.publish_steps(tenant_id, run_id, written)
    await notifier.notify_control(run_id)
    return _build_plan(run, after, graphs)


def _check_items(items: Sequence[PlanItem]) -> tuple[PlanItem, ...]:
    """Return the items with their texts in one line each. Raises InvalidInput."""
    checked = tuple(PlanItem(" ".join(item.text.split()), item.must_answer) for item in items)
    if not 1 <= len(checked) <= MAX_PLAN_ITEMS:
        problem = f"a plan has 1 to {MAX_PLAN_ITEMS} parts, and this one has {len(checked)}"
        raise InvalidInput("items", problem, "Keep at least one part, and merge parts that belong together.")
    for number, item in enumerate(checked):
        if not 1 <= len(item.text) <= MAX_PLAN_ITEM_CHARS:
            problem = f"a part has 1 to {MAX_PLAN_ITEM_CHARS} characters"
            raise InvalidInput(f"items.{number}.text", problem, "Write what this part is to find out, or remove it.")
    if len({item.text for item in checked}) < len(checked):
        raise InvalidInput("items", "two parts have the same text", "Remove one of them.")
    return checked


def _check_change(run: RunRow, plan_steps: PlanSteps, version: int, graphs: Mapping[str, Graph]) -> None:
    if not _supports_changes(run, graphs):
        problem = f"The graph {run.graph} has no plan that can be changed."
        raise Conflict(problem, "Send the run a message that says what to do instead.")
    current = _get_version(plan_steps)
    if version != current:
        problem = f"The plan has changed: its version is {current}, and the change names {version}."
        raise Conflict(problem, "Read the plan again, and change that one.")


def _supports_changes(run: RunRow, graphs: Mapping[str, Graph]) -> bool:
    graph = graphs.get(run.graph)
    return graph is not None and graph.has_editable_plan and run.kind != "rollout"


def _get_version(plan_steps: PlanSteps) -> int:
    latest = plan_steps.change or plan_steps.analysis
    return latest.seq if latest else 0


def _build_plan(run: RunRow, plan_steps: PlanSteps, graphs: Mapping[str, Graph]) -> RunPlan:
    items: tuple[PlanItem, ...] = ()
    if plan_steps.change:
        items = parse_plan_items(plan_steps.change.payload[PLAN_FIELD])
    elif plan_steps.analysis:
        items = items_from_analysis(plan_steps.analysis.payload)
    coverage = _read_coverage(plan_steps.verification)
    return RunPlan(
        supports_changes=_supports_changes(run, graphs),
        version=_get_version(plan_steps),
        items=tuple(OutlineItem(item.text, item.must_answer, *_judge_item(item, coverage)) for item in items),
        change=_build_change(run, plan_steps),
    )


def _build_change(run: RunRow, plan_steps: PlanSteps) -> OutlineChange | None:
    if plan_steps.change is None:
        return None
    if plan_steps.used_seq:
        state = ChangeState.USED
    elif plan_steps.consumed_seq:
        state = ChangeState.DELIVERED
    else:
        state = ChangeState.TOO_LATE if run.is_terminal else ChangeState.QUEUED
    return OutlineChange(plan_steps.change.seq, state, plan_steps.consumed_seq, plan_steps.used_seq)


def _read_coverage(verification: Step | None) -> dict[str, Mapping[str, Any]]:
    """Return the latest judgment of each part, by its text. Graphs of other authors may record anything."""
    output: object = verification.payload.get("output") if verification else None
    coverage: object = cast("Mapping[str, Any]", output).get("coverage") if isinstance(output, Mapping) else None
    entries = cast("list[object]", coverage) if isinstance(coverage, list) else []
    judgment = [cast("Mapping[str, Any]", one) for one in entries if isinstance(one, Mapping)]
    return {str(one.get("sub_question")): one for one in judgment}


def _judge_item(item: PlanItem, coverage: Mapping[str, Mapping[str, Any]]) -> tuple[ItemState, str]:
    judgment = coverage.get(item.text)
    if judgment is None:
        return ItemState.OPEN, ""
    if judgment.get("covered") is True:
        return ItemState.COVERED, ""
    words = str(judgment.get("state") or "")
    state = ItemState(words) if words in (ItemState.PARTLY, ItemState.NOT_IN_DOCUMENTS) else ItemState.OPEN
    return state, str(judgment.get("missing") or "")
