"""Deleting runs that workers ran: what later runs and forks of their threads still need is kept, and nothing else."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import psycopg
import pytest

from offing.core.errors import Conflict
from offing.core.run import Budget, CancelMode, RunStatus
from offing.services.forks import ForkRequest, fork_run
from offing.services.graphs import open_registry
from offing.services.run_deletion import delete_run
from offing.services.runs import RunRequest, cancel_run, submit_run
from offing.storage import retention
from offing.storage.runs import RunRow
from tests.workers import langgraph_scripts
from tests.workers.conftest import Platform, SharedServers
from tests.workers.langgraph_runs import prompts, turns_of
from tests.workers.langgraph_scripts import REACT, says
from tests.workers.parent_graph import question_for
from tests.workers.processes import ALL_GRAPHS
from tests.workers.rollout_batches import Sql

GRAPHS = f"{ALL_GRAPHS},{langgraph_scripts.GRAPHS}"

ENVIRONMENT = {"OFFING_EXTRA_GRAPHS": GRAPHS}

LINES = {"agent": {"answers": [says("So I said."), says("And so on.")]}}

NEEDLESS_VALUES = """
    select count(*) from app.checkpoint_value v
     where thread_id = %s and not exists (
       select from app.checkpoint c cross join unnest(c.channels, c.versions) as r(channel, version)
        where c.thread_id = v.thread_id and c.ns = v.ns and r.channel = v.channel)
"""

STATES = "select count(*) from app.checkpoint where thread_id = %s"


@pytest.fixture
def rows(shared_servers: SharedServers) -> Iterator[Sql]:
    """Asks the standing worker's database as its owner."""
    with psycopg.connect(shared_servers.owner_url, autocommit=True) as owner:

        def ask(query: str, *parameters: object) -> list[tuple[Any, ...]]:
            cursor = owner.execute(query.encode(), parameters)
            return cursor.fetchall() if cursor.description else []

        yield ask


async def ended(platform: Platform, request: RunRequest) -> RunRow:
    created = await submit_run(
        platform.database, platform.notifier, platform.tenant, request, graphs=open_registry(GRAPHS)
    )
    run = await platform.ended(created.run.id)
    assert run.status is RunStatus.DONE, run.error
    return run


async def forked(platform: Platform, run_id: UUID, at: int | None = None) -> RunRow:
    created = await fork_run(
        platform.database, platform.notifier, platform.tenant, ForkRequest(run_id, at), graphs=open_registry(GRAPHS)
    )
    run = await platform.ended(created.run.id)
    assert run.status is RunStatus.DONE, run.error
    return run


def follow_up(run: RunRow) -> RunRequest:
    return replace(REACT, question="And now?", lines=LINES).request(thread=run.thread_id)


async def prompts_of(platform: Platform, run: RunRow) -> list[tuple[str, ...]]:
    return prompts(await turns_of(platform, run.id))


async def test_after_the_latest_run_of_a_thread_is_deleted_the_next_one_begins_where_it_began(
    shared_platform: Platform, rows: Sql
) -> None:
    first = await ended(shared_platform, REACT.request())
    before = rows(STATES, first.thread_id)
    second = await ended(shared_platform, follow_up(first))
    expected = await prompts_of(shared_platform, second)
    await delete_run(shared_platform.database, shared_platform.tenant, second.id)
    assert rows(STATES, first.thread_id) == before
    assert rows(NEEDLESS_VALUES, first.thread_id) == [(0,)]
    third = await ended(shared_platform, follow_up(first))
    assert await prompts_of(shared_platform, third) == expected


async def test_a_fork_of_a_follow_up_continues_and_is_forked_after_its_whole_thread_was_deleted(
    shared_platform: Platform, rows: Sql
) -> None:
    first = await ended(shared_platform, REACT.request())
    second = await ended(shared_platform, follow_up(first))
    fork = await forked(shared_platform, second.id, 2)
    expected = await prompts_of(shared_platform, second)
    result = await delete_run(shared_platform.database, shared_platform.tenant, first.id, with_later_runs=True)
    assert (result.run_ids, result.fork_ids) == ((first.id, second.id), (fork.id,))
    assert rows("select id from app.thread where id = %s", first.thread_id) == []
    again = await forked(shared_platform, fork.id, 2)
    assert await prompts_of(shared_platform, again) == expected
    after = await ended(shared_platform, follow_up(fork))
    text = " ".join(word for prompt in await prompts_of(shared_platform, after) for word in prompt)
    assert REACT.question in text  # of the first run, from the state that the fork has copied


async def test_the_state_with_which_a_fork_began_is_kept_when_old_states_are_removed(
    shared_platform: Platform,
) -> None:
    first = await ended(shared_platform, REACT.request())
    second = await ended(shared_platform, follow_up(first))
    fork = await forked(shared_platform, second.id, 2)
    await delete_run(shared_platform.database, shared_platform.tenant, first.id, with_later_runs=True)
    async with shared_platform.database.transaction(shared_platform.tenant) as connection:
        await retention.prune_run(connection, fork.id)
    again = await forked(shared_platform, fork.id, 2)
    assert await prompts_of(shared_platform, again) == await prompts_of(shared_platform, fork)


async def test_runs_that_a_run_started_are_deleted_with_it_and_not_alone(shared_platform: Platform, rows: Sql) -> None:
    question = question_for(
        {"question": "one", "turns": 2}, {"question": question_for({"question": "two"}), "graph": "family"}
    )
    run = await ended(shared_platform, RunRequest(question, "family", budget=Budget(max_turns=20)))
    family = [id for (id,) in rows("select run_id from app.child_run")]
    for child in family:
        with pytest.raises(Conflict, match="was started by run"):
            await delete_run(shared_platform.database, shared_platform.tenant, child)
    result = await delete_run(shared_platform.database, shared_platform.tenant, run.id)
    assert (result.run_ids, result.child_run_count) == ((run.id,), len(family))
    assert len(family) == 3
    assert rows("select id from app.run where id = any(%s)", [run.id, *family]) == []
    assert rows("select id from app.thread where kind = 'child'") == []


async def test_a_run_whose_fork_is_active_is_kept_until_the_fork_has_ended(shared_platform: Platform) -> None:
    origin = await ended(shared_platform, RunRequest("Count", "counting", budget=Budget(max_turns=2)))
    created = await fork_run(
        shared_platform.database,
        shared_platform.notifier,
        shared_platform.tenant,
        ForkRequest(origin.id, 2, budget=Budget(max_turns=400)),
        graphs=open_registry(GRAPHS),
    )
    with pytest.raises(Conflict, match=f"Run {created.run.id}, a fork of it"):
        await delete_run(shared_platform.database, shared_platform.tenant, origin.id)
    await cancel_run(
        shared_platform.database, shared_platform.notifier, shared_platform.tenant, created.run.id, CancelMode.DISCARD
    )
    await shared_platform.ended(created.run.id)
    result = await delete_run(shared_platform.database, shared_platform.tenant, origin.id)
    assert result.fork_ids == (created.run.id,)
