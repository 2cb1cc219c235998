"""A family of runs is disturbed at each of its transactions in turn, the parent's and the children's alike.

Each time every child was made once, was consumed and charged once, and nobody waits for ever.
"""

from uuid import UUID

import pytest

from offing.core.model import EngineConfig
from offing.core.run import Budget
from offing.services.graphs import open_registry
from offing.services.runs import RunRequest, submit_run
from offing.storage import runs
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.workers.interrupted_runs import WAYS, Bench, Disturbed, Quiet, What, When, bench
from tests.workers.parent_graph import question_for
from tests.workers.processes import ALL_GRAPHS

__all__ = ["bench"]

MAX_SLICES = 30

EVERY: dict[What, int] = {"killed": 3, "away": 5}
"""Which transactions are tried; an own number here, such as 1, tries them all."""

QUESTION = question_for({"question": "one", "turns": 1}, {"question": "two", "turns": 2})


async def submitted(bench: Bench) -> UUID:
    options = {"answers": [{"word": "w"}], "usage": {"prompt_tokens": 3, "cost_usd": "0.01"}}
    engines = {"speaker": EngineConfig(engine="scripted", options=options)}
    request = RunRequest(QUESTION, "family", budget=Budget(max_turns=20), engines=engines)
    return (await submit_run(bench.database, Quiet(), LOCAL_TENANT, request, graphs=open_registry(ALL_GRAPHS))).run.id


def family_of(bench: Bench, parent_id: UUID) -> list[UUID]:
    children = bench.ask(
        "select run_id from app.child_run c join app.run r on r.id = run_id where parent_id = %s order by r.seed",
        parent_id,
    )
    return [parent_id, *(run for (run,) in children)]


def claimable(bench: Bench, parent_id: UUID) -> UUID | None:
    """The next of the family that a worker could take, the lost ones first. None: there is none."""
    query = "select id from app.run where id = any(%s) and status in ('running', 'queued') order by status desc, id"
    result = bench.ask(query, family_of(bench, parent_id))
    return result[0][0] if result else None


async def disturbed(bench: Bench, at: int, when: When, what: What) -> tuple[UUID, int]:
    """A family that was disturbed at its nth transaction, and how many there were until it had ended or been lost."""
    parent = await submitted(bench)
    async with Disturbed(bench.app_url, maximum=4) as database:
        database.at, database.when, database.what = at, when, what
        for _ in range(MAX_SLICES):
            run = claimable(bench, parent)
            if run is None:
                break
            await bench.advance(database if not database.dead else bench.database, run)
            if database.dead:
                bench.lose(run)
        return parent, database.begun


def complaints(bench: Bench, parent_id: UUID) -> list[str]:
    family = family_of(bench, parent_id)
    rows = bench.ask(
        "select kind, status, turns, tokens, cost_usd from app.run where id = any(%s) order by created_at", family
    )
    kinds = [(r[0], r[1]) for r in rows]
    result = [] if kinds == [("interactive", "done"), *[("child", "done")] * 2] else [f"rows {rows}"]
    if rows[0][2:] != (4, 9, rows[1][4] + rows[2][4]):
        result.append(f"the parent's totals are {rows[0]}")
    query = "select payload->'args'->>'question' from app.step where run_id = %s and kind = 'tool_result' order by seq"
    if (taken := bench.ask(query, parent_id)) != [("one",), ("two",)]:
        result.append(f"consumed: {taken}")
    if bench.ask("select 1 from app.child_run where parent_id = %s and consumed_at is null", parent_id):
        result.append("a child was not marked as consumed")
    ((difference,),) = bench.ask(
        "select sum(s.used_usd) - (select sum(cost_usd) from app.run where kind = 'interactive') from app.daily_spend s"
    )
    if difference:
        result.append(f"{difference} too much is booked")
    return result


async def test_an_undisturbed_family_is_as_it_should_be(bench: Bench) -> None:
    parent, _ = await disturbed(bench, 0, "before", "away")
    assert complaints(bench, parent) == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("when", "what"), WAYS)
async def test_a_family_ends_the_same_wherever_it_is_disturbed(bench: Bench, when: When, what: What) -> None:
    _, count = await disturbed(bench, 0, when, what)
    wrong = list[str]()
    for at in range(1 + (when == "after"), count + 1, EVERY[what]):
        parent, _ = await disturbed(bench, at, when, what)
        wrong += [f"{what} {when} transaction {at}: {complaint}" for complaint in complaints(bench, parent)]
    assert not wrong, "\n".join(wrong)


async def test_children_that_end_at_once_queue_their_parent_once_all_have(bench: Bench) -> None:
    """The first to end leaves the parent waiting; the last one queues it, in its own transaction."""
    parent = await submitted(bench)
    await bench.advance(bench.database, parent)
    _, first, second = family_of(bench, parent)
    assert await _status(bench.database, parent) == "waiting"
    await bench.advance(bench.database, second)
    assert await _status(bench.database, parent) == "waiting"
    await bench.advance(bench.database, first)
    assert await _status(bench.database, parent) == "queued"


async def _status(database: Database, run_id: UUID) -> str:
    async with database.transaction(LOCAL_TENANT) as connection:
        return (await runs.get_run(connection, run_id)).status
