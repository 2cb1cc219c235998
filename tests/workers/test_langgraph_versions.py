"""Runs of graphs for LangGraph alone whose version is deleted: upgraded from their position, or left unchanged."""

from pathlib import Path
from uuid import UUID

import pytest

from offing.core.errors import InvalidInput
from offing.core.run import RunStatus
from offing.core.step import Step, StepKind
from offing_workers.replay import replay_run
from tests.workers.conftest import Platform, StartWorker
from tests.workers.graph_versions import FIRST, SECOND, Editions
from tests.workers.langgraph_runs import answer_of, model_calls
from tests.workers.rollout_batches import Sql

SLOW = FIRST.replace(
    'interrupt({"question": "Is it good?", "draft": state["text"]})', "await __import__('asyncio').sleep(600)"
)
"""Which stays in its subgraph for long."""

GOOD = "Beasts (3 parts, ['yes']) by Ada"


@pytest.fixture
def editions(tmp_path: Path, platform: Platform, start_worker: StartWorker) -> Editions:
    return Editions(tmp_path, platform, start_worker)


async def waiting_in_a_branch(editions: Editions) -> UUID:
    """A run of the first edition, one of whose three branches asks a person, and no worker."""
    worker, run = editions.worker(), (await editions.begun()).id
    await editions.asks(run, "Which owls?")
    worker.finish()
    return run


async def list_prompts(platform: Platform, run_id: UUID) -> list[str]:
    return [step.title for step in await platform.steps(run_id) if step.kind is StepKind.INPUT_REQUEST]


def upgrades(steps: list[Step]) -> list[Step]:
    return [step for step in steps if step.payload.get("after") == "upgrade"]


async def ended_with(platform: Platform, editions: Editions, run_id: UUID) -> str:
    """The answer of a run that is told `barn owls` and `yes`."""
    await editions.say(run_id, await editions.asks(run_id, "Which owls?"), "barn owls")
    await editions.say(run_id, await editions.asks(run_id, "Is it good?"), "yes")
    ended = await platform.ended(run_id)
    assert ended.status is RunStatus.DONE, ended.error
    return await answer_of(platform, run_id)


async def test_a_run_with_branches_an_interrupt_and_a_subgraph_continues_in_another_version(
    platform: Platform, editions: Editions
) -> None:
    run = await waiting_in_a_branch(editions)
    editions.publish(SECOND)
    worker = editions.worker()
    await editions.say(run, await editions.asks(run, "Which owls?"), "barn owls")
    question = await editions.asks(run, "Is it good?")
    worker.finish()
    editions.publish(SECOND + "\nTHIRD = True\n")
    editions.worker()
    await editions.say(run, question, "yes")
    ended = await platform.ended(run)
    steps = await platform.steps(run)
    assert (ended.status, await answer_of(platform, run)) == (RunStatus.DONE, GOOD), ended.error
    assert len(upgrades(steps)) == 2
    assert len(model_calls(steps)) == 4
    assert await list_prompts(platform, run) == ["Which owls?", "Is it good?"]


async def test_a_run_that_cannot_be_carried_over_waits_and_a_later_version_takes_it(
    platform: Platform, editions: Editions, sql: Sql
) -> None:
    run = await waiting_in_a_branch(editions)
    before = await editions.states(run)
    editions.publish(SECOND.replace('"part": part', '"part_of": part'))
    worker = editions.worker()
    await editions.say(run, await editions.asks(run, "Which owls?"), "barn owls")
    waiting = await platform.until(run, lambda row: (row.waiting_for or "").startswith("a worker"))
    assert waiting.waiting_for is not None
    assert waiting.waiting_for.endswith(
        "; with the version installed here, its next node 'part' is not in the new version"
    )
    assert await editions.states(run) == before
    worker.finish()
    editions.publish(SECOND)
    sql("update app.run set not_before = now() where id = %s", run)  # it would look again after a minute
    editions.worker()
    await editions.say(run, await editions.asks(run, "Is it good?"), "yes")
    assert (await platform.ended(run)).status is RunStatus.DONE
    assert await answer_of(platform, run) == GOOD


async def test_a_subgraph_that_a_crashed_worker_leaves_reads_its_calls_back_in_the_new_version(
    platform: Platform, editions: Editions
) -> None:
    editions.publish(SLOW)
    worker, run = editions.worker(), (await editions.begun()).id
    await editions.say(run, await editions.asks(run, "Which owls?"), "barn owls")
    await platform.until(run, lambda row: row.usage.turns == 4)
    worker.kill()
    editions.publish(SECOND)
    editions.worker()
    await editions.say(run, await editions.asks(run, "Is it good?"), "yes")
    assert (await platform.ended(run)).status is RunStatus.DONE
    assert await answer_of(platform, run) == GOOD
    assert len(model_calls(await platform.steps(run))) == 4


async def test_a_follow_up_has_the_state_of_its_thread_as_its_own_version_has_it(
    platform: Platform, editions: Editions
) -> None:
    first = await editions.begun()
    worker = editions.worker()
    assert await ended_with(platform, editions, first.id) == GOOD.partition(" by")[0]
    worker.finish()
    editions.publish(SECOND)
    editions.worker()
    second = await editions.begun(thread_id=first.thread_id)
    answer = await ended_with(platform, editions, second.id)
    assert (answer, upgrades(await platform.steps(second.id))) == (GOOD, [])


async def test_a_follow_up_whose_thread_cannot_be_continued_waits_and_says_why(
    platform: Platform, editions: Editions
) -> None:
    first = await editions.begun()
    worker = editions.worker()
    await ended_with(platform, editions, first.id)
    worker.finish()
    editions.publish(SECOND.replace('return {**state, "editor"', 'return None and {**state, "editor"'))
    editions.worker()
    second = await editions.begun(thread_id=first.thread_id)
    waiting = await platform.until(second.id, lambda row: row.status is RunStatus.WAITING)
    why = (
        f"the state of its thread, from {first.graph_version[:12]}, cannot be continued: its upgrade function rejected"
    )
    assert f"; with the version installed here, {why}" in (waiting.waiting_for or "")


async def test_a_run_of_two_versions_is_not_replayed_and_the_error_says_so(
    platform: Platform, editions: Editions
) -> None:
    run = await waiting_in_a_branch(editions)
    editions.publish(SECOND)
    editions.worker()
    await ended_with(platform, editions, run)
    (upgrade,) = upgrades(await platform.steps(run))
    with pytest.raises(InvalidInput, match=f"continued with another version of its graph at step {upgrade.seq}"):
        await replay_run(platform.database, platform.tenant, run, editions.registry())
