"""What people see of runs, steps, threads and reports, put together from Postgres and, for this moment, the bus."""

import base64
import binascii
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

from offing.bus.live import Doing, LiveBus, Look, NewSteps, Notice
from offing.core.errors import InvalidInput, NotFound
from offing.core.run import TERMINAL, RunStatus
from offing.core.step import Step, StepKind
from offing.storage import reports_read, steps, views
from offing.storage.pool import Database
from offing.storage.reports_read import ReadReport
from offing.storage.views import Place, RunFilter, ShownRun, TenantRow, ThreadRow


@dataclass(frozen=True, slots=True)
class Live:
    """What a run does now, as far as it is known."""

    doing: Doing
    worker_seen: datetime | None
    """When its worker last renewed its lease."""


@dataclass(frozen=True, slots=True)
class DetailedRun:
    shown: ShownRun
    live: Live | None
    marks: str


@dataclass(frozen=True, slots=True)
class Thread:
    thread: ThreadRow
    runs: list[ShownRun]


@dataclass(frozen=True, slots=True)
class Unset:
    """A setting that a request leaves as it is."""


UNSET = Unset()


def cursor_of(place: Place) -> str:
    """A place in a list as an opaque text."""
    return base64.urlsafe_b64encode(f"{place[0].isoformat()} {place[1].hex}".encode()).decode().rstrip("=")


def place_of(cursor: str | None) -> Place | None:
    """The place that `cursor_of` wrote. Raises InvalidInput for any other text."""
    if cursor is None:
        return None
    try:
        at, _, id = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode().partition(" ")
        place = datetime.fromisoformat(at), UUID(id)
    except (ValueError, binascii.Error):
        place = None
    if place is None or place[0].tzinfo is None or not 1970 <= place[0].year <= 9000:
        raise InvalidInput("cursor", "is not one that this list gave out", "Send `next` of the page before, unchanged.")
    return place


async def list_runs(
    database: Database, tenant: UUID, wanted: RunFilter, cursor: str | None, limit: int
) -> tuple[list[ShownRun], str | None]:
    """A page of runs, newest first, and the cursor of the next one. None: this was the last."""
    before = place_of(cursor)
    async with database.transaction(tenant) as connection:
        found = await views.list_runs(connection, wanted, before, limit + 1)
    page = found[:limit]
    return page, cursor_of((page[-1].run.created_at, page[-1].run.id)) if len(found) > limit else None


async def run_detail(database: Database, bus: LiveBus, tenant: UUID, run: UUID, lease_seconds: float) -> DetailedRun:
    """A run with its horizon and what it does now. Raises NotFound."""
    async with database.transaction(tenant) as connection:
        shown = await views.run(connection, run)
        marks = await views.marks(connection, run)
    return DetailedRun(shown, await live_of(bus, tenant, shown, lease_seconds), marks)


async def live_of(bus: LiveBus, tenant: UUID, shown: ShownRun, lease_seconds: float) -> Live | None:
    """None: no worker has the run."""
    run = shown.run
    if run.status is not RunStatus.RUNNING:
        return None
    seen = shown.lease_until - timedelta(seconds=lease_seconds) if shown.lease_until else None
    doing = await bus.now(tenant, run.id)
    return Live(doing or Doing("working", run.started_at or run.created_at), seen)


async def wait_for_end(database: Database, bus: LiveBus, tenant: UUID, run: UUID, seconds: float) -> bool:
    """Whether the run ended within `seconds`. Follows the bus; looks itself only when something may have been missed.

    A process that stops waits no longer. Raises NotFound.
    """
    until = time.monotonic() + seconds
    async with bus.follow(tenant, [run]) as notices:
        while True:
            async with database.transaction(tenant) as connection:
                status = await views.status(connection, run)
            if status in TERMINAL:
                return True
            if bus.closing:
                return False
            while (left := until - time.monotonic()) > 0 and not may_have_ended(await notices.next(left)):
                pass
            if left <= 0:
                return False


def may_have_ended(notice: Notice) -> bool:
    """Whether a run's status is worth reading again."""
    if isinstance(notice, NewSteps):
        return any(step.kind is StepKind.ENDED for step in notice.steps)
    return isinstance(notice, Look)


async def step_lines(
    database: Database, tenant: UUID, run: UUID, after: int, limit: int, kind: StepKind | None
) -> tuple[list[Step], int | None]:
    """A page of steps in order, and the `after` of the next one. None: this was the last. Raises NotFound."""
    async with database.transaction(tenant) as connection:
        await views.status(connection, run)
        found = await views.lines(connection, run, after, limit + 1, kind)
    page = found[:limit]
    return page, page[-1].seq if len(found) > limit else None


async def whole_steps(
    database: Database, tenant: UUID, run: UUID, kinds: Sequence[StepKind], after: int, limit: int
) -> tuple[list[Step], int | None]:
    """A page of steps of these kinds with their payloads, and the `after` of the next one. Raises NotFound."""
    async with database.transaction(tenant) as connection:
        await views.status(connection, run)
        found = await steps.of_kinds(connection, run, kinds, after, limit + 1)
    page = found[:limit]
    return page, page[-1].seq if len(found) > limit else None


async def step(database: Database, tenant: UUID, run: UUID, seq: int) -> Step:
    """One step, whole. Raises NotFound."""
    async with database.transaction(tenant) as connection:
        found = await steps.by_seq(connection, run, [seq])
    if not found:
        raise NotFound("step", f"{seq} of run {run}")
    return found[0]


async def list_threads(
    database: Database, tenant: UUID, cursor: str | None, limit: int
) -> tuple[list[Thread], str | None]:
    """A page of threads with their runs, newest first, and the cursor of the next one."""
    before = place_of(cursor)
    async with database.transaction(tenant) as connection:
        found = await views.threads(connection, before, limit + 1)
        page = found[:limit]
        runs = await views.runs_of(connection, [t.id for t in page])
    threads = [Thread(t, runs[t.id]) for t in page]
    return threads, cursor_of((page[-1].created_at, page[-1].id)) if len(found) > limit else None


async def thread(database: Database, tenant: UUID, id: UUID) -> Thread:
    """Raises NotFound."""
    async with database.transaction(tenant) as connection:
        found = await views.thread(connection, id)
        return Thread(found, (await views.runs_of(connection, [id]))[id])


async def report(database: Database, tenant: UUID, run: UUID, version: int | None = None) -> ReadReport:
    """A version of a run's report, its citations checked just now; None: the latest. Raises NotFound."""
    async with database.transaction(tenant) as connection:
        return await reports_read.read(connection, run, version)


async def collections(database: Database, tenant: UUID) -> list[tuple[str, int]]:
    """Collections by name, each with the number of its sources that can be searched."""
    async with database.transaction(tenant) as connection:
        return await views.collections(connection)


async def tenant_settings(database: Database, tenant: UUID) -> TenantRow:
    async with database.transaction(tenant) as connection:
        return await views.tenant(connection, tenant)


async def change_tenant(
    database: Database,
    tenant: UUID,
    *,
    opt_in: bool | Unset = UNSET,
    daily_spend_usd: Decimal | Unset | None = UNSET,
) -> TenantRow:
    """Change what is given. `daily_spend_usd` None: no cap."""
    async with database.transaction(tenant) as connection:
        if not isinstance(opt_in, Unset):
            await views.change_opt_in(connection, tenant, opt_in)
        if not isinstance(daily_spend_usd, Unset):
            await views.change_cap(connection, tenant, daily_spend_usd)
        return await views.tenant(connection, tenant)
