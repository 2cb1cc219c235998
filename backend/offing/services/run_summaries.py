"""Runs as readers see them: lists, details with the current action, steps, and waiting for the end."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from offing.bus.live import LiveBus
from offing.bus.live_events import BusEvent, CurrentAction, ResyncEvent, StepsEvent
from offing.core.answer_draft import DraftPart
from offing.core.errors import NotFound
from offing.core.run import TERMINAL_STATUSES, RunStatus
from offing.core.step import Step, StepKind
from offing.storage import run_summaries, steps
from offing.storage.pool import Database
from offing.storage.run_summaries import RunSummary, TokenDetails


@dataclass(frozen=True, slots=True)
class LiveStatus:
    """What a run is doing now. Empty fields mean that it is unknown."""

    current_action: CurrentAction
    worker_heartbeat_at: datetime | None
    """When its worker last renewed its lease."""


@dataclass(frozen=True, slots=True)
class RunWithLiveStatus:
    summary: RunSummary
    live: LiveStatus | None
    step_marks: str
    token_details: TokenDetails | None = None
    """`None` means that they were not read."""


async def get_run_detail(
    database: Database, bus: LiveBus, tenant_id: UUID, run_id: UUID, lease_seconds: float
) -> RunWithLiveStatus:
    """Return a run with its current action and its step marks. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        summary = await run_summaries.get_run_summary(connection, run_id)
        marks = await run_summaries.render_step_marks(connection, run_id)
        details = await run_summaries.get_token_details(connection, run_id)
    is_running = summary.run.status is RunStatus.RUNNING
    action = await bus.find_current_action(tenant_id, run_id) if is_running else None
    return RunWithLiveStatus(summary, build_live_status(summary, action, lease_seconds), marks, details)


async def get_run_summary(database: Database, tenant_id: UUID, run_id: UUID) -> RunSummary:
    """Return a run with what people have set on it. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        return await run_summaries.get_run_summary(connection, run_id)


def build_live_status(summary: RunSummary, action: CurrentAction | None, lease_seconds: float) -> LiveStatus | None:
    """Return the live status of a run with its published action, or `None` if no worker has it."""
    run = summary.run
    if run.status is not RunStatus.RUNNING:
        return None
    heartbeat_at = summary.lease_until - timedelta(seconds=lease_seconds) if summary.lease_until else None
    return LiveStatus(action or CurrentAction("working", run.started_at or run.created_at), heartbeat_at)


async def list_drafts(database: Database, bus: LiveBus, tenant_id: UUID, run_id: UUID) -> list[DraftPart]:
    """Return the answers that are being written for a run, each from its beginning. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        status = await run_summaries.get_run_status(connection, run_id)
    drafts = await bus.list_drafts(tenant_id, run_id) if status is RunStatus.RUNNING else []
    return [part for part in drafts if part.draft.fence == max(other.draft.fence for other in drafts)]


async def wait_for_end(database: Database, bus: LiveBus, tenant_id: UUID, run_id: UUID, timeout_seconds: float) -> bool:
    """Wait for the end of a run and return whether it ended within `timeout_seconds`.

    Follows the bus, and reads the database only when an event may have been missed. Returns early when the
    process stops. Raises NotFound.
    """
    until = time.monotonic() + timeout_seconds
    async with bus.subscribe(tenant_id, [run_id]) as notices:
        while True:
            async with database.transaction(tenant_id) as connection:
                status = await run_summaries.get_run_status(connection, run_id)
            if status in TERMINAL_STATUSES:
                return True
            if bus.is_closing:
                return False
            while (remaining_seconds := until - time.monotonic()) > 0 and not is_possible_end(
                await notices.next(remaining_seconds)
            ):
                pass
            if remaining_seconds <= 0:
                return False


def is_possible_end(event: BusEvent | None) -> bool:
    """Return whether the status of a run should be read again after this bus event. `None` means that none arrived."""
    if isinstance(event, StepsEvent):
        return any(step.kind is StepKind.ENDED for step in event.steps)
    return event is None or isinstance(event, ResyncEvent)


async def list_steps(
    database: Database, tenant_id: UUID, run_id: UUID, after: int, limit: int, kind: StepKind | None
) -> tuple[list[Step], int | None]:
    """Return a page of steps in order and the `after` of the next page.

    `None` means that this is the last page. Raises NotFound.
    """
    async with database.transaction(tenant_id) as connection:
        await run_summaries.get_run_status(connection, run_id)
        summaries = await run_summaries.list_step_summaries(connection, run_id, after, limit + 1, kind)
    page = summaries[:limit]
    return page, page[-1].seq if len(summaries) > limit else None


async def list_full_steps(
    database: Database, tenant_id: UUID, run_id: UUID, kinds: Sequence[StepKind], after: int, limit: int
) -> tuple[list[Step], int | None]:
    """Return a page of steps of these kinds with their payloads, and the `after` of the next page.

    Raises NotFound.
    """
    async with database.transaction(tenant_id) as connection:
        await run_summaries.get_run_status(connection, run_id)
        rows = await steps.list_steps_of_kinds(connection, run_id, kinds, after, limit + 1)
    page = rows[:limit]
    return page, page[-1].seq if len(rows) > limit else None


async def get_step(database: Database, tenant_id: UUID, run_id: UUID, seq: int) -> Step:
    """Return a step with its payload. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        rows = await steps.list_steps_by_seq(connection, run_id, [seq])
    if not rows:
        raise NotFound("step", f"{seq} of run {run_id}")
    return rows[0]
