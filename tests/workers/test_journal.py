"""The journal when Postgres commits and the answer is lost, and when branches of a graph append side by side."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from offing.core.answer_draft import DraftEnd, DraftPart
from offing.core.errors import LeaseLostError, Unavailable
from offing.core.model import Usage
from offing.core.run import Budget, FencingToken, RunStatus, RunUsage, StopReason
from offing.core.step import CallKey, Step, StepDraft, StepKind
from offing.kernel.run_store import StepReader
from offing.kernel.usage import ZERO_USD
from offing.models.reservation import reserve_usage
from offing.storage import claims, daily_spend, runs, steps
from offing.storage.claims import Release
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Connection, Database
from offing.storage.runs import RunRow
from offing_workers.epoch import EpochDatabase
from offing_workers.fenced_checkpointer import FencedCheckpointer
from tests.storage.builders import a_step, claimed
from tests.storage.test_checkpoints import a_checkpoint, put
from tests.workers.journal_builders import AJournal, a_journal, journal_of, meter

LATE = 0.1
"""Seconds after which a late commit is carried out."""


class Forgetful(Database):
    """Loses a given number of commits or of their responses; some of those commits come late."""

    forgets = 0
    undoes = 0
    late = 0
    away = False
    coming: asyncio.Task[Any] | None = None
    """A commit that the server has still under way."""

    @asynccontextmanager
    async def transaction(self, tenant_id: UUID, *, pipelined: bool = False) -> AsyncGenerator[Connection]:
        if self.away:
            raise Unavailable("away")
        if self.late:
            self.late -= 1
            async with self._late(tenant_id, pipelined) as connection:
                yield connection
            return
        async with super().transaction(tenant_id, pipelined=pipelined) as connection:
            yield connection
            if self.undoes:
                self.undoes -= 1
                raise Unavailable("before the commit")
        if self.forgets:
            self.forgets -= 1
            raise Unavailable("the answer was lost")

    @asynccontextmanager
    async def _late(self, tenant_id: UUID, pipelined: bool) -> AsyncGenerator[Connection]:
        opened = super().transaction(tenant_id, pipelined=pipelined)
        connection = await opened.__aenter__()
        yield connection
        await (await connection.execute("select 1")).fetchone()  # the server has all statements but the commit

        async def commit() -> None:
            await asyncio.sleep(LATE)
            await opened.__aexit__(None, None, None)

        self.coming = asyncio.create_task(commit())
        raise Unavailable("the answer was lost")


class Audience:
    """Watches."""

    def __init__(self) -> None:
        self.seen: list[Step] = []

    async def publish_steps(self, tenant_id: UUID, run_id: UUID, steps: Sequence[Step], /) -> None:
        await asyncio.sleep(0)
        self.seen += steps

    async def publish_action(
        self, tenant_id: UUID, run_id: UUID, text: str | None, started_at: datetime | None = None
    ) -> None: ...

    async def publish_draft(self, tenant_id: UUID, run_id: UUID, part: DraftPart, /) -> bool:
        return True

    async def end_draft(self, tenant_id: UUID, run_id: UUID, end: DraftEnd, /) -> bool:
        return True


@pytest.fixture
async def database(app_url: str) -> AsyncIterator[Forgetful]:
    async with Forgetful(app_url, max_connections=8) as database:
        yield database


async def list_stored(database: Database, recorder: AJournal) -> tuple[RunRow, list[Step]]:
    async with database.transaction(LOCAL_TENANT) as connection:
        return await runs.get_run(connection, recorder.fence.run_id), await steps.list_steps_after(
            connection, recorder.fence.run_id, 1, 1000
        )


async def closed(recorder: AJournal) -> None:
    """The graph stands still, and the slice ends."""

    async def nothing(_: Connection, __: StepReader) -> None: ...

    recorder.journal.end_calls()
    await recorder.append_last(a_step("closing", key=CallKey(9, "node", 9)), hook=nothing)


async def test_an_append_whose_response_was_lost_is_found_and_charged_once(database: Forgetful) -> None:
    recorder = await a_journal(database)
    recorder.charge(CallKey(1, "node", 0), 7, Decimal("0.01"))
    database.forgets = 1
    (step,) = await recorder.append(a_step(key=CallKey(1, "node", 0)))
    await recorder.append(a_step(key=CallKey(2, "node", 0)))
    run, stored = await list_stored(database, recorder)
    assert [s.seq for s in stored] == [step.seq, step.seq + 1]
    assert (run.usage.tokens, run.usage.cost_usd) == (7, Decimal("0.01"))


@pytest.mark.parametrize("lost_answers", [1, 2, 3])
async def test_a_step_without_a_key_is_not_doubled_by_lost_answers(database: Forgetful, lost_answers: int) -> None:
    recorder = await a_journal(database)
    database.forgets = lost_answers
    await recorder.append(StepDraft(StepKind.RESUMED, "Resumed"))
    _, stored = await list_stored(database, recorder)
    assert [s.kind for s in stored] == [StepKind.RESUMED]


async def test_drafts_left_for_later_are_found_with_the_append_that_took_them(database: Forgetful) -> None:
    recorder = await a_journal(database)
    recorder.journal.buffer(a_step("left", key=CallKey(1, "node", 0)))
    database.forgets = 1
    (step,) = await recorder.append(a_step("appended", key=CallKey(2, "node", 0)))
    _, stored = await list_stored(database, recorder)
    assert [s.title for s in stored] == ["left", "appended"]
    assert step.title == "appended"


async def test_branches_that_append_side_by_side_book_each_token_once(database: Forgetful) -> None:
    recorder = await a_journal(database)

    async def branch(name: str) -> None:
        for n in range(10):
            recorder.charge(CallKey(n, name, 0), 1, Decimal("0.001"))
            await recorder.append(a_step(key=CallKey(n, name, 0)))

    await asyncio.gather(*(branch(name) for name in "abcdef"))
    run, stored = await list_stored(database, recorder)
    assert len(stored) == 60
    assert (run.usage.tokens, run.usage.cost_usd) == (60, Decimal("0.060"))
    assert recorder.spent.tokens == 60
    assert run.usage.seconds == pytest.approx(recorder.spent.seconds, abs=0.5)


async def test_what_a_call_used_is_charged_with_its_own_step_and_not_with_one_that_overtook_it(
    database: Forgetful,
) -> None:
    """A worker that dies between the two makes the call again, and counts it then."""
    recorder = await a_journal(database)
    recorder.charge(CallKey(1, "slow", 0), 3, Decimal("0.01"))
    recorder.charge(CallKey(1, "quick", 0), 4, Decimal("0.02"))
    await recorder.append(a_step("quick", key=CallKey(1, "quick", 0)))
    run, _ = await list_stored(database, recorder)
    assert (run.usage.tokens, run.usage.cost_usd) == (4, Decimal("0.02"))
    assert recorder.spent.tokens == 7
    await recorder.append(a_step("slow", key=CallKey(1, "slow", 0)))
    run, _ = await list_stored(database, recorder)
    assert (run.usage.tokens, run.usage.cost_usd) == (7, Decimal("0.03"))


async def test_a_call_that_never_got_a_step_is_charged_as_the_slice_ends(database: Forgetful) -> None:
    recorder = await a_journal(database)
    recorder.charge(CallKey(1, "cut off", 0), 3, Decimal("0.01"))
    await recorder.append(a_step(key=CallKey(1, "node", 0)))
    await closed(recorder)
    run, _ = await list_stored(database, recorder)
    assert (run.usage.tokens, run.usage.cost_usd) == (3, Decimal("0.01"))


async def test_a_call_that_is_a_turn_is_counted_with_its_own_step_and_not_with_one_that_overtook_it(
    database: Forgetful,
) -> None:
    recorder = await a_journal(database)
    recorder.usage.begin_call_turn(CallKey(1, "slow", 0))
    recorder.usage.begin_call_turn(CallKey(1, "quick", 0))
    await recorder.append(a_step("quick", key=CallKey(1, "quick", 0)))
    run, _ = await list_stored(database, recorder)
    assert (run.usage.turns, recorder.spent.turns) == (1, 2)
    await recorder.append(a_step("slow", key=CallKey(1, "slow", 0)))
    run, _ = await list_stored(database, recorder)
    assert run.usage.turns == 2


async def test_what_a_child_used_is_charged_with_its_step_or_not_at_all(database: Forgetful) -> None:
    """Without the step the child is consumed by the next claim, which counts it then."""
    recorder = await a_journal(database)
    recorder.usage.begin_turn(1)
    recorder.usage.add_child_usage(CallKey(1, "child", 0), RunUsage(turns=4, tokens=5, cost_usd=Decimal("0.02")))
    await recorder.append(a_step("another branch", key=CallKey(1, "node", 0)))
    await closed(recorder)
    run, _ = await list_stored(database, recorder)
    assert (run.usage.turns, run.usage.tokens, run.usage.cost_usd) == (1, 0, 0)
    assert recorder.spent.turns == 5


async def test_what_a_child_used_is_charged_with_the_step_that_records_its_end(database: Forgetful) -> None:
    recorder = await a_journal(database)
    recorder.usage.begin_turn(1)
    recorder.usage.add_child_usage(CallKey(1, "child", 0), RunUsage(turns=4, tokens=5, cost_usd=Decimal("0.02")))
    await recorder.append(a_step("the child", key=CallKey(1, "child", 0)))
    run, _ = await list_stored(database, recorder)
    assert (run.usage.turns, run.usage.tokens, run.usage.cost_usd) == (5, 5, Decimal("0.02"))


async def test_what_a_call_used_that_was_given_up_is_charged_with_the_next_append(database: Forgetful) -> None:
    """Its node may have caught that and gone on, and a later loss would not make the call again."""
    recorder = await a_journal(database)
    recorder.charge(CallKey(1, "node", 0), 3, Decimal("0.01"))
    recorder.usage.detach_call(CallKey(1, "node", 0))
    await recorder.append(a_step(key=CallKey(1, "node", 1)))
    run, _ = await list_stored(database, recorder)
    assert (run.usage.tokens, run.usage.cost_usd) == (3, Decimal("0.01"))


async def test_a_call_whose_time_is_over_while_it_waits_for_room_does_not_wait_on(database: Forgetful) -> None:
    recorder = await a_journal(database)
    budget = recorder.budget(Budget(max_tokens=10))
    beside = budget.reservations
    first, second = (meter(budget, name) for name in "ab")
    assert await first.reserve(8, ZERO_USD) is None

    async def call() -> None:
        async with reserve_usage(second, 6, ZERO_USD):
            raise AssertionError("the call was made")

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(call(), 0.05)
    await first.settle(Usage(prompt_tokens=8))
    assert (recorder.spent.tokens, beside.count) == (8, 0)


async def test_what_was_reserved_for_a_call_that_was_cancelled_twice_is_released(
    database: Forgetful, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder, received, go_on = await a_journal(database), asyncio.Event(), asyncio.Event()
    set_aside = daily_spend.reserve

    async def slowly(connection: Connection, fence: FencingToken, usd: Decimal) -> Any:
        day = await set_aside(connection, fence, usd)
        received.set()
        await go_on.wait()
        return day

    monkeypatch.setattr(daily_spend, "reserve", slowly)

    budget = recorder.budget(Budget())

    async def call() -> None:
        async with reserve_usage(meter(budget, "a"), 1, Decimal("0.5")):
            raise AssertionError("the call was made")

    calling = asyncio.create_task(call())
    await received.wait()
    for _ in range(2):  # as a graph's runner cancels a branch: beside the one that failed, and as it leaves
        calling.cancel()
        await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert (budget.reservations.count, budget.reservations.usd) == (0, 0)
    await closed(recorder)
    async with database.transaction(LOCAL_TENANT) as connection:
        assert (
            await (await connection.execute("select coalesce(sum(reserved_usd), 0) from reservation")).fetchone()
        ) == (0,)


async def test_calls_side_by_side_never_use_more_than_the_budget_together(database: Forgetful) -> None:
    recorder = await a_journal(database)
    budget = recorder.budget(Budget(max_tokens=10))
    beside = budget.reservations
    first, second, third = (meter(budget, name) for name in "abc")
    assert await first.reserve(8, ZERO_USD) is None
    waiting = asyncio.create_task(second.reserve(6, ZERO_USD))
    rejected = asyncio.create_task(third.reserve(9, ZERO_USD))
    await asyncio.sleep(0.05)
    assert not any(task.done() for task in (waiting, rejected))
    await first.settle(Usage(prompt_tokens=3))
    assert await waiting is None
    assert await rejected is StopReason.TOKEN_LIMIT
    await second.settle(Usage(prompt_tokens=6))
    assert (recorder.spent.tokens, beside.count, beside.tokens) == (9, 0, 0)


async def test_a_call_that_waits_for_a_slot_ends_with_its_graph(database: Forgetful) -> None:
    recorder = await a_journal(database)
    budget = recorder.budget(Budget(max_tokens=10))
    first, second = (meter(budget, name) for name in "ab")
    assert await first.reserve(8, ZERO_USD) is None
    waiting = asyncio.create_task(second.reserve(6, ZERO_USD))
    await asyncio.sleep(0)
    recorder.journal.end_calls()
    await first.settle(Usage())
    with pytest.raises(LeaseLostError):
        await waiting


async def test_a_journal_that_lost_its_run_writes_nothing_and_keeps_its_usage(database: Forgetful) -> None:
    fence = (await claimed(database, LOCAL_TENANT)).fence
    older = replace(fence, number=fence.number - 1)
    recorder = await journal_of(database, FencedCheckpointer(database, older, turn_key="turn"), older)
    recorder.charge(CallKey(1, "node", 0), 7, Decimal(0))
    with pytest.raises(LeaseLostError):
        await recorder.append(a_step(key=CallKey(1, "node", 0)))
    run, stored = await list_stored(database, recorder)
    assert (stored, run.usage.tokens) == ([], 0)
    assert recorder.spent.tokens == 7


async def test_an_epoch_that_ends_waits_for_what_is_under_way_and_lets_nothing_else_begin(database: Forgetful) -> None:
    epoch = EpochDatabase(database)
    recorder = await a_journal(epoch)
    under_way, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(_: Connection, __: StepReader) -> None:
        under_way.set()
        await go_on.wait()

    branch = asyncio.create_task(recorder.append(a_step("branch"), inside=slowly))
    await under_way.wait()
    for _ in range(2):  # as a graph's runner does it, beside the branch that failed and as it leaves
        branch.cancel()
        await asyncio.sleep(0)
    recorder.journal.abort()
    ending = asyncio.create_task(epoch.end())
    await asyncio.sleep(0)
    assert not ending.done()
    go_on.set()
    await ending
    _, stored = await list_stored(database, recorder)
    assert [s.title for s in stored] == ["branch"]
    with pytest.raises(asyncio.CancelledError):
        await branch
    with pytest.raises(LeaseLostError, match="no longer part"):
        await recorder.append(a_step("late", key=CallKey(9, "node", 0)))
    with pytest.raises(LeaseLostError, match="has ended"):
        await list_stored(epoch, recorder)


async def test_what_a_failed_append_took_along_goes_with_the_next(database: Forgetful) -> None:
    recorder = await a_journal(database)
    recorder.journal.buffer(a_step("left", key=CallKey(1, "node", 0)))
    recorder.charge(CallKey(2, "node", 0), 5, Decimal(0))

    async def fails(_: Connection, __: StepReader) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await recorder.append(a_step("lost_answers", key=CallKey(2, "node", 0)), inside=fails)
    await recorder.append(a_step("next", key=CallKey(3, "node", 0)))
    await closed(recorder)
    run, stored = await list_stored(database, recorder)
    assert [s.title for s in stored] == ["left", "next", "closing"]
    assert run.usage.tokens == 5


@pytest.mark.parametrize("stored", [True, False])
async def test_an_append_that_was_cancelled_before_its_outcome_was_known_is_charged_once(
    database: Forgetful, stored: bool
) -> None:
    recorder = await a_journal(database)
    recorder.journal.buffer(a_step("left", key=CallKey(1, "node", 0)))
    recorder.charge(CallKey(2, "node", 0), 5, Decimal(0))
    tried = asyncio.Event()

    async def goes_away(_: Connection, __: StepReader) -> None:
        database.away = True
        tried.set()
        if not stored:
            raise Unavailable("before the commit")

    database.forgets = int(stored)
    branch = asyncio.create_task(recorder.append(a_step("doubtful", key=CallKey(2, "node", 0)), inside=goes_away))
    await tried.wait()
    for _ in range(20):
        await asyncio.sleep(0.01)  # its answer is lost, and nobody says what became of it
    branch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await branch
    database.away = False
    await recorder.append(a_step("next", key=CallKey(3, "node", 0)))
    await closed(recorder)
    run, result = await list_stored(database, recorder)
    assert [s.title for s in result] == ["left", *(["doubtful"] if stored else []), "next", "closing"]
    assert run.usage.tokens == 5


@pytest.mark.parametrize(("undone", "forgotten"), [(1, 0), (2, 0), (0, 1), (1, 1)])
async def test_a_run_is_released_without_a_step_with_all_its_checkpoints(
    database: Forgetful, undone: int, forgotten: int
) -> None:
    fence = (await claimed(database, LOCAL_TENANT)).fence
    saver = FencedCheckpointer(database, fence, turn_key="turn")
    recorder = await journal_of(database, saver, fence)
    recorder.charge(CallKey(1, "node", 0), 5, Decimal(0))
    recorder.journal.end_calls()
    for superstep in (1, 2):  # the turn's first, which is due, and one that only the hand-back saves
        await put(saver, a_checkpoint(1), superstep)
    database.undoes, database.forgets = undone, forgotten

    async def handed_back(connection: Connection, _: StepReader) -> None:
        await saver.flush(connection)
        await claims.release_run(connection, fence, Release(RunStatus.QUEUED))

    await recorder.append_last(hook=handed_back)
    run, _ = await list_stored(database, recorder)
    assert (run.status, run.usage.tokens) == (RunStatus.QUEUED, 5)
    assert await supersteps(database) == [1, 2]


@pytest.mark.parametrize("message", [(), (StepDraft(StepKind.PAUSED, "Paused by a person"),)])
async def test_a_release_that_comes_late_is_found_by_the_try_that_had_to_wait_for_it(
    database: Forgetful, message: tuple[StepDraft, ...]
) -> None:
    recorder = await a_journal(database)

    async def handed_back(connection: Connection, _: StepReader) -> None:
        await claims.release_run(connection, recorder.fence, Release(RunStatus.QUEUED))

    database.late = 1
    await recorder.append_last(*message, hook=handed_back)
    assert database.coming
    await database.coming
    run, stored = await list_stored(database, recorder)
    assert run.status is RunStatus.QUEUED
    assert [s.kind for s in stored] == [draft.kind for draft in message]


async def supersteps(database: Database) -> list[int]:
    async with database.transaction(LOCAL_TENANT) as connection:
        cursor = await connection.execute("select superstep from checkpoint order by superstep")
        return [superstep for (superstep,) in await cursor.fetchall()]


async def test_an_append_whose_caller_is_cancelled_at_its_commit_is_remembered_and_shown_once(
    database: Forgetful,
) -> None:
    audience = Audience()
    recorder = await a_journal(database, audience)
    under_way, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(_: Connection, __: StepReader) -> None:
        under_way.set()
        await go_on.wait()

    branch = asyncio.create_task(recorder.append(a_step("cancelled", key=CallKey(1, "node", 0)), inside=slowly))
    await under_way.wait()
    branch.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await branch
    remembered = await recorder.cache.last_steps(StepKind.NOTE, 10)
    await recorder.append(a_step("next", key=CallKey(2, "node", 0)))
    assert [s.title for s in remembered] == ["cancelled"]
    assert [s.title for s in await recorder.cache.last_steps(StepKind.NOTE, 10)] == ["cancelled", "next"]
    assert [s.title for s in audience.seen] == ["cancelled", "next"]
