"""An epoch of a claim ends for the database, too: what an earlier one has sent is in before it is over, or never."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from offing.clock import new_id
from offing.core.errors import LeaseLostError
from offing.core.run import FencingToken, RunStatus
from offing.core.step import CallKey
from offing.core.tool import SideEffect
from offing.core.usage import UsageDelta
from offing.storage import checkpoint_upgrade, child_runs, claims, daily_spend, fencing_sql, intents, steps
from offing.storage.checkpoints import PostgresCheckpointStore
from offing.storage.claims import Release
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Connection, Database
from offing_workers.fenced_checkpointer import FencedCheckpointer
from tests.storage.builders import TERM, a_step, claimed
from tests.storage.test_checkpoints import a_checkpoint, put

CENT = Decimal("0.01")


async def reopened(pool: Database, fence: FencingToken) -> FencingToken:
    async with pool.transaction(LOCAL_TENANT) as connection:
        return await claims.begin_epoch(connection, fence, TERM)


async def _flush(pool: Database, connection: Connection, fence: FencingToken) -> None:
    saver = FencedCheckpointer(pool, fence, turn_key="turn")
    await put(saver, a_checkpoint(1))
    await saver.flush(connection)


async def _writes(pool: Database, connection: Connection, fence: FencingToken) -> None:
    saver = FencedCheckpointer(pool, fence, turn_key="turn")
    config = {"configurable": {"checkpoint_ns": "", "checkpoint_id": "c"}}
    await saver.aput_writes(config, [("seen", 1)], "task")  # type: ignore[arg-type]
    await saver.flush(connection)


async def _separate_transaction(pool: Database, _: Connection, fence: FencingToken) -> None:
    await put(FencedCheckpointer(pool, fence), a_checkpoint(1))


async def _with_values(pool: Database, _: Connection, fence: FencingToken) -> None:
    checkpoint = a_checkpoint(1, text="x" * 500)
    checkpoint["channel_versions"] = {"text": "1"}
    await put(FencedCheckpointer(pool, fence, content_types=()), checkpoint)


async def _ended_calls(pool: Database, connection: Connection, fence: FencingToken) -> None:
    await PostgresCheckpointStore(pool, fence, ()).delete_namespaces(connection, ["node:task"])


Write = Callable[[Database, Connection, FencingToken], Awaitable[object]]

WRITES: dict[str, Write] = {
    "an append": lambda _, c, f: steps.append_steps(c, f, TERM, [a_step()], UsageDelta()),
    "a checkpoint with an append": _flush,
    "a checkpoint of its own": _separate_transaction,
    "a checkpoint with values of its own": _with_values,
    "the end of subgraphs' calls": _ended_calls,
    "fewer checkpoints": lambda p, _, f: FencedCheckpointer(p, f).aprune([str(f.thread_id)]),
    "no checkpoints": lambda p, _, f: FencedCheckpointer(p, f).adelete_thread(str(f.thread_id)),
    "no checkpoints of a run": lambda p, _, f: FencedCheckpointer(p, f).adelete_for_runs(["other"]),
    "another thread's checkpoints": lambda p, _, f: FencedCheckpointer(p, f).acopy_thread(
        str(new_id()), str(f.thread_id)
    ),
    "what tasks wrote": _writes,
    "an intent": lambda _, c, f: intents.insert_intent(c, f, CallKey(1, "n", 0), "tool", {}, SideEffect.IDEMPOTENT),
    "a reservation": lambda _, c, f: daily_spend.reserve(c, f, CENT),
    "children": lambda _, c, f: child_runs.lock_parent(c, f),
    "another version": lambda _, c, f: checkpoint_upgrade.set_graph_version(c, f, "2"),
    "the hand-back": lambda _, c, f: claims.release_run(c, f, Release(RunStatus.QUEUED)),
}
"""Every way by which a claim writes to its run."""


@pytest.mark.parametrize("what", WRITES)
async def test_what_an_earlier_epoch_sends_late_is_rejected(pool: Database, what: str) -> None:
    earlier = (await claimed(pool, LOCAL_TENANT)).fence
    later = await reopened(pool, earlier)
    assert (later.number, later.epoch) == (earlier.number, earlier.epoch + 1)
    with pytest.raises(LeaseLostError):
        async with pool.transaction(LOCAL_TENANT) as connection:
            await WRITES[what](pool, connection, earlier)
    async with pool.transaction(LOCAL_TENANT) as connection:
        await WRITES[what](pool, connection, later)


def test_no_statement_checks_a_run_s_fence_without_its_epoch() -> None:
    """Beside the condition itself: what begins an epoch, what proves both in its own way, and the question whether a
    claim has released, which changes nothing."""
    folder = Path(fencing_sql.__file__).parent
    files = [file for file in folder.glob("*.py") if file.name not in ("fencing_sql.py", "training_jobs.py")]
    results = {file.name: count for file in files if (count := file.read_text().count("fence = %"))}
    assert results == {"claims.py": 2, "daily_spend.py": 1}


async def test_a_new_epoch_waits_for_what_the_server_has_under_way_and_reads_it(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    appended, go_on = asyncio.Event(), asyncio.Event()

    async def an_append_that_nobody_waits_for() -> None:
        async with pool.transaction(LOCAL_TENANT) as connection:
            await steps.append_steps(connection, fence, TERM, [a_step("late", key=CallKey(1, "n", 0))], UsageDelta())
            appended.set()
            await go_on.wait()

    async def reading() -> list[str]:
        async with pool.transaction(LOCAL_TENANT) as connection:
            await claims.begin_epoch(connection, fence, TERM)
            return [s.title for s in (await steps.load_journal(connection, fence.run_id, -2)).values()]

    writer = asyncio.create_task(an_append_that_nobody_waits_for())
    await appended.wait()
    reader = asyncio.create_task(reading())
    await waits_for_a_lock(pool)
    assert not reader.done()
    go_on.set()
    assert await reader == ["late"]
    await writer


async def waits_for_a_lock(pool: Database) -> None:
    while True:
        rows = await pool.call_function("select count(*) from pg_locks where not granted", ())
        if rows[0][0]:
            return
        await asyncio.sleep(0.01)


async def test_an_epoch_whose_beginning_nobody_heard_of_is_begun_again(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    await reopened(pool, fence)
    assert (await reopened(pool, fence)).epoch == fence.epoch + 2


async def test_only_the_owner_begins_an_epoch_and_a_claim_begins_with_the_first(pool: Database) -> None:
    expired = await reopened(pool, (await claimed(pool, LOCAL_TENANT, term=0.1)).fence)
    async with pool.transaction(LOCAL_TENANT) as connection:
        await connection.execute("update run set lease_until = clock_timestamp() - interval '1 hour'")
    claim = None
    while claim is None:  # a server that has just started lets every lease live for one more term
        claim = await claims.claim_run(pool, expired.run_id, "another worker", 0.1)
    with pytest.raises(LeaseLostError):
        await reopened(pool, expired)
    async with pool.transaction(LOCAL_TENANT) as connection:
        await steps.append_steps(connection, claim.fence, TERM, [a_step()], UsageDelta())


async def reserve(pool: Database, fence: FencingToken) -> date | None:
    async with pool.transaction(LOCAL_TENANT) as connection:
        return await daily_spend.reserve(connection, fence, CENT)


async def set_aside(pool: Database) -> dict[date, Decimal]:
    async with pool.transaction(LOCAL_TENANT) as connection:
        return dict(await (await connection.execute("select day, reserved_usd from daily_spend")).fetchall())


async def _new_epoch(pool: Database, fence: FencingToken) -> None:
    await reopened(pool, fence)


async def _handed_back(pool: Database, fence: FencingToken) -> None:
    async with pool.transaction(LOCAL_TENANT) as connection:
        await claims.release_run(connection, fence, Release(RunStatus.DONE))


async def _released_and_settled(pool: Database, fence: FencingToken) -> None:
    async with pool.transaction(LOCAL_TENANT) as connection:
        await claims.release_run(connection, fence, Release(RunStatus.QUEUED))
        await daily_spend.settle_reservation(connection, fence, CENT, Decimal(0), None)


async def _forgotten(pool: Database, fence: FencingToken) -> None:
    async with pool.transaction(LOCAL_TENANT) as connection:
        await connection.execute("delete from run where id = %s", (fence.run_id,))


@pytest.mark.parametrize("over", [_new_epoch, _handed_back, _released_and_settled, _forgotten])
async def test_a_reservation_is_released_once_when_its_claim_or_epoch_ends(
    pool: Database, over: Callable[[Database, FencingToken], Awaitable[None]]
) -> None:
    fence, other = (await claimed(pool, LOCAL_TENANT)).fence, (await claimed(pool, LOCAL_TENANT)).fence
    day = await reserve(pool, fence)
    await reserve(pool, fence)
    await reserve(pool, other)
    await over(pool, fence)
    assert await set_aside(pool) == {day: CENT}


async def test_what_was_reserved_yesterday_is_released_to_yesterday(pool: Database, owner_url: str) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    day = await reserve(pool, fence)
    assert day is not None
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute("update app.daily_spend set day = day - 1")
        owner.execute("update app.reservation set day = day - 1")
    await reserve(pool, fence)
    await reopened(pool, fence)
    assert await set_aside(pool) == {day: 0, day - timedelta(days=1): 0}


async def test_a_checkpoint_that_becomes_due_while_another_is_committed_is_not_forgotten(pool: Database) -> None:
    saver = FencedCheckpointer(pool, (await claimed(pool, LOCAL_TENANT)).fence, turn_key="turn")
    await put(saver, a_checkpoint(1), 1)
    async with pool.transaction(LOCAL_TENANT) as connection:
        due = await saver.save_due(connection)
        await put(saver, a_checkpoint(2), 2)
    saver.confirm_saved(due)
    async with pool.transaction(LOCAL_TENANT) as connection:
        await saver.save_due(connection)
        rows = await (await connection.execute("select turn from checkpoint order by turn")).fetchall()
    assert rows == [(1,), (2,)]
