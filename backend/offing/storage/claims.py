"""Claims of workers on runs: how a run is claimed, kept and released, and claimed again after a crash."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from offing.core.errors import LeaseLostError
from offing.core.run import FencingToken, RunStatus, StopReason
from offing.storage.fencing_sql import ASSERT_OWNED, OWNS_RUN, fence_parameters, lease_errors
from offing.storage.pool import Connection, Database
from offing.storage.runs import ControlRequest, control_request_from_row

CLAIM_RUN = "select tenant_id, fence, thread_id, lease_expired, stall_count from app.claim_run(%s, %s, %s)"

CLAIM_NEXT_RUNS = """
    select tenant_id, run_id, fence, thread_id, lease_expired, stall_count, is_rollout
      from app.claim_next_runs(%s, %s, %s, %s, %s)
"""

RENEW_LEASES = "select run_id, cancel_mode, pause_requested, deadline_passed from app.renew_leases(%s, %s, %s)"

WATCH_LEASES = "select app.watch_leases('run', %s)"

SWEEP_RUNS = "select app.sweep_runs(%s, %s, %s) union all select app.sweep_enqueued_runs(%s)"

BEGIN_EPOCH = """
    update run set epoch = epoch + 1, lease_until = clock_timestamp() + %s::interval
     where id = %s and fence = %s and status = 'running' returning epoch
"""
"""Matches any epoch: an attempt without a response has already raised it. The fencing token
protects here, not the clock.
"""

RELEASE_RUN = f"""
    with guard as (
    update run
       set status = %(status)s, worker = null, lease_until = null, stop_reason = %(stop_reason)s, error = %(error)s,
           waiting_for = %(waiting_for)s, not_before = clock_timestamp() + %(wait)s::interval,
           pause_requested = pause_requested and %(status)s = 'queued',
           queued_at = case when %(status)s = 'queued' then clock_timestamp() else queued_at end,
           dispatched_at = clock_timestamp(),
           ended_at = case when %(status)s in ('done', 'failed', 'cancelled') then clock_timestamp() end
     where {OWNS_RUN}
    returning id)
    select {ASSERT_OWNED}
"""
"""Releases a run that the worker still owns."""

IS_RELEASED = "select 1 from run where id = %(run)s and fence = %(fence)s and status <> 'running'"
"""Only the claim itself ends its execution. If another worker changes the run's status later, the
run has already been released.
"""


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim of a worker on a run."""

    fence: FencingToken
    lease_expired: bool
    """The lease of the previous claim had expired."""
    stall_count: int
    """Number of consecutive expired leases without progress."""


@dataclass(frozen=True, slots=True)
class NextClaim:
    """A claimed run with its priority class."""

    claim: Claim
    is_rollout: bool
    """If false, the run is interactive: a person started it, or an interactive run did."""


@dataclass(frozen=True, slots=True)
class Release:
    """The status with which a slice ends."""

    status: RunStatus
    stop_reason: StopReason | None = None
    error: str | None = None
    waiting_for: str | None = None
    wait_seconds: float | None = None
    """For a waiting or queued run: the earliest time to continue. `None` means at once or when it
    is requeued.
    """


async def claim_run(database: Database, run_id: UUID, worker: str, lease_seconds: float) -> Claim | None:
    """Claim a run that no worker has claimed.

    `None` means that it cannot be claimed, and the dispatch can be dropped.
    """
    rows = await database.call_function(CLAIM_RUN, (run_id, worker, f"{lease_seconds} seconds"))
    if not rows:
        return None
    tenant, number, thread, was_lost, stalled = rows[0]
    return Claim(FencingToken(tenant, run_id, number, thread), was_lost, stalled)


async def claim_next_runs(
    database: Database,
    worker: str,
    lease_seconds: float,
    *,
    max_runs: int,
    max_rollouts: int,
    swept_run_ids: Sequence[UUID] = (),
) -> list[NextClaim]:
    """Claim the next queued runs: at most `max_runs`, of which at most `max_rollouts` are rollouts.

    Fewer runs than `max_runs` mean that no more are queued, apart from rollouts beyond
    `max_rollouts`. `swept_run_ids` are the runs that `sweep_overdue_runs` returned.
    """
    rows = await database.call_function(
        CLAIM_NEXT_RUNS, (worker, f"{lease_seconds} seconds", max_runs, max_rollouts, list(swept_run_ids))
    )
    return [
        NextClaim(Claim(FencingToken(tenant, run, number, thread), was_lost, stalled), rollout)
        for tenant, run, number, thread, was_lost, stalled, rollout in rows
    ]


async def renew_lease(database: Database, fence: FencingToken, lease_seconds: float) -> ControlRequest | None:
    """Renew the lease of a claim, and return the run's control request. `None` means that the claim has been lost."""
    parameters = ([fence.run_id], [fence.number], f"{lease_seconds} seconds")
    rows = await database.call_function(RENEW_LEASES, parameters)
    return control_request_from_row(rows[0]) if rows else None


async def sweep_overdue_runs(
    database: Database, overdue_seconds: float, lease_seconds: float, limit: int = 500
) -> list[UUID]:
    """Return runs that are not queued and can be claimed.

    Their worker crashed, or the time for which they waited has come. After a period in which no
    process was running, a run with an expired lease is left to its owner for one more lease.
    """
    await database.call_function(WATCH_LEASES, (f"{lease_seconds} seconds",))
    durations = (f"{overdue_seconds} seconds", f"{lease_seconds} seconds")
    rows = await database.call_function(SWEEP_RUNS, (*durations, limit, limit))
    return [run for (run,) in rows]


async def begin_epoch(connection: Connection, fence: FencingToken, lease_seconds: float) -> FencingToken:
    """Begin the claim's next epoch.

    A worker does so before it reads the call journal again in this transaction. Waits until all
    transactions of the run that are in progress on the server have ended; later ones of an
    earlier epoch fail. Raises `LeaseLostError` if the claim has been lost.
    """
    row = await (
        await connection.execute(BEGIN_EPOCH, (f"{lease_seconds} seconds", fence.run_id, fence.number))
    ).fetchone()
    if row is None:
        raise LeaseLostError(str(fence.run_id), fence.number)
    return replace(fence, epoch=row[0])


async def release_run(connection: Connection, fence: FencingToken, release: Release) -> None:
    """End a claim. Raises `LeaseLostError` if it has been lost; in a pipelined transaction, its end raises that."""
    parameters = {
        **fence_parameters(fence),
        "status": release.status,
        "stop_reason": release.stop_reason,
        "error": release.error,
        "waiting_for": release.waiting_for,
        "wait": None if release.wait_seconds is None else f"{release.wait_seconds} seconds",
    }
    with lease_errors():
        await connection.execute(RELEASE_RUN, parameters)


async def is_released(connection: Connection, fence: FencingToken) -> bool:
    """Return whether this claim has released the run.

    False also if another worker has claimed it since.
    """
    return await (await connection.execute(IS_RELEASED, fence_parameters(fence))).fetchone() is not None
