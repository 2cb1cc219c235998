"""Appending: in order, without a gap, once, and only by the owner."""

import asyncio

import pytest

from offing.core.errors import LeaseLostError
from offing.core.step import CallKey
from offing.core.usage import UsageDelta
from offing.storage import claims, runs, steps
from offing.storage.claims import Claim
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.steps import AlreadyRecordedError
from tests.storage.builders import TERM, a_step, claimed, older


async def append(pool: Database, claim: Claim, *titles: str, key: CallKey | None = None) -> list[int]:
    async with pool.transaction(LOCAL_TENANT) as connection:
        drafts = [a_step(title, key=key) for title in titles]
        return [s.seq for s in await steps.append_steps(connection, claim.fence, TERM, drafts, UsageDelta())]


async def test_steps_follow_one_another_without_a_gap(pool: Database) -> None:
    claim = await claimed(pool, LOCAL_TENANT)
    assert await append(pool, claim, "a", "b") == [2, 3]
    assert await append(pool, claim, "c") == [4]


async def test_parallel_appends_to_one_run_all_get_a_seq(pool: Database) -> None:
    claim = await claimed(pool, LOCAL_TENANT)
    sequences = await asyncio.gather(*(append(pool, claim, "x", "y") for _ in range(20)))
    assert sorted(seq for pair in sequences for seq in pair) == list(range(2, 42))


async def test_a_stale_worker_appends_nothing(pool: Database) -> None:
    claim = await claimed(pool, LOCAL_TENANT, term=0.01)
    await asyncio.sleep(0.02)
    stale = Claim(older(claim.fence), False, 0)
    with pytest.raises(LeaseLostError):
        await append(pool, stale, "too late")
    async with pool.transaction(LOCAL_TENANT) as connection:
        assert len(await steps.list_steps_after(connection, claim.fence.run_id, 0, 10)) == 1


async def test_a_call_is_recorded_once(pool: Database) -> None:
    claim = await claimed(pool, LOCAL_TENANT)
    key = CallKey(3, "pull/act", 0)
    await append(pool, claim, "first", key=key)
    with pytest.raises(AlreadyRecordedError):
        await append(pool, claim, "second", key=key)
    async with pool.transaction(LOCAL_TENANT) as connection:
        journal = await steps.load_journal(connection, claim.fence.run_id, 2)
        run = await runs.get_run(connection, claim.fence.run_id)
    assert [step.title for step in journal.values()] == ["first"]
    assert run.last_seq == 2


async def test_duplicate_notifications_claim_a_run_once(pool: Database) -> None:
    claim = await claimed(pool, LOCAL_TENANT)
    again = await asyncio.gather(*(claims.claim_run(pool, claim.fence.run_id, "other", TERM) for _ in range(20)))
    assert again == [None] * 20


async def test_an_ended_run_stays_ended(pool: Database) -> None:
    claim = await claimed(pool, LOCAL_TENANT)
    release = claims.Release(runs.RunStatus.DONE, stop_reason=runs.StopReason.ANSWERED)
    async with pool.transaction(LOCAL_TENANT) as connection:
        await claims.release_run(connection, claim.fence, release)
    assert await claims.claim_run(pool, claim.fence.run_id, "other", TERM) is None
    with pytest.raises(Exception, match="has ended"):
        async with pool.transaction(LOCAL_TENANT) as connection:
            await runs.set_run_status(connection, claim.fence.run_id, runs.RunStatus.QUEUED)
