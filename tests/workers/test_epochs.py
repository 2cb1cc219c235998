"""What a graph leaves behind when Postgres goes away: nothing of it calls or writes in the claim's next epoch."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from uuid import UUID

import pytest

from offing.core.errors import LeaseLostError, Unavailable
from offing.storage.pool import Connection, Database
from tests.chaos import checker
from tests.chaos.private_stack import facts
from tests.workers import special_graphs
from tests.workers.interrupted_runs import Bench, bench, complaints, disturbed, transactions_of

__all__ = ["bench"]

PATIENCE = 0.3
"""Seconds that a transaction waits for another that may never come."""


class Overtaken(Database):
    """Holds one commit. Another transaction, of a branch beside it, begins meanwhile and finds Postgres away; what is
    read after that overtakes the commit where nobody prevents it."""

    held_at = struck_at = begun = 0
    struck = False

    def __init__(self, url: str, *, maximum: int) -> None:
        super().__init__(url, max_connections=maximum)
        self.holding, self.read_again = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def transaction(self, tenant_id: UUID, *, pipelined: bool = False) -> AsyncGenerator[Connection]:
        self.begun += 1
        held, after = self.begun == self.held_at, self.struck
        if self.begun == self.struck_at and await _came(self.holding):
            self.struck = True
            raise Unavailable("on purpose")
        async with super().transaction(tenant_id, pipelined=pipelined) as connection:
            yield connection
            if held:
                self.holding.set()
                await _came(self.read_again)
        if after:
            self.read_again.set()


async def _came(event: asyncio.Event) -> bool:
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), PATIENCE)
    return event.is_set()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("distance", [1, 2])
async def test_no_commit_of_a_branch_arrives_after_the_journal_was_read_again(bench: Bench, distance: int) -> None:
    count = await transactions_of(bench, "forked")
    plain = await disturbed(bench, "forked", 0, "before", "away")
    wrong, struck = list[str](), list[int]()
    for at in range(distance + 1, count + 1):
        run = await bench.submitted("forked")
        async with Overtaken(bench.app_url, maximum=4) as database:
            database.held_at, database.struck_at = at, at - distance
            await bench.advance(database, run)
            struck += [at] if database.struck else []
        wrong += [f"commit {at} held: {result}" for result in complaints(bench, facts(bench.ask, run), plain)]
    assert not wrong, "\n".join(wrong)
    assert len(struck) > 3


async def test_a_task_that_outlives_its_epoch_calls_no_tool_and_takes_nothing_from_the_next(bench: Bench) -> None:
    for stored in (special_graphs.TALLIED, special_graphs.STRAYS, special_graphs.STRAYED):
        stored.clear()
    run = await bench.submitted("straying")
    async with Database(bench.app_url, max_connections=4) as database:
        await bench.advance(database, run)
    (strayed,) = special_graphs.STRAYED
    assert isinstance(strayed, LeaseLostError)
    assert special_graphs.TALLIED == [1]
    rows = facts(bench.ask, run)
    assert checker.violations(rows) == []
    assert [s.turn for s in rows.of_kind("tool_result")] == [1]
