"""Delete ended runs with all that belongs to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from offing.core.errors import Conflict, NotFound, OffingError
from offing.core.run import TERMINAL_STATUSES, RunStatus
from offing.services.run_labels import check_started_by_person
from offing.services.several import try_each
from offing.storage import run_deletion as rows
from offing.storage.erasure import lift_timeouts
from offing.storage.pool import Connection, Database, repeat_deadlocked
from offing.storage.runs import RunRow


@dataclass(frozen=True, slots=True)
class DeletionResult:
    """What was deleted, and what was kept."""

    run_ids: tuple[UUID, ...]
    """The run and, if requested, the later runs of its thread, oldest first."""
    child_run_count: int
    """Number of runs that these runs had started, directly or through others."""
    fork_ids: tuple[UUID, ...]
    """Forks of deleted runs. They stay, with the steps that they copied."""


async def delete_run(
    database: Database, tenant_id: UUID, run_id: UUID, *, with_later_runs: bool = False, keeps_thread: bool = False
) -> DeletionResult:
    """Delete an ended run permanently with the runs that it started.

    A later run of the thread began with the states of the run. It is deleted, too, if `with_later_runs`. The thread is
    deleted with its last run unless `keeps_thread`. Raises NotFound, and Conflict if something of it is active or if a
    later run would remain.
    """
    return await repeat_deadlocked(lambda: _delete_run(database, tenant_id, run_id, with_later_runs, keeps_thread))


async def _delete_run(
    database: Database, tenant_id: UUID, run_id: UUID, with_later_runs: bool, keeps_thread: bool
) -> DeletionResult:
    async with database.transaction(tenant_id) as connection:
        await lift_timeouts(connection)
        first, *later = await rows.lock_runs_from(connection, run_id)
        await check_started_by_person(connection, first, "deleted")
        _check_ended(first)
        _check_later(first, later, with_later_runs)
        deleted = [run.id for run in (first, *later)]
        descendants = await rows.lock_descendants(connection, deleted)
        _check_descendants(first, descendants)
        forks = await _list_inactive_forks(connection, first, [*deleted, *descendants])
        await rows.delete_runs(
            connection, tenant_id, first.thread_id, deleted, list(descendants), keeps_thread=keeps_thread
        )
    return DeletionResult(tuple(deleted), len(descendants), forks)


async def delete_runs(
    database: Database, tenant_id: UUID, run_ids: Sequence[UUID], *, with_later_runs: bool = False
) -> dict[UUID, DeletionResult | OffingError]:
    """Delete several ended runs, each completely or not at all. Return for each what was deleted, or why it stays.

    The latest is deleted first, so that of several runs of one thread none has later ones when its turn comes. A run
    that was deleted with an earlier one has an empty result. If the database becomes unavailable, the others are not
    tried: they have the error, too. The one at which it happened may have been deleted.
    """
    async with database.transaction(tenant_id) as connection:
        latest_first = await rows.sort_latest_first(connection, run_ids)
    deleted: set[UUID] = set()

    async def delete(run_id: UUID) -> DeletionResult:
        if run_id in deleted:
            return DeletionResult((), 0, ())
        result = await delete_run(database, tenant_id, run_id, with_later_runs=with_later_runs)
        deleted.update(result.run_ids)
        return result

    everything = (*latest_first, *(set(run_ids) - set(latest_first)))
    return dict(await try_each(everything, delete, (NotFound, Conflict)))


def _check_ended(run: RunRow) -> None:
    if not run.is_terminal:
        raise Conflict(f"Run {run.id} has not ended ({run.status}).", "Cancel it first, then delete it.")


def _check_later(first: RunRow, later: Sequence[RunRow], with_later_runs: bool) -> None:
    if active := next((run for run in later if not run.is_terminal), None):
        problem = f"Run {active.id}, a later run of the thread, has not ended ({active.status})."
        raise Conflict(problem, "Cancel it first, then delete both.")
    if later and not with_later_runs:
        who = "A later run of its thread builds" if len(later) == 1 else f"{len(later)} later runs of its thread build"
        raise Conflict(f"{who} on run {first.id}.", "Delete the later runs first, or all together with later_runs.")


def _check_descendants(first: RunRow, descendants: Mapping[UUID, RunStatus]) -> None:
    if active := next((id for id, status in descendants.items() if status not in TERMINAL_STATUSES), None):
        problem = f"Run {active}, which run {first.id} started, has not ended ({descendants[active]})."
        raise Conflict(problem, "Cancel it, or wait until it ends, then delete again.")


async def _list_inactive_forks(connection: Connection, first: RunRow, deleted: Sequence[UUID]) -> tuple[UUID, ...]:
    """Return the forks of the deleted runs. Raises Conflict if a run that reads them through a fork is active."""
    forks = await rows.list_forks(connection, deleted)
    if active := next((fork for fork, _, is_active in forks if is_active), None):
        problem = f"Run {active}, a fork of it, or a later run of the fork's thread has not ended."
        raise Conflict(f"Run {first.id} is still read. {problem}", "Cancel that run, or wait until it ends.")
    return tuple(fork for fork, is_direct, _ in forks if is_direct)
