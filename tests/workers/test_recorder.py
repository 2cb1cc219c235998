"""A claim's pen when Postgres commits and the answer is lost, and when branches of a graph append side by side."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from decimal import Decimal
from uuid import UUID

import pytest

from offing.core.errors import Fenced, Unavailable
from offing.core.run import Spent
from offing.core.step import CallKey, Step, StepDraft, StepKind
from offing.storage import runs, steps
from offing.storage.checkpoints import FencedSaver
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Connection, Database
from offing.storage.runs import RunRow
from offing_workers.epoch import EpochDatabase
from offing_workers.recollection import Recollection
from offing_workers.recorder import Recorder
from tests.storage.builders import TERM, a_step, claimed


class Forgetful(Database):
    """Loses the answers of as many commits as it is told to."""

    forgets = 0
    away = False

    @asynccontextmanager
    async def transaction(self, tenant: UUID) -> AsyncGenerator[Connection]:
        if self.away:
            raise Unavailable("away")
        async with super().transaction(tenant) as connection:
            yield connection
        if self.forgets:
            self.forgets -= 1
            raise Unavailable("the answer was lost")


class Nobody:
    """Watches."""

    async def steps(self, tenant: UUID, run: UUID, steps: Sequence[Step], /) -> None: ...

    async def doing(self, tenant: UUID, run: UUID, text: str | None, since: datetime | None = None) -> None: ...


@pytest.fixture
async def database(app_url: str) -> AsyncIterator[Forgetful]:
    async with Forgetful(app_url, most=8) as database:
        yield database


async def a_pen(database: Database) -> Recorder:
    fence = (await claimed(database, LOCAL_TENANT)).fence
    return Recorder(
        database,
        Nobody(),
        fence,
        term=TERM,
        journal={},
        spent=Spent(),
        recollection=Recollection(database, LOCAL_TENANT, fence.run, last_seq=1, fresh=True),
        checkpoints=FencedSaver(database, fence, turn_key="turn"),
        monotonic=time.monotonic,
    )


async def kept(database: Database, pen: Recorder) -> tuple[RunRow, list[Step]]:
    async with database.transaction(LOCAL_TENANT) as connection:
        return await runs.by_id(connection, pen.fence.run), await steps.after(connection, pen.fence.run, 1, 1000)


async def test_an_append_whose_answer_was_lost_is_found_and_booked_once(database: Forgetful) -> None:
    pen = await a_pen(database)
    pen.book(7, Decimal("0.01"))
    database.forgets = 1
    (step,) = await pen.append(a_step(key=CallKey(1, "node", 0)))
    await pen.append(a_step(key=CallKey(2, "node", 0)))
    run, stored = await kept(database, pen)
    assert [s.seq for s in stored] == [step.seq, step.seq + 1]
    assert (run.spent.tokens, run.spent.usd) == (7, Decimal("0.01"))


@pytest.mark.parametrize("lost", [1, 2, 3])
async def test_a_step_without_a_key_is_not_doubled_by_lost_answers(database: Forgetful, lost: int) -> None:
    pen = await a_pen(database)
    database.forgets = lost
    await pen.append(StepDraft(StepKind.RESUMED, "Resumed"))
    _, stored = await kept(database, pen)
    assert [s.kind for s in stored] == [StepKind.RESUMED]


async def test_drafts_left_for_later_are_found_with_the_append_that_took_them(database: Forgetful) -> None:
    pen = await a_pen(database)
    pen.leave(a_step("left", key=CallKey(1, "node", 0)))
    database.forgets = 1
    (step,) = await pen.append(a_step("appended", key=CallKey(2, "node", 0)))
    _, stored = await kept(database, pen)
    assert [s.title for s in stored] == ["left", "appended"]
    assert step.title == "appended"


async def test_branches_that_append_side_by_side_book_each_token_once(database: Forgetful) -> None:
    pen = await a_pen(database)

    async def branch(name: str) -> None:
        for n in range(10):
            pen.book(1, Decimal("0.001"))
            await pen.append(a_step(key=CallKey(n, name, 0)))

    await asyncio.gather(*(branch(name) for name in "abcdef"))
    run, stored = await kept(database, pen)
    assert len(stored) == 60
    assert (run.spent.tokens, run.spent.usd) == (60, Decimal("0.060"))
    assert pen.spent.tokens == 60
    assert run.spent.seconds == pytest.approx(pen.spent.seconds, abs=0.5)


async def test_a_pen_that_lost_its_run_writes_nothing_and_keeps_its_booking(database: Forgetful) -> None:
    pen = await a_pen(database)
    pen.book(7, Decimal(0))
    pen.fence = runs.Fence(pen.fence.tenant, pen.fence.run, pen.fence.number - 1, pen.fence.thread)
    with pytest.raises(Fenced):
        await pen.append(a_step())
    run, stored = await kept(database, pen)
    assert (stored, run.spent.tokens) == ([], 0)
    assert pen.spent.tokens == 7


async def test_an_epoch_that_ends_waits_for_what_is_under_way_and_lets_nothing_else_begin(database: Forgetful) -> None:
    epoch = EpochDatabase(database)
    pen = await a_pen(epoch)
    under_way, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(_: Connection, __: list[Step]) -> None:
        under_way.set()
        await go_on.wait()

    branch = asyncio.create_task(pen.append(a_step("branch"), also=slowly))
    await under_way.wait()
    for _ in range(2):  # as a graph's runner does it, beside the branch that failed and as it leaves
        branch.cancel()
        await asyncio.sleep(0)
    pen.retire()
    ending = asyncio.create_task(epoch.end())
    await asyncio.sleep(0)
    assert not ending.done()
    go_on.set()
    await ending
    _, stored = await kept(database, pen)
    assert [s.title for s in stored] == ["branch"]
    with pytest.raises(asyncio.CancelledError):
        await branch
    with pytest.raises(Fenced, match="no longer part"):
        await pen.append(a_step("late", key=CallKey(9, "node", 0)))
    with pytest.raises(Fenced, match="is over"):
        await kept(epoch, pen)


async def test_what_a_failed_append_took_along_goes_with_the_next(database: Forgetful) -> None:
    pen = await a_pen(database)
    pen.leave(a_step("left", key=CallKey(1, "node", 0)))
    pen.book(5, Decimal(0))

    async def fails(_: Connection, __: list[Step]) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await pen.append(a_step("lost", key=CallKey(2, "node", 0)), also=fails)
    await pen.append(a_step("next", key=CallKey(3, "node", 0)))
    run, stored = await kept(database, pen)
    assert [s.title for s in stored] == ["left", "next"]
    assert run.spent.tokens == 5


@pytest.mark.parametrize("stored", [True, False])
async def test_an_append_that_was_cancelled_before_its_outcome_was_known_is_booked_once(
    database: Forgetful, stored: bool
) -> None:
    pen = await a_pen(database)
    pen.leave(a_step("left", key=CallKey(1, "node", 0)))
    pen.book(5, Decimal(0))
    tried = asyncio.Event()

    async def goes_away(_: Connection, __: list[Step]) -> None:
        database.away = True
        tried.set()
        if not stored:
            raise Unavailable("before the commit")

    database.forgets = int(stored)
    branch = asyncio.create_task(pen.append(a_step("doubtful", key=CallKey(2, "node", 0)), also=goes_away))
    await tried.wait()
    for _ in range(20):
        await asyncio.sleep(0.01)  # its answer is lost, and nobody says what became of it
    branch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await branch
    database.away = False
    await pen.append(a_step("next", key=CallKey(3, "node", 0)))
    run, found = await kept(database, pen)
    assert [s.title for s in found] == ["left", *(["doubtful"] if stored else []), "next"]
    assert run.spent.tokens == 5
