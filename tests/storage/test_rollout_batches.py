"""Rows of collecting: tasks once by content, policy versions that never change, nothing across tenants."""

import asyncio
from typing import Any
from uuid import UUID

import psycopg
import pytest

from offing.clock import new_id
from offing.core.errors import Conflict, InvalidInput, NotFound
from offing.core.run import Budget
from offing.core.scoring import Reference, ReferenceEvidence
from offing.models.policy_folder import PolicyHashes
from offing.services import policies, rollouts, tasks
from offing.services.policies import PolicyRegistration
from offing.services.rollouts import BatchRequest
from offing.storage import rollout_batches
from offing.storage import rollouts as rows
from offing.storage import tasks as task_rows
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.policy_versions import PolicyVersionRow
from offing.storage.pool import Database
from tests.workers.rollout_batches import Collector, a_task

COLLECTED = ("task", "task_reference", "rollout_batch", "rollout_group", "rollout", "policy_version", "reward")


async def registered(database: Database, tenant_id: UUID = LOCAL_TENANT, **more: Any) -> tuple[PolicyVersionRow, bool]:
    hashes = PolicyHashes(more.pop("sha256", "a" * 64), "t", "c")
    inputs: dict[str, Any] = {"name": "planner", "kind": "full", "uri": "/somewhere", "hashes": hashes} | more
    return await policies.register_version(database, tenant_id, PolicyRegistration(**inputs))


async def test_a_task_is_stored_once_by_its_content_within_a_dataset(pool: Database) -> None:
    first = await tasks.store_tasks(
        pool, LOCAL_TENANT, "d", [a_task("One?"), a_task("Two?"), a_task("One?", name="again")]
    )
    again = await tasks.store_tasks(pool, LOCAL_TENANT, "d", [a_task("Two?"), a_task("Three?")])
    elsewhere = await tasks.store_tasks(pool, LOCAL_TENANT, "e", [a_task("One?")])
    assert (len(first.task_ids), first.new_count, again.new_count) == (2, 2, 1)
    assert again.task_ids[0] == first.task_ids[1]
    assert elsewhere.task_ids[0] not in first.task_ids


async def test_the_same_tasks_stored_at_the_same_time_are_stored_once(pool: Database) -> None:
    specs = [a_task(f"Question {n}?") for n in range(50)]
    stored = await asyncio.gather(*(tasks.store_tasks(pool, LOCAL_TENANT, "d", specs) for _ in range(4)))
    assert {tuple(s.task_ids) for s in stored} == {tuple(stored[0].task_ids)}
    assert sum(s.new_count for s in stored) == 50


async def test_a_reference_comes_back_as_it_was_and_none_is_not_an_empty_one(pool: Database) -> None:
    known = a_task(answers=["a", "b"], evidence=[{"quote": "q", "source": "s", "start": 1, "end": 2}])
    stored = await tasks.store_tasks(
        pool, LOCAL_TENANT, "d", [known, a_task("Two?", answers=[]), a_task("3rd?", answers=None)]
    )
    async with pool.transaction(LOCAL_TENANT) as connection:
        references = await task_rows.get_references(connection, stored.task_ids)
    assert references == {
        stored.task_ids[0]: Reference(("a", "b"), (ReferenceEvidence("q", "s", 1, 2),)),
        stored.task_ids[1]: Reference(()),
    }


async def test_versions_of_a_policy_count_up_and_the_same_files_keep_theirs(pool: Database) -> None:
    created = await asyncio.gather(*(registered(pool, sha256=letter * 64) for letter in "abcabc"))
    assert sorted((row.version, new) for row, new in created if new) == [(1, True), (2, True), (3, True)]
    assert len({(row.sha256, row.version) for row, _ in created}) == 3
    child, _ = await registered(pool, kind="lora", sha256="d" * 64, parent_version="planner@1")
    assert (child.version, child.parent_id is not None) == (4, True)
    (other, _) = await registered(pool, name="verifier")
    assert other.version == 1


@pytest.mark.parametrize("change", ["uri = '/elsewhere'", "sha256 = 'x'", "version = 9", "template_sha256 = 'x'"])
async def test_nothing_of_a_policy_version_changes_but_its_state(pool: Database, owner_url: str, change: str) -> None:
    row, _ = await registered(pool)
    with psycopg.connect(owner_url, autocommit=True) as owner, pytest.raises(psycopg.errors.CheckViolation):
        owner.execute(f"update app.policy_version set {change}".encode())
    after = await policies.set_version_state(pool, LOCAL_TENANT, row.id, "canary")
    assert (after.state, after.uri, after.sha256) == ("canary", row.uri, row.sha256)


async def test_two_versions_made_active_at_once_leave_one_active(pool: Database) -> None:
    created = [(await registered(pool, sha256=letter * 64))[0] for letter in "abcd"]
    await asyncio.gather(*(policies.set_version_state(pool, LOCAL_TENANT, row.id, "active") for row in created))
    result, _ = await policies.list_versions(pool, LOCAL_TENANT, "planner", None, 10)
    assert sorted(row.state for row in result) == ["active", "retired", "retired", "retired"]


async def test_bad_is_for_good(pool: Database) -> None:
    row, _ = await registered(pool)
    await policies.set_version_state(pool, LOCAL_TENANT, row.id, "blocked")
    for state in ("candidate", "canary", "active", "retired"):
        with pytest.raises(Conflict, match="planner@1 is blocked"):
            await policies.set_version_state(pool, LOCAL_TENANT, row.id, state)


async def test_nothing_that_was_collected_shows_to_another_tenant(pool: Database, other_tenant: UUID) -> None:
    from offing_workers.rollout_finalizer import finalize_ended_rollout

    await registered(pool)
    collector = Collector(pool)
    created = await collector.collect(size=1)
    (one,) = await collector.members()
    await collector.end(one.run_id, "x")
    await finalize_ended_rollout(pool, collector.notifier, LOCAL_TENANT, one.run_id)
    for tenant, seen in ((LOCAL_TENANT, True), (other_tenant, False)):
        async with pool.transaction(tenant) as connection:
            for table in COLLECTED:
                row = await (await connection.execute(f"select count(*) > 0 from {table}".encode())).fetchone()
                assert row == (seen,), table
    with pytest.raises(NotFound):
        await rollouts.get_batch(pool, other_tenant, created.batch.id)
    with pytest.raises(NotFound):
        await rollouts.cancel_batch(pool, collector.notifier, other_tenant, created.batch.id)
    with pytest.raises(NotFound):
        await collector.__class__(pool, other_tenant, collector.notifier).collect_ids([one.task_id])


async def test_a_row_of_another_tenant_cannot_be_written(pool: Database, other_tenant: UUID) -> None:
    insert = "insert into rollout_batch (id, tenant_id, request) values (%s, %s, '{}')"
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        async with pool.transaction(other_tenant) as connection:
            await connection.execute(insert, (new_id(), LOCAL_TENANT))


async def test_a_rollout_is_due_from_the_moment_its_run_ends(pool: Database) -> None:
    collector = Collector(pool)
    await collector.collect(size=2)
    first, _ = await collector.members()
    assert await rows.list_overdue_rollouts(pool, 0, 10) == []
    await collector.end(first.run_id, "x")
    assert await rows.list_overdue_rollouts(pool, 0, 10) == [(first.run_id, LOCAL_TENANT)]
    assert await rows.list_overdue_rollouts(pool, 60, 10) == []


async def test_a_retry_of_a_batch_that_is_cancelled_meanwhile_is_not_made(pool: Database) -> None:
    collector = Collector(pool)
    created = await collector.collect(size=1)
    (one,) = await collector.members()
    await collector.end(one.run_id, "x")
    async with pool.transaction(LOCAL_TENANT) as cancelling:
        await rollout_batches.cancel_batch(cancelling, created.batch.id)

        async def retried() -> bool:
            async with pool.transaction(LOCAL_TENANT) as connection:
                return await rows.retry_rollout(connection, one.run_id, new_id(), new_id())

        retry = asyncio.create_task(retried())
        await asyncio.sleep(0.2)
        assert not retry.done(), "it waits for the process that cancels"
    assert await retry is False
    assert len(await collector.members()) == 1


async def test_nothing_is_added_to_a_cancelled_batch(pool: Database) -> None:
    collector = Collector(pool)
    created = await collector.collect(a_task("One?"), size=1, idempotency_key="k")
    await rollouts.cancel_batch(pool, collector.notifier, LOCAL_TENANT, created.batch.id)
    async with pool.transaction(LOCAL_TENANT) as connection:
        await connection.execute("delete from rollout_group")
    again = await collector.collect(a_task("One?"), size=1, idempotency_key="k")
    assert (again.is_new, again.new_run_count) == (False, 0)


async def test_a_request_for_too_much_is_rejected(pool: Database) -> None:
    collector = Collector(pool)
    rejected: list[tuple[dict[str, Any], str]] = [
        ({"size": 257}, "group_size"),
        ({"attempts": 0}, "attempts"),
        ({"durability": "no"}, "durability"),
    ]
    for more, field in rejected:
        with pytest.raises(InvalidInput, match=field):
            await collector.collect(**more)
    with pytest.raises(InvalidInput, match="tasks"):
        await rollouts.create_batch(pool, collector.notifier, LOCAL_TENANT, BatchRequest("counting", [], 1), graphs={})


async def test_a_run_whose_turns_fit_one_slice_is_written_at_its_end(pool: Database) -> None:
    collector = Collector(pool)
    await collector.collect(a_task("One?"), size=1)
    await collector.collect(a_task("One?"), size=1, budget=Budget(65))
    await collector.collect(a_task("One?"), size=1, durability="sync")
    async with pool.transaction(LOCAL_TENANT) as connection:
        results = await (await connection.execute("select durability, kind from run order by created_at")).fetchall()
    assert results == [("exit", "rollout"), ("sync", "rollout"), ("sync", "rollout")]
