"""What a watcher of runs is told: each durable step once and in order, and the runs' state beside them.

Notices from the bus only make it quick. Every gap, doubt and silence is settled by reading Postgres, so nothing depends
on Redis but time.
"""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from offing.bus.live import LiveBus, Look, NewSteps, Notice, NowDoing
from offing.core.run import TERMINAL
from offing.core.step import Step
from offing.services.views import DetailedRun, Live, live_of
from offing.storage import views
from offing.storage.pool import Database

PAGE = 500
"""Steps read at once when catching up."""

STATE_SECONDS = 1.0
"""The least time between two tellings of a run's state."""

BEAT_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class StepSeen:
    run: UUID
    step: Step
    """Without payload."""


@dataclass(frozen=True, slots=True)
class RunSeen:
    run: UUID
    detail: DetailedRun


@dataclass(frozen=True, slots=True)
class LiveSeen:
    run: UUID
    live: Live | None


@dataclass(frozen=True, slots=True)
class EndSeen:
    run: UUID


@dataclass(frozen=True, slots=True)
class Beat:
    """Nothing happened for a while; the connection is alive."""


Event = StepSeen | RunSeen | LiveSeen | EndSeen | Beat


@dataclass(slots=True)
class _Watched:
    """How far one run has been told."""

    run: UUID
    sent: int
    """Seq of the last step told."""
    detail: DetailedRun | None = None
    told_at: float = float("-inf")
    stale: bool = True
    """Something happened since its state was told."""

    def changed_to(self, new: DetailedRun) -> bool:
        return self.detail is None or _state(self.detail) != _state(new)


def _state(detail: DetailedRun) -> tuple[object, ...]:
    shown, run = detail.shown, detail.shown.run
    what = (run.status, run.waiting_for, run.spent, run.last_seq, run.pause_requested)
    return (*what, shown.title, shown.questions)


class Feed:
    """The events of some runs of one tenant, from a place in each. Ends when all of them have."""

    def __init__(
        self,
        database: Database,
        bus: LiveBus,
        tenant: UUID,
        after: Mapping[UUID, int],
        *,
        lease_seconds: float,
        still_allowed: Callable[[], Awaitable[object]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`after`: the last step that each run's watcher has. `still_allowed` raises when the caller no longer is."""
        self._database, self._bus, self._tenant = database, bus, tenant
        self._lease, self._allowed, self._clock = lease_seconds, still_allowed, clock
        self._open = {run: _Watched(run, seq) for run, seq in after.items()}

    async def events(self) -> AsyncGenerator[Event]:
        """Raises NotFound at once when a run is not this tenant's, and Unauthorised when the caller is shut out."""
        async with self._bus.follow(self._tenant, self._open.keys()) as notices:
            await self._check()
            quiet_since = self._clock()
            notice: Notice = Look()
            while True:
                async for event in self._told(notice):
                    yield event
                    quiet_since = self._clock()
                if not self._open or self._bus.closing:
                    return
                if self._clock() - quiet_since >= BEAT_SECONDS:
                    await self._allowed()
                    yield Beat()
                    quiet_since = self._clock()
                notice = await notices.next(self._patience(quiet_since))

    async def _check(self) -> None:
        """Before anything is told of several runs: a stream that has begun can refuse nothing any more."""
        if len(self._open) == 1:
            return
        async with self._database.transaction(self._tenant) as connection:
            await views.check_runs(connection, list(self._open))

    def _patience(self, quiet_since: float) -> float:
        """Seconds until there is something to do without a notice."""
        due = [w.told_at + STATE_SECONDS for w in self._open.values() if w.stale]
        return max(0.0, min([quiet_since + BEAT_SECONDS, *due]) - self._clock())

    async def _told(self, notice: Notice) -> AsyncGenerator[Event]:
        match notice:
            case NewSteps(run, steps) if run in self._open:
                async for event in self._new_steps(self._open[run], steps):
                    yield event
            case NowDoing(run, doing) if (watched := self._open.get(run)) and watched.detail:
                seen = watched.detail.live.worker_seen if watched.detail.live else None
                live = doing and Live(doing, seen)
                watched.detail = replace(watched.detail, live=live)
                yield LiveSeen(run, live)
            case Look():
                for watched in self._open.values():
                    watched.stale = True
            case _:
                pass
        for watched in [w for w in self._open.values() if w.stale]:
            if self._clock() - watched.told_at >= STATE_SECONDS:
                async for event in self._look(watched):
                    yield event

    async def _new_steps(self, watched: _Watched, steps: tuple[Step, ...]) -> AsyncGenerator[Event]:
        if steps[0].seq > watched.sent + 1:
            async for event in self._catch_up(watched, steps[0].seq - 1):
                yield event
        for step in steps:
            if step.seq == watched.sent + 1:
                watched.sent = step.seq
                yield StepSeen(watched.run, step)
        watched.stale = True
        if steps[-1].kind == "ended":
            watched.told_at = float("-inf")

    async def _catch_up(self, watched: _Watched, upto: int) -> AsyncGenerator[Event]:
        while watched.sent < upto:
            async with self._database.transaction(self._tenant) as connection:
                page = await views.lines(connection, watched.run, watched.sent, min(PAGE, upto - watched.sent))
            for step in page:
                watched.sent = step.seq
                yield StepSeen(watched.run, step)
            if not page:
                return

    async def _look(self, watched: _Watched) -> AsyncGenerator[Event]:
        """Tell the state where it changed, then every step up to it, then the end where it has come."""
        detail = await self._read(watched)
        changed = watched.changed_to(detail)
        watched.detail, watched.told_at, watched.stale = detail, self._clock(), False
        run = detail.shown.run
        if changed:
            yield RunSeen(watched.run, detail)
        async for event in self._catch_up(watched, run.last_seq):
            yield event
        if run.status in TERMINAL:
            del self._open[watched.run]
            yield EndSeen(watched.run)

    async def _read(self, watched: _Watched) -> DetailedRun:
        known = watched.detail.marks if watched.detail else ""
        async with self._database.transaction(self._tenant) as connection:
            shown = await views.run(connection, watched.run)
            marks = known + await views.marks(connection, watched.run, len(known))
        return DetailedRun(shown, await live_of(self._bus, self._tenant, shown, self._lease), marks)
