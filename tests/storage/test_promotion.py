"""Which version new runs get: by number, by what is active, by a canary's share; and the way back."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import psycopg
import pytest

from offing.clock import new_id
from offing.core.errors import Conflict, InvalidInput
from offing.core.model import EngineConfig
from offing.models.policy_folder import PolicyHashes
from offing.services import canaries, canary_comparison, policies, promotion
from offing.services.policies import PolicyRegistration
from offing.services.promotion_gate import GateRules, Guard
from offing.storage import policy_versions, training_events
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.policy_versions import PolicyVersionRow
from offing.storage.pool import Database
from offing.storage.training_events import TrainingEvent
from tests.storage.rollouts import Collected


async def a_version(pool: Database, nth: int) -> PolicyVersionRow:
    row, _ = await policies.register_version(
        pool,
        LOCAL_TENANT,
        PolicyRegistration(name="planner", kind="full", uri=f"/p/{nth}", hashes=PolicyHashes(f"s{nth}", "t", "p")),
    )
    return row


async def resolved(pool: Database, model: str, key: UUID | None = None) -> str:
    engines = {"planner": EngineConfig(engine="policy", model=model)}
    async with pool.transaction(LOCAL_TENANT) as connection:
        return (await policies.resolve_versions(connection, engines, key or new_id()))["planner"].model


async def state_of(pool: Database, policy: str) -> str:
    return (await policies.get_version_by_name(pool, LOCAL_TENANT, policy)).state


def evaluated(
    owner_url: str, version: PolicyVersionRow, group_of: dict[UUID, float], outcome: str = "answered"
) -> None:
    """As an evaluation of these tasks would have been stored. `group_of`: reward by task."""
    evaluation = new_id()
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute(
            "insert into app.evaluation (id, tenant_id, policy_version_id, dataset, mode, graph, seed) "
            "values (%s, %s, %s, 'held-out', 'greedy', 'counting', 7)",
            (evaluation, LOCAL_TENANT, version.id),
        )
        for task, reward in group_of.items():
            owner.execute(
                "insert into app.evaluation_result (evaluation_id, task_id, member, tenant_id, reward, outcome, turns, "
                "tokens) values (%s, %s, 0, %s, %s, %s, 1, 9)",
                (evaluation, task, LOCAL_TENANT, reward, outcome),
            )


def tasks(owner_url: str, count: int) -> list[UUID]:
    created = [new_id() for _ in range(count)]
    with psycopg.connect(owner_url, autocommit=True) as owner:
        for task in created:
            owner.execute(
                "insert into app.task (id, tenant_id, dataset, question, content_sha256) "
                "values (%s, %s, 'held-out', 'Who?', %s)",
                (task, LOCAL_TENANT, task.hex),
            )
    return created


async def events_of(pool: Database, version: PolicyVersionRow) -> list[TrainingEvent]:
    async with pool.transaction(LOCAL_TENANT) as connection:
        return await training_events.list_events(connection, policy_version_id=version.id)


async def kinds(pool: Database, version: PolicyVersionRow) -> list[str]:
    return [event.kind for event in await events_of(pool, version)]


async def test_a_policy_named_without_a_number_is_the_active_one_when_the_run_is_made(pool: Database) -> None:
    await a_version(pool, 1)
    with pytest.raises(InvalidInput, match="no active version"):
        await resolved(pool, "planner@active")
    await promotion.promote(pool, LOCAL_TENANT, "planner@1")
    assert [await resolved(pool, m) for m in ("planner@active", "planner", "planner@7")] == [
        "planner@1", "planner@1", "planner@7"
    ]  # fmt: skip
    await a_version(pool, 2)
    await promotion.promote(pool, LOCAL_TENANT, "planner@2")
    assert await resolved(pool, "planner@active") == "planner@2"
    assert await state_of(pool, "planner@1") == "retired"


async def test_one_command_goes_back_to_the_version_before_and_says_so_on_record(pool: Database) -> None:
    first, second = await a_version(pool, 1), await a_version(pool, 2)
    for version in (1, 2):
        await promotion.promote(pool, LOCAL_TENANT, f"planner@{version}")
    assert "planner@1 is active again" in await promotion.roll_back_policy(pool, LOCAL_TENANT, "planner")
    assert await resolved(pool, "planner") == "planner@1"
    assert await kinds(pool, second) == ["promoted", "rolled_back"]
    assert await kinds(pool, first) == ["promoted"]
    with pytest.raises(Conflict, match="no previous active version"):
        await promotion.roll_back_policy(pool, LOCAL_TENANT, "planner")


async def test_promoting_the_active_version_again_leaves_the_way_back_as_it_was(pool: Database) -> None:
    for nth in (1, 2):
        await promotion.promote(pool, LOCAL_TENANT, (await a_version(pool, nth)).label)
    created, _ = await promotion.promote(pool, LOCAL_TENANT, "planner@2")
    assert (created.state, await kinds(pool, created)) == ("active", ["promoted"])
    assert "planner@1 is active again" in await promotion.roll_back_policy(pool, LOCAL_TENANT, "planner")


async def test_a_canary_gets_its_share_of_runs_that_name_no_version_always_the_same_ones(pool: Database) -> None:
    for nth in (1, 2):
        await a_version(pool, nth)
    await promotion.promote(pool, LOCAL_TENANT, "planner@1")
    await promotion.start_canary(pool, LOCAL_TENANT, "planner@2", 0.25)
    keys = [new_id() for _ in range(200)]
    first = [await resolved(pool, "planner", key) for key in keys]
    assert first == [await resolved(pool, "planner", key) for key in keys]
    assert 0.1 < first.count("planner@2") / len(keys) < 0.4
    assert {await resolved(pool, "planner@active", key) for key in keys[:20]} == {"planner@1"}
    assert "no longer a canary" in await promotion.roll_back_policy(pool, LOCAL_TENANT, "planner")
    assert {await resolved(pool, "planner", key) for key in keys} == {"planner@1"}


async def test_a_damaged_candidate_is_rejected_with_the_reason_and_a_better_one_becomes_active(
    pool: Database, owner_url: str
) -> None:
    active, damaged, better = [await a_version(pool, nth) for nth in (1, 2, 3)]
    await promotion.promote(pool, LOCAL_TENANT, "planner@1")
    frozen = tasks(owner_url, 12)
    evaluated(owner_url, active, {task: float(n % 2) for n, task in enumerate(frozen)})
    evaluated(owner_url, damaged, dict.fromkeys(frozen, 0.0), outcome="violated")
    evaluated(owner_url, better, dict.fromkeys(frozen, 1.0))
    with pytest.raises(Conflict, match=r"the difference to the active version is -0\.500.*violated a rule"):
        await promotion.promote(pool, LOCAL_TENANT, "planner@2", GateRules())
    assert await state_of(pool, "planner@1") == "active"
    created, verdict = await promotion.promote(pool, LOCAL_TENANT, "planner@3", GateRules())
    assert verdict is not None
    assert (created.state, verdict.comparison.pairs, verdict.comparison.difference) == ("active", 12, 0.5)
    assert verdict.comparison.low > 0
    (gate,) = await events_of(pool, damaged)
    assert (gate.kind, gate.detail["passed"], gate.detail["active_version"]) == ("gate", False, "planner@1")
    assert gate.detail["comparison"]["difference"] == -0.5
    assert len(gate.detail["reasons"]) == 2
    assert await kinds(pool, better) == ["gate", "promoted"]


async def test_each_comparison_with_the_active_version_is_a_look_and_the_same_results_are_the_same_look(
    pool: Database, owner_url: str
) -> None:
    active, second, third = [await a_version(pool, nth) for nth in (1, 2, 3)]
    await promotion.promote(pool, LOCAL_TENANT, "planner@1")
    frozen = tasks(owner_url, 12)
    evaluated(owner_url, active, dict.fromkeys(frozen, 0.0))
    evaluated(owner_url, second, {task: float(n < 3) for n, task in enumerate(frozen)})
    evaluated(owner_url, third, {task: float(n < 6) for n, task in enumerate(frozen)})

    async def look(policy: str) -> tuple[int, float]:
        verdict = await promotion.run_gate(pool, LOCAL_TENANT, policy, GateRules())
        assert verdict is not None
        return verdict.looks, verdict.comparison.low

    first = await look("planner@3")
    assert first[0] == 1
    assert await look("planner@3") == first
    assert (await look("planner@2"))[0] == 2
    assert await look("planner@3") == first
    evaluated(owner_url, third, {task: float(n < 6) for n, task in enumerate(frozen)})
    again = await look("planner@3")
    assert again[0] == 3
    assert again[1] < 0 < first[1]
    await promotion.promote(pool, LOCAL_TENANT, "planner@2")
    evaluated(owner_url, second, dict.fromkeys(frozen, 0.0))
    assert (await look("planner@3"))[0] == 1, "another active version is another comparison"


async def test_a_guard_names_a_metric_that_the_rollouts_have(pool: Database, owner_url: str) -> None:
    active, candidate = [await a_version(pool, nth) for nth in (1, 2)]
    await promotion.promote(pool, LOCAL_TENANT, "planner@1")
    frozen = tasks(owner_url, 12)
    evaluated(owner_url, active, dict.fromkeys(frozen, 0.0))
    evaluated(owner_url, candidate, dict.fromkeys(frozen, 1.0))
    with pytest.raises(InvalidInput, match="no metric 'cost_usd'"):
        await promotion.run_gate(pool, LOCAL_TENANT, "planner@2", GateRules(guards=(Guard("cost_usd"),)))
    verdict = await promotion.run_gate(pool, LOCAL_TENANT, "planner@2", GateRules(guards=(Guard("tokens"),)))
    assert verdict is not None
    assert (verdict.passed, verdict.guards["tokens"].candidate) == (True, 9.0)


async def test_a_candidate_that_was_not_evaluated_cannot_pass_a_gate(pool: Database) -> None:
    for nth in (1, 2):
        await a_version(pool, nth)
    await promotion.promote(pool, LOCAL_TENANT, "planner@1", GateRules())
    with pytest.raises(InvalidInput, match="policy evaluate"):
        await promotion.promote(pool, LOCAL_TENANT, "planner@2", GateRules())


async def complete_tasks(collected: Collected, version: PolicyVersionRow, rewards: Sequence[float]) -> None:
    """Completes one task after another, answered by a version."""
    for reward in rewards:
        group = collected.group(size=1)
        await collected.rollout(group_id=group, reward=reward)
        with psycopg.connect(collected.owner_url, autocommit=True) as owner:
            owner.execute(
                "update app.rollout_group set completed_at = clock_timestamp(), "
                "policy_version_ids = jsonb_build_object('planner', %s::text) where id = %s",
                (str(version.id), group),
            )


async def a_canary(pool: Database) -> tuple[PolicyVersionRow, PolicyVersionRow]:
    """The active planner@1 and the canary planner@2."""
    active, canary = [await a_version(pool, nth) for nth in (1, 2)]
    await promotion.promote(pool, LOCAL_TENANT, "planner@1")
    await promotion.start_canary(pool, LOCAL_TENANT, "planner@2", 0.5)
    return active, canary


async def looks_at(pool: Database, version: PolicyVersionRow) -> list[dict[str, Any]]:
    return [event.detail for event in await events_of(pool, version) if event.kind == "canary_compared"]


async def test_a_canary_that_does_worse_is_withdrawn_automatically(
    pool: Database, owner_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canary_comparison, "FIRST_LOOK_TASKS", 6)
    active, canary = await a_canary(pool)
    collected = Collected(pool, LOCAL_TENANT, owner_url)
    assert await canaries.check_canary(pool, LOCAL_TENANT, "planner") == []
    await complete_tasks(collected, active, [1.0] * 6)
    await complete_tasks(collected, canary, [0.0] * 5)
    assert await canaries.check_canary(pool, LOCAL_TENANT, "planner") == []
    await complete_tasks(collected, canary, [0.0])
    assert await policy_versions.list_canaries(pool) == [(LOCAL_TENANT, "planner")]
    (decision,) = await canaries.check_canary(pool, LOCAL_TENANT, "planner")
    assert decision.startswith("planner@2 was withdrawn")
    assert await state_of(pool, "planner@2") == "candidate"
    assert await kinds(pool, canary) == ["canary", "canary_compared", "canary_withdrawn"]
    (look,) = await looks_at(pool, canary)
    assert (look["verdict"], look["tasks"], look["difference"], look["active_version"]) == (
        "worse",
        6,
        -1.0,
        "planner@1",
    )
    assert await policy_versions.list_canaries(pool) == []


async def test_a_look_at_a_canary_is_taken_once_and_those_at_the_next_canary_are_stricter(
    pool: Database, owner_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canary_comparison, "FIRST_LOOK_TASKS", 4)
    active, canary = await a_canary(pool)
    collected = Collected(pool, LOCAL_TENANT, owner_url)
    await complete_tasks(collected, active, [1.0, 0.0] * 3)
    await complete_tasks(collected, canary, [1.0, 0.0] * 3)
    for _ in range(3):
        assert await canaries.check_canary(pool, LOCAL_TENANT, "planner") == []
    first = await looks_at(pool, canary)
    assert [(one["look"], one["tasks"], one["verdict"]) for one in first] == [(1, 4, "undecided"), (2, 6, "undecided")]
    assert all(one["detectable_difference"] > 0.5 for one in first)
    await promotion.start_canary(pool, LOCAL_TENANT, (await a_version(pool, 3)).label, 0.5)
    next_canary = await policies.get_version_by_name(pool, LOCAL_TENANT, "planner@3")
    for version in (active, next_canary):
        await complete_tasks(collected, version, [1.0, 0.0] * 2)
    await canaries.check_canary(pool, LOCAL_TENANT, "planner")
    (third,) = await looks_at(pool, next_canary)
    assert (third["look"], third["tasks"]) == (3, 4), "results from before the canary do not count"
    assert third["level"] > first[1]["level"]


async def test_the_first_completed_tasks_are_compared_and_the_rollouts_of_a_task_are_one_value(
    pool: Database, owner_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canary_comparison, "FIRST_LOOK_TASKS", 3)
    active, canary = await a_canary(pool)
    collected = Collected(pool, LOCAL_TENANT, owner_url)
    await complete_tasks(collected, active, [1.0, 0.5, 0.0, 0.0])
    await complete_tasks(collected, canary, [0.25, 0.25, 1.0, 1.0])
    with psycopg.connect(owner_url, autocommit=True) as owner:
        (group,) = owner.execute(
            "select id from app.rollout_group where policy_version_ids ->> 'planner' = %s order by completed_at "
            "limit 1",
            (str(canary.id),),
        ).fetchone() or (None,)
        owner.execute("update app.rollout_group set size = 2 where id = %s", (group,))
    await collected.rollout(group_id=group, member=1, reward=0.75)
    await collected.rollout(group_id=collected.group(size=1, tags=["evaluation"]), reward=0.0)
    await canaries.check_canary(pool, LOCAL_TENANT, "planner")
    (look,) = await looks_at(pool, canary)
    assert (look["active"], look["canary"]) == (0.5, pytest.approx((0.5 + 0.25 + 1.0) / 3))


async def test_a_canary_is_promoted_by_what_it_has_shown_and_not_before(
    pool: Database, owner_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canary_comparison, "FIRST_LOOK_TASKS", 6)
    active, canary = await a_canary(pool)

    async def promote_canary(policy: str = "planner@2") -> PolicyVersionRow:
        row, _ = await promotion.promote(pool, LOCAL_TENANT, policy, GateRules(), by_canary=True)
        return row

    with pytest.raises(Conflict, match="fewer than 6 tasks"):
        await promote_canary()
    await a_version(pool, 3)
    with pytest.raises(Conflict, match=r"planner@3 is not compared .* as a canary"):
        await promote_canary("planner@3")
    collected = Collected(pool, LOCAL_TENANT, owner_url)
    await complete_tasks(collected, active, [0.0] * 6)
    await complete_tasks(collected, canary, [1.0] * 6)
    (decision,) = await canaries.check_canary(pool, LOCAL_TENANT, "planner")
    assert decision.startswith("planner@2 is better")
    assert await state_of(pool, "planner@2") == "canary", "a person promotes it"
    assert (await promote_canary()).state == "active"
    assert (await events_of(pool, canary))[-1].detail["gate"] == "passed as a canary"
