"""What the followers of a run read from Postgres and Redis, once for all followers of this process.

A read serves everyone who asks for the same state: those who wait for it, and those who ask shortly afterwards while
nothing has happened to the run.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

from offing.bus.live import LiveBus
from offing.bus.live_events import RunActivity
from offing.core.answer_draft import DraftPart
from offing.core.run import RunStatus
from offing.core.step import Step
from offing.services.run_summaries import RunWithLiveStatus, build_live_status
from offing.storage import run_summaries
from offing.storage.pool import Database

FIRST_STEPS = 16

SHARED_SECONDS = 0.5
"""How long a read is shared while no event of the run arrives. Some changes, such as a new title, send none."""

T = TypeVar("T")

RunKey = tuple[UUID, UUID]
"""Tenant and run."""


@dataclass(frozen=True, slots=True)
class RunState:
    """The state of a run at one moment."""

    detail: RunWithLiveStatus
    drafts: tuple[DraftPart, ...]
    """The answers that are being written. Empty for a run that is not running."""
    first_steps: tuple[Step, ...] = ()
    """The first `FIRST_STEPS` steps, if this was the first read of the run, so that a new follower needs no other."""


@dataclass(frozen=True, slots=True)
class _Read:
    """A read of a run's state that has begun, and its result once it is there."""

    began_at: float
    event_count: int
    """Number of events of the run that had arrived when it began."""
    task: asyncio.Task[RunState]


@dataclass(slots=True)
class _FollowedRun:
    latest: _Read | None = None
    step_marks: str = ""
    pages: dict[tuple[int, int], asyncio.Task[list[Step]]] = field(
        default_factory=dict[tuple[int, int], asyncio.Task[list[Step]]]
    )
    """Pages of steps that are being read, by the seq before them and their limit."""


class SharedRunReads:
    """The reads of one process. It belongs to one event loop."""

    def __init__(
        self, database: Database, bus: LiveBus, lease_seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._database, self._bus, self._lease_seconds, self._clock = database, bus, lease_seconds, clock
        self._followed: dict[RunKey, _FollowedRun] = {}
        self._followers = Counter[RunKey]()
        self._tasks = set[asyncio.Task[Any]]()

    @contextmanager
    def follow(self, tenant_id: UUID, run_ids: Iterable[UUID]) -> Generator[None]:
        """Keep what was read of these runs until the block ends. Their states may be read only inside it."""
        keys = [(tenant_id, run_id) for run_id in run_ids]
        self._followers.update(keys)
        for key in keys:
            self._followed.setdefault(key, _FollowedRun())
        try:
            yield
        finally:
            self._followers.subtract(keys)
            for key in keys:
                if not self._followers[key]:
                    del self._followers[key], self._followed[key]

    async def get_state(self, tenant_id: UUID, run_id: UUID, not_before: float) -> RunState:
        """Return the state of a run after all of its events that have arrived. Raises NotFound.

        `not_before` is a time of the clock: the read has begun then or later.
        """
        run, now = self._followed[tenant_id, run_id], self._clock()
        event_count, latest = self._bus.count_events(tenant_id, run_id), run.latest
        if (
            latest is None
            or latest.event_count != event_count
            or latest.began_at < max(not_before, now - SHARED_SECONDS)
            or (latest.task.done() and (latest.task.cancelled() or latest.task.exception() is not None))
        ):
            latest = run.latest = _Read(now, event_count, self._begin(self._read_state(tenant_id, run_id, run)))
        return await asyncio.shield(latest.task)

    async def list_steps(self, tenant_id: UUID, run_id: UUID, after: int, limit: int) -> list[Step]:
        """Return at most `limit` steps after a seq, without their payloads."""
        pages, key = self._followed[tenant_id, run_id].pages, (after, limit)
        if key not in pages:
            pages[key] = self._begin(self._read_steps(tenant_id, run_id, after, limit))
            pages[key].add_done_callback(lambda _: pages.pop(key, None))
        return await asyncio.shield(pages[key])

    def _begin(self, read: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begin a read that goes on when the follower who began it hangs up, because others may wait for it."""
        task = asyncio.create_task(read)
        self._tasks.add(task)
        task.add_done_callback(self._end)
        return task

    def _end(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # those who wait for it get it, and there may be nobody left

    async def _read_state(self, tenant_id: UUID, run_id: UUID, run: _FollowedRun) -> RunState:
        known = run.step_marks
        limit = 0 if known else FIRST_STEPS
        async with self._database.transaction(tenant_id, pipelined=True) as connection:
            sent = await run_summaries.send_state_query(connection, run_id, marks_after=len(known), step_limit=limit)
        summary, new_marks, steps = await sent.read()
        marks = known + new_marks
        run.step_marks = max(run.step_marks, marks, key=len)
        is_running = summary.run.status is RunStatus.RUNNING
        activity = await self._bus.find_activity(tenant_id, run_id) if is_running else RunActivity(None, [])
        live = build_live_status(summary, activity.action, self._lease_seconds)
        return RunState(RunWithLiveStatus(summary, live, marks), tuple(activity.drafts), tuple(steps))

    async def _read_steps(self, tenant_id: UUID, run_id: UUID, after: int, limit: int) -> list[Step]:
        async with self._database.transaction(tenant_id, pipelined=True) as connection:
            return await run_summaries.list_step_summaries(connection, run_id, after, limit)
