"""Produce the events of an event stream: each durable step once and in order, and changes of the run's state.

Bus events only reduce the delay. After every gap or silence the feed reads Postgres, so it loses no event
without Redis. What followers of one run read is read once for all of them.
"""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from offing.api.run_reads import RunState, SharedRunReads
from offing.bus.live import LiveBus
from offing.bus.live_events import ActionEvent, BusEvent, DraftEvent, ResyncEvent, StepsEvent
from offing.core.answer_draft import DraftChange, DraftTracker
from offing.core.run import TERMINAL_STATUSES
from offing.core.step import Step
from offing.services.run_summaries import LiveStatus, RunWithLiveStatus
from offing.storage import run_summaries
from offing.storage.pool import Database

PAGE_STEPS = 500
"""Number of steps that are read at once when a client catches up."""

BURST_STEPS = 100
"""Maximum number of steps that are sent together. A client that reads slowly gets them within the time for one send."""

MIN_STATE_INTERVAL_SECONDS = 1.0
"""Minimum seconds between two state events of a run."""

KEEP_ALIVE_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class StepFeedEvent:
    run_id: UUID
    step: Step
    """The step without its payload."""
    is_followed: bool = field(default=False, compare=False)
    """Whether the next step follows at once, so that both can be sent together."""


@dataclass(frozen=True, slots=True)
class RunFeedEvent:
    run_id: UUID
    detail: RunWithLiveStatus


@dataclass(frozen=True, slots=True)
class LiveFeedEvent:
    run_id: UUID
    live: LiveStatus | None


@dataclass(frozen=True, slots=True)
class DraftFeedEvent:
    run_id: UUID
    change: DraftChange
    """Each text of a draft is sent once and in order."""


@dataclass(frozen=True, slots=True)
class EndFeedEvent:
    run_id: UUID


@dataclass(frozen=True, slots=True)
class KeepAlive:
    """Nothing happened for a while. This event keeps the connection open."""


FeedEvent = StepFeedEvent | RunFeedEvent | LiveFeedEvent | DraftFeedEvent | EndFeedEvent | KeepAlive


@dataclass(slots=True)
class _RunPosition:
    """How far the events of one run have been sent."""

    run_id: UUID
    last_seq: int
    """Seq of the last step that was sent."""
    detail: RunWithLiveStatus | None = None
    state_sent_at: float = float("-inf")
    stale: bool = True
    """Whether something happened since the state was sent last."""
    resync_at: float = float("-inf")
    """When an event may have been missed last. The state is read after it."""
    drafts: DraftTracker = field(default_factory=DraftTracker)

    def has_changed(self, new: RunWithLiveStatus) -> bool:
        return self.detail is None or _state_key(self.detail) != _state_key(new)


def _state_key(detail: RunWithLiveStatus) -> tuple[object, ...]:
    summary, run = detail.summary, detail.summary.run
    what = (run.status, run.waiting_for, run.usage, run.last_seq, run.pause_requested)
    return (*what, summary.title, summary.labels, summary.pending_input_requests, summary.is_interrupted)


class RunEventFeed:
    """The events of some runs of one tenant, from a given step of each run.

    It ends when all of them have ended.
    """

    def __init__(
        self,
        database: Database,
        bus: LiveBus,
        reads: SharedRunReads,
        tenant_id: UUID,
        after: Mapping[UUID, int],
        *,
        reauthenticate: Callable[[], Awaitable[object]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start after the steps in `after`, the last step that the client has of each run.

        `reauthenticate` raises an error when the caller is no longer allowed to read.
        """
        self._database, self._bus, self._reads, self._tenant = database, bus, reads, tenant_id
        self._reauthenticate, self._clock = reauthenticate, clock
        self._open = {run: _RunPosition(run, seq) for run, seq in after.items()}

    async def events(self) -> AsyncGenerator[FeedEvent]:
        """Yield the events.

        Raises NotFound at once for a run of another tenant, and Unauthorized when access has ended.
        """
        runs = list(self._open)
        async with self._bus.subscribe(self._tenant, runs) as notices:
            with self._reads.follow(self._tenant, runs):
                await self._check_runs()
                quiet_since = self._clock()
                notice: BusEvent | None = ResyncEvent()
                while True:
                    async for event in self._handle(notice):
                        yield event
                        quiet_since = self._clock()
                    if not self._open or self._bus.is_closing:
                        return
                    if self._clock() - quiet_since >= KEEP_ALIVE_SECONDS:
                        await self._reauthenticate()
                        yield KeepAlive()
                        quiet_since = self._clock()
                    notice = await notices.next(self._seconds_until_due(quiet_since))

    async def _check_runs(self) -> None:
        """Raise NotFound before the first event of several runs, because a stream that has begun can no longer fail."""
        if len(self._open) == 1:
            return
        async with self._database.transaction(self._tenant) as connection:
            await run_summaries.check_runs(connection, list(self._open))

    def _seconds_until_due(self, quiet_since: float) -> float:
        """Return the seconds until something is due without a bus event."""
        due = [w.state_sent_at + MIN_STATE_INTERVAL_SECONDS for w in self._open.values() if w.stale]
        return max(0.0, min([quiet_since + KEEP_ALIVE_SECONDS, *due]) - self._clock())

    async def _handle(self, bus_event: BusEvent | None) -> AsyncGenerator[FeedEvent]:
        """Yield what an event brings, and every state that is due. `None` means that no event arrived."""
        match bus_event:
            case StepsEvent(run, steps) if run in self._open:
                async for event in self._emit_steps(self._open[run], steps):
                    yield event
            case ActionEvent(run, doing) if (watched := self._open.get(run)) and watched.detail:
                heartbeat_at = watched.detail.live.worker_heartbeat_at if watched.detail.live else None
                live = doing and LiveStatus(doing, heartbeat_at)
                watched.detail = replace(watched.detail, live=live)
                yield LiveFeedEvent(run, live)
            case DraftEvent(run, change) if watched := self._open.get(run):
                async for event in self._emit_draft(watched, change):
                    yield event
            case ResyncEvent():
                for watched in self._open.values():
                    watched.stale, watched.resync_at = True, self._clock()
            case _:
                pass
        async for event in self._emit_due_states():
            yield event

    async def _emit_due_states(self) -> AsyncGenerator[FeedEvent]:
        for watched in [w for w in self._open.values() if w.stale]:
            if self._clock() - watched.state_sent_at >= MIN_STATE_INTERVAL_SECONDS:
                async for event in self._emit_state(watched):
                    yield event

    async def _emit_steps(self, watched: _RunPosition, steps: tuple[Step, ...]) -> AsyncGenerator[FeedEvent]:
        if steps[0].seq > watched.last_seq + 1:
            async for event in self._catch_up(watched, steps[0].seq - 1):
                yield event
        for step in steps:
            if step.seq == watched.last_seq + 1:
                watched.last_seq = step.seq
                yield StepFeedEvent(watched.run_id, step)
        watched.stale = True
        if steps[-1].kind == "ended":
            watched.state_sent_at = float("-inf")

    async def _emit_draft(self, watched: _RunPosition, change: DraftChange) -> AsyncGenerator[FeedEvent]:
        changes = watched.drafts.apply(change)
        if changes is None:
            changes = watched.drafts.synchronize(await self._bus.list_drafts(self._tenant, watched.run_id))
        for new in changes:
            yield DraftFeedEvent(watched.run_id, new)

    async def _synchronize_drafts(self, watched: _RunPosition, state: RunState) -> AsyncGenerator[FeedEvent]:
        """Yield the drafts so far to a client that has just connected, and end those that a crashed worker left."""
        for change in watched.drafts.synchronize(state.drafts):
            yield DraftFeedEvent(watched.run_id, change)

    async def _catch_up(self, watched: _RunPosition, upto: int) -> AsyncGenerator[FeedEvent]:
        while watched.last_seq < upto:
            limit = min(PAGE_STEPS, upto - watched.last_seq)
            page = await self._reads.list_steps(self._tenant, watched.run_id, watched.last_seq, limit)
            for number, step in enumerate(page, 1):
                watched.last_seq = step.seq
                yield StepFeedEvent(watched.run_id, step, number % BURST_STEPS > 0 and number < len(page))
            if not page:
                return

    async def _emit_state(self, watched: _RunPosition) -> AsyncGenerator[FeedEvent]:
        """Yield the state if it has changed, then every step up to it, then the end if the run has ended."""
        state = await self._reads.get_state(self._tenant, watched.run_id, watched.resync_at)
        detail, changed = state.detail, watched.has_changed(state.detail)
        watched.detail, watched.state_sent_at, watched.stale = detail, self._clock(), False
        run = detail.summary.run
        if changed:
            yield RunFeedEvent(watched.run_id, detail)
        for step in state.first_steps if len(state.first_steps) >= run.last_seq else ():
            if step.seq == watched.last_seq + 1:
                watched.last_seq = step.seq
                yield StepFeedEvent(watched.run_id, step, step.seq < state.first_steps[-1].seq)
        async for event in self._catch_up(watched, run.last_seq):
            yield event
        async for event in self._synchronize_drafts(watched, state):
            yield event
        if run.status in TERMINAL_STATUSES:
            del self._open[watched.run_id]
            yield EndFeedEvent(watched.run_id)
