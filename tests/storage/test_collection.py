"""Rows of collecting: tasks once by content, policy versions that never change, nothing across tenants."""

import asyncio
from typing import Any
from uuid import UUID

import psycopg
import pytest

from offing.clock import new_id
from offing.core.errors import Conflict, InvalidInput, NotFound
from offing.core.run import Budget
from offing.core.scoring import Evidence, Reference
from offing.services import policies, rollouts, tasks
from offing.services.rollouts import BatchRequest
from offing.storage import groups
from offing.storage import rollouts as rows
from offing.storage import tasks as task_rows
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.policy_versions import VersionRow
from offing.storage.pool import Database
from tests.workers.collecting import Collector, a_task

COLLECTED = ("task", "task_reference", "batch", "rollout_group", "rollout", "policy_version", "reward")


async def registered(database: Database, tenant: UUID = LOCAL_TENANT, **more: Any) -> tuple[VersionRow, bool]:
    given = {"name": "planner", "kind": "full", "uri": "/somewhere", "sha256": "a" * 64, "tokenizer_sha256": "t",
             "template_sha256": "c"} | more  # fmt: skip
    return await policies.register(database, tenant, **given)


async def test_a_task_is_stored_once_by_its_content_within_a_dataset(pool: Database) -> None:
    first = await tasks.store(pool, LOCAL_TENANT, "d", [a_task("One?"), a_task("Two?"), a_task("One?", name="again")])
    again = await tasks.store(pool, LOCAL_TENANT, "d", [a_task("Two?"), a_task("Three?")])
    elsewhere = await tasks.store(pool, LOCAL_TENANT, "e", [a_task("One?")])
    assert (len(first.ids), first.new, again.new) == (2, 2, 1)
    assert again.ids[0] == first.ids[1]
    assert elsewhere.ids[0] not in first.ids


async def test_the_same_tasks_stored_at_the_same_time_are_stored_once(pool: Database) -> None:
    specs = [a_task(f"Question {n}?") for n in range(50)]
    stored = await asyncio.gather(*(tasks.store(pool, LOCAL_TENANT, "d", specs) for _ in range(4)))
    assert {tuple(s.ids) for s in stored} == {tuple(stored[0].ids)}
    assert sum(s.new for s in stored) == 50


async def test_a_reference_comes_back_as_it_was_and_none_is_not_an_empty_one(pool: Database) -> None:
    known = a_task(answers=["a", "b"], evidence=[{"quote": "q", "source": "s", "start": 1, "end": 2}])
    stored = await tasks.store(
        pool, LOCAL_TENANT, "d", [known, a_task("Two?", answers=[]), a_task("3rd?", answers=None)]
    )
    async with pool.transaction(LOCAL_TENANT) as connection:
        found = await task_rows.references(connection, stored.ids)
    assert found == {
        stored.ids[0]: Reference(("a", "b"), (Evidence("q", "s", 1, 2),)),
        stored.ids[1]: Reference(()),
    }


async def test_versions_of_a_policy_count_up_and_the_same_files_keep_theirs(pool: Database) -> None:
    made = await asyncio.gather(*(registered(pool, sha256=letter * 64) for letter in "abcabc"))
    assert sorted((row.version, new) for row, new in made if new) == [(1, True), (2, True), (3, True)]
    assert len({(row.sha256, row.version) for row, _ in made}) == 3
    child, _ = await registered(pool, kind="lora", sha256="d" * 64, parent="planner@1")
    assert (child.version, child.parent is not None) == (4, True)
    (other, _) = await registered(pool, name="verifier")
    assert other.version == 1


@pytest.mark.parametrize("change", ["uri = '/elsewhere'", "sha256 = 'x'", "version = 9", "template_sha256 = 'x'"])
async def test_nothing_of_a_policy_version_changes_but_its_state(pool: Database, owner_url: str, change: str) -> None:
    row, _ = await registered(pool)
    with psycopg.connect(owner_url, autocommit=True) as owner, pytest.raises(psycopg.errors.CheckViolation):
        owner.execute(f"update app.policy_version set {change}".encode())
    after = await policies.change_state(pool, LOCAL_TENANT, row.id, "canary")
    assert (after.state, after.uri, after.sha256) == ("canary", row.uri, row.sha256)


async def test_two_versions_made_active_at_once_leave_one_active(pool: Database) -> None:
    made = [(await registered(pool, sha256=letter * 64))[0] for letter in "abcd"]
    await asyncio.gather(*(policies.change_state(pool, LOCAL_TENANT, row.id, "active") for row in made))
    found, _ = await policies.page(pool, LOCAL_TENANT, "planner", None, 10)
    assert sorted(row.state for row in found) == ["active", "retired", "retired", "retired"]


async def test_bad_is_for_good(pool: Database) -> None:
    row, _ = await registered(pool)
    await policies.change_state(pool, LOCAL_TENANT, row.id, "bad")
    for state in ("candidate", "canary", "active", "retired"):
        with pytest.raises(Conflict, match="planner@1 is bad"):
            await policies.change_state(pool, LOCAL_TENANT, row.id, state)


async def test_nothing_that_was_collected_shows_to_another_tenant(pool: Database, other_tenant: UUID) -> None:
    from offing_workers.collection import settle

    await registered(pool)
    collector = Collector(pool)
    made = await collector.collect(size=1)
    (one,) = await collector.members()
    await collector.end(one.run, "x")
    await settle(pool, collector.hints, LOCAL_TENANT, one.run)
    for tenant, seen in ((LOCAL_TENANT, True), (other_tenant, False)):
        async with pool.transaction(tenant) as connection:
            for table in COLLECTED:
                row = await (await connection.execute(f"select count(*) > 0 from {table}".encode())).fetchone()
                assert row == (seen,), table
    with pytest.raises(NotFound):
        await rollouts.one_batch(pool, other_tenant, made.batch.id)
    with pytest.raises(NotFound):
        await rollouts.cancel(pool, collector.hints, other_tenant, made.batch.id)
    with pytest.raises(NotFound):
        await collector.__class__(pool, other_tenant, collector.hints).collect_ids([one.task])


async def test_a_row_of_another_tenant_cannot_be_written(pool: Database, other_tenant: UUID) -> None:
    insert = "insert into batch (id, tenant_id, request) values (%s, %s, '{}')"
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        async with pool.transaction(other_tenant) as connection:
            await connection.execute(insert, (new_id(), LOCAL_TENANT))


async def test_a_rollout_is_due_from_the_moment_its_run_ends(pool: Database) -> None:
    collector = Collector(pool)
    await collector.collect(size=2)
    first, _ = await collector.members()
    assert await rows.sweep(pool, 0, 10) == []
    await collector.end(first.run, "x")
    assert await rows.sweep(pool, 0, 10) == [(first.run, LOCAL_TENANT)]
    assert await rows.sweep(pool, 60, 10) == []


async def test_a_retry_of_a_batch_that_is_cancelled_meanwhile_is_not_made(pool: Database) -> None:
    collector = Collector(pool)
    made = await collector.collect(size=1)
    (one,) = await collector.members()
    await collector.end(one.run, "x")
    async with pool.transaction(LOCAL_TENANT) as cancelling:
        await groups.cancel(cancelling, made.batch.id)

        async def retried() -> bool:
            async with pool.transaction(LOCAL_TENANT) as connection:
                return await rows.retry(connection, one.run, new_id(), new_id())

        retry = asyncio.create_task(retried())
        await asyncio.sleep(0.2)
        assert not retry.done(), "it waits for whoever cancels"
    assert await retry is False
    assert len(await collector.members()) == 1


async def test_nothing_is_added_to_a_cancelled_batch(pool: Database) -> None:
    collector = Collector(pool)
    made = await collector.collect(a_task("One?"), size=1, idempotency_key="k")
    await rollouts.cancel(pool, collector.hints, LOCAL_TENANT, made.batch.id)
    async with pool.transaction(LOCAL_TENANT) as connection:
        await connection.execute("delete from rollout_group")
    again = await collector.collect(a_task("One?"), size=1, idempotency_key="k")
    assert (again.new, again.runs) == (False, 0)


async def test_a_request_for_too_much_is_refused(pool: Database) -> None:
    collector = Collector(pool)
    refused: list[tuple[dict[str, Any], str]] = [
        ({"size": 257}, "group_size"),
        ({"attempts": 0}, "attempts"),
        ({"durability": "no"}, "durability"),
    ]
    for more, field in refused:
        with pytest.raises(InvalidInput, match=field):
            await collector.collect(**more)
    with pytest.raises(InvalidInput, match="tasks"):
        await rollouts.create(pool, collector.hints, LOCAL_TENANT, BatchRequest("counting", [], 1), graphs={})


async def test_a_run_whose_turns_fit_one_slice_is_written_at_its_end(pool: Database) -> None:
    collector = Collector(pool)
    await collector.collect(a_task("One?"), size=1)
    await collector.collect(a_task("One?"), size=1, budget=Budget(65))
    await collector.collect(a_task("One?"), size=1, durability="sync")
    async with pool.transaction(LOCAL_TENANT) as connection:
        found = await (await connection.execute("select durability, kind from run order by created_at")).fetchall()
    assert found == [("exit", "rollout"), ("sync", "rollout"), ("sync", "rollout")]
