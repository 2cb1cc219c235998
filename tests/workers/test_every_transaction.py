"""A run is disturbed at each of its transactions in turn: before it begins, before its commit, and after it.

Each time the run must end as the undisturbed one did, whether Postgres was away for a moment or the worker died there.
"""

import asyncio

import pytest

from offing.core.model import Usage
from offing.kernel.budget import CallMeter
from offing.services.ingestion import Upload
from offing.storage.migrate import LOCAL_TENANT
from tests.chaos import checker
from tests.chaos.library import DOCUMENTS
from tests.chaos.trial import differences
from tests.documents import ingest_uploads
from tests.workers.interrupted_runs import WAYS, Bench, What, When, bench, complaints, disturbed, shape, transactions_of

__all__ = ["bench"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("when", "what"), WAYS)
@pytest.mark.parametrize("graph", ["counting", "forked", "noop"])
async def test_a_run_ends_the_same_wherever_it_is_disturbed(bench: Bench, graph: str, when: When, what: What) -> None:
    assert await faults(bench, graph, when, what) == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("durability", ["sync", "exit"])
@pytest.mark.parametrize("when", ["before", "undone", "after"])
async def test_a_run_of_several_slices_ends_the_same_wherever_postgres_goes_away(
    bench: Bench, when: When, durability: str
) -> None:
    """Each slice but the last releases the run without a step, and dispatches it to the next worker."""
    bench.slice_turns, bench.durability = 1, durability
    assert await faults(bench, "counting", when, "away") == []


async def faults(bench: Bench, graph: str, when: When, what: What) -> list[str]:
    """What is wrong with runs that were disturbed at one transaction each."""
    count = await transactions_of(bench, graph)
    plain = await disturbed(bench, graph, 0, when, what)
    wrong = list[str]()
    for at in range(1, count + 1):
        rows = await disturbed(bench, graph, at, when, what)
        result = complaints(bench, rows, plain)
        if what == "away":
            result += differing_slices(rows, plain, one_more=bench.slice_turns == 1)
        wrong += [f"{what} {when} transaction {at}: {complaint}" for complaint in result]
    return wrong


def differing_slices(rows: checker.Rows, plain: checker.Rows, *, one_more: bool) -> list[str]:
    """Where a run that no worker was lost of was claimed more often, or in as many slices left other checkpoints.

    `one_more`: a slice that is read again within its last turn may end before it has done anything.
    """
    more = rows.run.fence - plain.run.fence
    if more:
        return [] if one_more and more == 1 else [f"it was claimed {rows.run.fence} times"]
    ours, theirs = (sorted((c.ns, c.superstep) for c in of.saved) for of in (rows, plain))
    return [] if ours == theirs else [f"supersteps {ours} were saved, undisturbed {theirs}"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("overtaking", [2, 3])
async def test_nothing_that_was_left_is_lost_when_the_other_branch_overtook_it(bench: Bench, overtaking: int) -> None:
    count = await transactions_of(bench, "forked")
    plain = await disturbed(bench, "forked", 0, "before", "killed")
    wrong = list[str]()
    for at in range(overtaking + 1, count + 1):
        rows = await disturbed(bench, "forked", at, "before", "killed", at - overtaking)
        wrong += [f"killed at {at}, {at - overtaking} slow: {result}" for result in complaints(bench, rows, plain)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.timeout(300)
async def test_what_a_call_used_is_counted_once_when_another_branch_appends_before_its_step(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle = CallMeter.settle

    async def overtaken(meter: CallMeter, usage: Usage) -> None:
        await settle(meter, usage)
        await asyncio.sleep(0.02)  # the other branch appends, and the worker dies before this one does

    monkeypatch.setattr(CallMeter, "settle", overtaken)
    assert await faults(bench, "forked", "before", "killed") == []


@pytest.mark.parametrize(("when", "what"), WAYS)
async def test_the_real_graph_ends_the_same_wherever_it_is_disturbed(bench: Bench, when: When, what: What) -> None:
    await ingest_uploads(bench.database, LOCAL_TENANT, [Upload(n, t.encode()) for n, t in DOCUMENTS.items()])
    count = await transactions_of(bench, "agentflow")
    plain = await disturbed(bench, "agentflow", 0, when, what)
    wrong = list[str]()
    for at in range(1, count + 1, 2):
        rows = await disturbed(bench, "agentflow", at, when, what)
        results = [*checker.violations(rows), *differences(rows, plain)]
        if shape(rows) != shape(plain):
            results.append(f"steps {shape(rows)}, undisturbed {shape(plain)}")
        wrong += [f"{what} {when} transaction {at}: {complaint}" for complaint in results]
    assert not wrong, "\n".join(wrong)
