"""An epoch of a claim ends for the database, too: what an earlier one has sent is in before it is over, or never."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from offing.clock import new_id
from offing.core.errors import Fenced
from offing.core.run import Fence, RunStatus
from offing.core.step import CallKey
from offing.core.tool import Effect
from offing.core.usage import UsageDelta
from offing.storage import checkpoint_upgrade, child_runs, fencing, intents, runs, spend, steps
from offing.storage.checkpoints import PostgresCheckpoints
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Connection, Database
from offing.storage.runs import Release
from offing_workers.saver import FencedSaver
from tests.storage.builders import TERM, a_step, claimed
from tests.storage.test_checkpoints import a_checkpoint, put

CENT = Decimal("0.01")


async def reopened(pool: Database, fence: Fence) -> Fence:
    async with pool.transaction(LOCAL_TENANT) as connection:
        return await runs.reopen(connection, fence, TERM)


async def _flush(pool: Database, connection: Connection, fence: Fence) -> None:
    saver = FencedSaver(pool, fence, turn_key="turn")
    await put(saver, a_checkpoint(1))
    await saver.flush(connection)


async def _writes(pool: Database, connection: Connection, fence: Fence) -> None:
    saver = FencedSaver(pool, fence, turn_key="turn")
    config = {"configurable": {"checkpoint_ns": "", "checkpoint_id": "c"}}
    await saver.aput_writes(config, [("seen", 1)], "task")  # type: ignore[arg-type]
    await saver.flush(connection)


async def _own_transaction(pool: Database, _: Connection, fence: Fence) -> None:
    await put(FencedSaver(pool, fence), a_checkpoint(1))


async def _with_values(pool: Database, _: Connection, fence: Fence) -> None:
    checkpoint = a_checkpoint(1, text="x" * 500)
    checkpoint["channel_versions"] = {"text": "1"}
    await put(FencedSaver(pool, fence, content=()), checkpoint)


async def _ended_calls(pool: Database, connection: Connection, fence: Fence) -> None:
    await PostgresCheckpoints(pool, fence, ()).end_calls(connection, ["node:task"])


Write = Callable[[Database, Connection, Fence], Awaitable[object]]

WRITES: dict[str, Write] = {
    "an append": lambda _, c, f: steps.append(c, f, TERM, [a_step()], UsageDelta()),
    "a checkpoint with an append": _flush,
    "a checkpoint of its own": _own_transaction,
    "a checkpoint with values of its own": _with_values,
    "the end of subgraphs' calls": _ended_calls,
    "fewer checkpoints": lambda p, _, f: FencedSaver(p, f).aprune([str(f.thread)]),
    "no checkpoints": lambda p, _, f: FencedSaver(p, f).adelete_thread(str(f.thread)),
    "no checkpoints of a run": lambda p, _, f: FencedSaver(p, f).adelete_for_runs(["other"]),
    "another thread's checkpoints": lambda p, _, f: FencedSaver(p, f).acopy_thread(str(new_id()), str(f.thread)),
    "what tasks wrote": _writes,
    "an intent": lambda _, c, f: intents.declare(c, f, CallKey(1, "n", 0), "tool", {}, Effect.IDEMPOTENT),
    "a reservation": lambda _, c, f: spend.reserve(c, f, CENT),
    "children": lambda _, c, f: child_runs.hold(c, f),
    "another version": lambda _, c, f: checkpoint_upgrade.repin(c, f, "2"),
    "the hand-back": lambda _, c, f: runs.hand_back(c, f, Release(RunStatus.QUEUED)),
}
"""Every way by which a claim writes to its run."""


@pytest.mark.parametrize("what", WRITES)
async def test_what_an_earlier_epoch_sends_late_is_refused(pool: Database, what: str) -> None:
    earlier = (await claimed(pool, LOCAL_TENANT)).fence
    later = await reopened(pool, earlier)
    assert (later.number, later.epoch) == (earlier.number, earlier.epoch + 1)
    with pytest.raises(Fenced):
        async with pool.transaction(LOCAL_TENANT) as connection:
            await WRITES[what](pool, connection, earlier)
    async with pool.transaction(LOCAL_TENANT) as connection:
        await WRITES[what](pool, connection, later)


def test_no_statement_checks_a_run_s_fence_without_its_epoch() -> None:
    """Beside the condition itself: what begins an epoch, what proves both in its own way, and the question whether a
    claim has handed back, which changes nothing."""
    folder = Path(fencing.__file__).parent
    files = [file for file in folder.glob("*.py") if file.name not in ("fencing.py", "training_jobs.py")]
    found = {file.name: count for file in files if (count := file.read_text().count("fence = %"))}
    assert found == {"runs.py": 2, "spend.py": 1}


async def test_a_new_epoch_waits_for_what_the_server_has_under_way_and_reads_it(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    appended, go_on = asyncio.Event(), asyncio.Event()

    async def an_append_that_nobody_waits_for() -> None:
        async with pool.transaction(LOCAL_TENANT) as connection:
            await steps.append(connection, fence, TERM, [a_step("late", key=CallKey(1, "n", 0))], UsageDelta())
            appended.set()
            await go_on.wait()

    async def reading() -> list[str]:
        async with pool.transaction(LOCAL_TENANT) as connection:
            await runs.reopen(connection, fence, TERM)
            return [s.title for s in (await steps.journal(connection, fence.run, -2)).values()]

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
        rows = await pool.platform("select count(*) from pg_locks where not granted", ())
        if rows[0][0]:
            return
        await asyncio.sleep(0.01)


async def test_an_epoch_whose_beginning_nobody_heard_of_is_begun_again(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    await reopened(pool, fence)
    assert (await reopened(pool, fence)).epoch == fence.epoch + 2


async def test_only_the_owner_begins_an_epoch_and_a_claim_begins_with_the_first(pool: Database) -> None:
    lost = await reopened(pool, (await claimed(pool, LOCAL_TENANT, term=0.1)).fence)
    async with pool.transaction(LOCAL_TENANT) as connection:
        await connection.execute("update run set lease_until = clock_timestamp() - interval '1 hour'")
    claim = None
    while claim is None:  # a server that has just started lets every lease live for one more term
        claim = await runs.claim(pool, lost.run, "another worker", 0.1)
    with pytest.raises(Fenced):
        await reopened(pool, lost)
    async with pool.transaction(LOCAL_TENANT) as connection:
        await steps.append(connection, claim.fence, TERM, [a_step()], UsageDelta())


async def reserve(pool: Database, fence: Fence) -> date | None:
    async with pool.transaction(LOCAL_TENANT) as connection:
        return await spend.reserve(connection, fence, CENT)


async def set_aside(pool: Database) -> dict[date, Decimal]:
    async with pool.transaction(LOCAL_TENANT) as connection:
        return dict(await (await connection.execute("select day, reserved from spend")).fetchall())


async def _new_epoch(pool: Database, fence: Fence) -> None:
    await reopened(pool, fence)


async def _handed_back(pool: Database, fence: Fence) -> None:
    async with pool.transaction(LOCAL_TENANT) as connection:
        await runs.hand_back(connection, fence, Release(RunStatus.DONE))


async def _handed_back_and_settled(pool: Database, fence: Fence) -> None:
    async with pool.transaction(LOCAL_TENANT) as connection:
        await runs.hand_back(connection, fence, Release(RunStatus.QUEUED))
        await spend.settle(connection, fence, CENT, Decimal(0), None)


async def _forgotten(pool: Database, fence: Fence) -> None:
    async with pool.transaction(LOCAL_TENANT) as connection:
        await connection.execute("delete from run where id = %s", (fence.run,))


@pytest.mark.parametrize("over", [_new_epoch, _handed_back, _handed_back_and_settled, _forgotten])
async def test_what_is_set_aside_is_given_back_once_when_its_claim_or_epoch_is_over(
    pool: Database, over: Callable[[Database, Fence], Awaitable[None]]
) -> None:
    fence, other = (await claimed(pool, LOCAL_TENANT)).fence, (await claimed(pool, LOCAL_TENANT)).fence
    day = await reserve(pool, fence)
    await reserve(pool, fence)
    await reserve(pool, other)
    await over(pool, fence)
    assert await set_aside(pool) == {day: CENT}


async def test_what_was_set_aside_yesterday_is_given_back_to_yesterday(pool: Database, owner_url: str) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    day = await reserve(pool, fence)
    assert day is not None
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute("update app.spend set day = day - 1")
        owner.execute("update app.reservation set day = day - 1")
    await reserve(pool, fence)
    await reopened(pool, fence)
    assert await set_aside(pool) == {day: 0, day - timedelta(days=1): 0}


async def test_a_checkpoint_that_becomes_due_while_another_is_committed_is_not_forgotten(pool: Database) -> None:
    saver = FencedSaver(pool, (await claimed(pool, LOCAL_TENANT)).fence, turn_key="turn")
    await put(saver, a_checkpoint(1), 1)
    async with pool.transaction(LOCAL_TENANT) as connection:
        due = await saver.save(connection)
        await put(saver, a_checkpoint(2), 2)
    saver.saved(due)
    async with pool.transaction(LOCAL_TENANT) as connection:
        await saver.save(connection)
        rows = await (await connection.execute("select turn from checkpoint order by turn")).fetchall()
    assert rows == [(1,), (2,)]
