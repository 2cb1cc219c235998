"""Money of a tenant and day: reserved within the cap, charged once, and never left over by a claim that was lost."""

import asyncio
from decimal import Decimal

import psycopg
import pytest

from offing.core.errors import LeaseLostError
from offing.core.run import FencingToken, RunStatus
from offing.storage import claims, daily_spend
from offing.storage.claims import Release
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.storage.builders import claimed

CENT = Decimal("0.01")


async def reserve(pool: Database, fence: FencingToken, usd: Decimal) -> bool:
    async with pool.transaction(LOCAL_TENANT) as connection:
        return await daily_spend.reserve(connection, fence, usd) is not None


async def settle_reservation(pool: Database, fence: FencingToken, reserved: Decimal, used: Decimal) -> None:
    async with pool.transaction(LOCAL_TENANT) as connection:
        await daily_spend.settle_reservation(connection, fence, reserved, used, None)


async def day(pool: Database) -> tuple[Decimal, Decimal]:
    """Reserved and used today."""
    async with pool.transaction(LOCAL_TENANT) as connection:
        row = await (await connection.execute("select reserved_usd, used_usd from daily_spend")).fetchone()
    return (row[0], row[1]) if row else (Decimal(0), Decimal(0))


async def get_reserved(pool: Database, fence: FencingToken) -> Decimal:
    async with pool.transaction(LOCAL_TENANT) as connection:
        get_reserved = "select coalesce(sum(reserved_usd), 0) from reservation where run_id = %s"
        row = await (await connection.execute(get_reserved, (fence.run_id,))).fetchone()
    assert row is not None
    return row[0]


def cap(owner_url: str, usd: str) -> None:
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute("update app.tenant set max_daily_spend_usd = %s", (usd,))


async def next_claim(pool: Database, fence: FencingToken, term: float) -> FencingToken:
    """The claim after `fence`, whose lease has passed, when its slice has begun."""
    claim = None
    while claim is None:
        claim = await claims.claim_run(pool, fence.run_id, "another worker", term)
        await asyncio.sleep(0.02)
    assert claim.lease_expired
    for _ in range(2):  # an answer that is lost is a reason to do it again
        async with pool.transaction(LOCAL_TENANT) as connection:
            await daily_spend.release_lost_reservations(connection, claim.fence)
    return claim.fence


async def test_what_was_reserved_is_released_and_what_was_used_is_charged(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    assert await reserve(pool, fence, 5 * CENT)
    assert await get_reserved(pool, fence) == 5 * CENT
    await settle_reservation(pool, fence, 5 * CENT, 2 * CENT)
    assert await day(pool) == (0, 2 * CENT)
    assert await get_reserved(pool, fence) == 0


async def test_use_without_a_reservation_is_charged_on_a_day_that_has_none(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    await settle_reservation(pool, fence, Decimal(0), CENT)
    assert await day(pool) == (0, CENT)


async def test_the_spending_limit_counts_what_others_have_reserved(pool: Database, owner_url: str) -> None:
    cap(owner_url, "0.05")
    first, second = (await claimed(pool, LOCAL_TENANT)).fence, (await claimed(pool, LOCAL_TENANT)).fence
    assert await reserve(pool, first, 3 * CENT)
    assert not await reserve(pool, second, 3 * CENT)
    await settle_reservation(pool, first, 3 * CENT, CENT)
    assert await reserve(pool, second, 3 * CENT)


async def test_a_first_call_over_the_cap_is_rejected(pool: Database, owner_url: str) -> None:
    cap(owner_url, "0.05")
    assert not await reserve(pool, (await claimed(pool, LOCAL_TENANT)).fence, 6 * CENT)
    assert await day(pool) == (0, 0)


async def test_many_reservations_at_once_stay_within_the_cap(pool: Database, owner_url: str) -> None:
    cap(owner_url, "0.10")
    fences = [(await claimed(pool, LOCAL_TENANT)).fence for _ in range(12)]
    granted = await asyncio.gather(*(reserve(pool, fence, 3 * CENT) for fence in fences))
    assert sum(granted) == 3
    assert await day(pool) == (9 * CENT, 0)


async def test_the_next_claim_releases_what_a_lost_one_had_reserved(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT, term=0.2)).fence
    other = (await claimed(pool, LOCAL_TENANT)).fence
    assert await reserve(pool, fence, 5 * CENT)
    assert await reserve(pool, other, CENT)
    await next_claim(pool, fence, 0.2)
    assert await day(pool) == (CENT, 0)
    assert await get_reserved(pool, fence) == 0


async def test_a_lost_claim_charges_what_it_used_and_releases_nothing_a_second_time(pool: Database) -> None:
    expired = (await claimed(pool, LOCAL_TENANT, term=0.2)).fence
    assert await reserve(pool, expired, 5 * CENT)
    current = await next_claim(pool, expired, 0.2)
    assert await reserve(pool, current, 5 * CENT)
    await settle_reservation(pool, expired, 5 * CENT, 2 * CENT)
    assert await day(pool) == (5 * CENT, 2 * CENT)
    assert await get_reserved(pool, current) == 5 * CENT


async def test_a_slice_that_only_ends_releases_what_a_lost_claim_had_reserved(pool: Database) -> None:
    expired = (await claimed(pool, LOCAL_TENANT, term=0.2)).fence
    assert await reserve(pool, expired, 5 * CENT)
    claim = None
    while claim is None:
        claim = await claims.claim_run(pool, expired.run_id, "another worker", 0.2)
    assert await reserve(pool, claim.fence, 2 * CENT)
    await settle_reservation(pool, expired, 5 * CENT, CENT)
    assert await day(pool) == (7 * CENT, CENT)
    async with pool.transaction(LOCAL_TENANT) as connection:
        await claims.release_run(connection, claim.fence, Release(RunStatus.QUEUED))
    assert await day(pool) == (0, CENT)


async def test_a_lost_claim_reserves_nothing(pool: Database) -> None:
    expired = (await claimed(pool, LOCAL_TENANT, term=0.2)).fence
    await next_claim(pool, expired, 0.2)
    with pytest.raises(LeaseLostError):
        await reserve(pool, expired, CENT)
    assert await day(pool) == (0, 0)
