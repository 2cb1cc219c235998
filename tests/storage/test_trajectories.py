"""Finished runs read page by page: what is in a page, in which order, and what comes of their tokens."""

from datetime import timedelta
from uuid import UUID

import numpy as np
import pytest

from offing.core.training_rows import TrainingRow, build_rows
from offing.core.trajectory import BoundaryReason
from offing.core.trajectory_records import TrajectoryMetadata
from offing.storage import trajectories, trajectory_reads
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pagination import PageKey
from offing.storage.pool import Database
from offing.storage.trajectories import TrajectoryQuery
from tests.storage.rollouts import LONG_AGO, A, Collected, trace_of


@pytest.fixture
def collected(pool: Database, owner_url: str) -> Collected:
    return Collected(pool, LOCAL_TENANT, owner_url)


async def page(
    pool: Database, expected: TrajectoryQuery | None = None, after: PageKey | None = None, limit: int = 50
) -> list[TrajectoryMetadata]:
    async with pool.transaction(LOCAL_TENANT) as connection:
        return await trajectories.list_trajectories(connection, expected or TrajectoryQuery(), after, limit)


async def rows_of(pool: Database, run_id: UUID, *, quarantined: bool = False) -> list[TrainingRow]:
    async with pool.transaction(LOCAL_TENANT) as connection:
        episode = await trajectories.get_trajectory_metadata(connection, run_id)
        ((batch,), _) = await trajectories.split_segments(connection, [run_id])
        packed = await trajectory_reads.read_packed_segments(connection, batch)
    return [row for _, segment in packed for row in build_rows(episode, segment, include_quarantined=quarantined)]


async def test_pages_follow_one_another_in_the_order_in_which_rollouts_became_final(
    pool: Database, collected: Collected
) -> None:
    late, early = await collected.rollout(minutes=9), await collected.rollout(minutes=1)
    together = sorted([await collected.rollout(minutes=5), await collected.rollout(minutes=5)])
    first = await page(pool, limit=2)
    assert first[-1].finalized_at is not None
    second = await page(pool, after=(first[-1].finalized_at, first[-1].run_id), limit=2)
    assert [e.run_id for e in [*first, *second]] == [early, *together, late]


async def test_each_filter_lets_through_what_it_names(pool: Database, collected: Collected) -> None:
    group = collected.group(tags=["hard", "new"])
    expected = await collected.rollout(group_id=group, reward=0.5, outcome="truncated", minutes=5, graph="memact")
    await collected.rollout(reward=1.0, minutes=1)
    await collected.rollout(reward=0.0, minutes=9)
    for query in (
        TrajectoryQuery(graph="memact"),
        TrajectoryQuery(outcomes=("truncated",)),
        TrajectoryQuery(min_reward=0.2, max_reward=0.7),
        TrajectoryQuery(since=LONG_AGO + timedelta(minutes=2), until=LONG_AGO + timedelta(minutes=9)),
        TrajectoryQuery(tags=("hard",)),
        TrajectoryQuery(group_id=group),
    ):
        assert [e.run_id for e in await page(pool, query)] == [expected], query
    assert len(await page(pool, TrajectoryQuery(policy="planner@1"))) == 3
    assert await page(pool, TrajectoryQuery(policy="planner@2")) == []
    assert await page(pool, TrajectoryQuery(dataset="elsewhere")) == []


async def test_what_failed_for_want_of_infrastructure_is_there_only_when_named(
    pool: Database, collected: Collected
) -> None:
    await collected.rollout(outcome="infra_error", reward=None)
    assert await page(pool) == []
    assert len(await page(pool, TrajectoryQuery(outcomes=("infra_error",)))) == 1


async def test_what_is_not_final_is_not_there(pool: Database, collected: Collected) -> None:
    await collected.rollout(settled=False)
    assert await page(pool) == []


async def test_another_tenant_sees_nothing(pool: Database, collected: Collected, other_tenant: UUID) -> None:
    run = await collected.rollout()
    async with pool.transaction(other_tenant) as connection:
        assert await trajectories.list_trajectories(connection, TrajectoryQuery(), None, 10) == []
        assert await trajectories.split_segments(connection, [run]) == ([], 0)
        assert await trajectory_reads.read_packed_segments(connection, [(run, 0)]) == []


async def test_scores_are_the_latest_of_each_scorer_and_a_failure_is_no_zero(
    pool: Database, collected: Collected
) -> None:
    run = await collected.rollout(reward=None)
    collected.score(run, "exact_match", 0.0, version=1)
    collected.score(run, "exact_match", 1.0, version=2)
    collected.score(run, "judge", None, failure="the judge did not answer")
    (episode,) = await page(pool)
    assert [(s.scorer, s.value, s.failure) for s in episode.scores] == [
        ("exact_match", 1.0, ""),
        ("judge", None, "the judge did not answer"),
    ]
    assert episode.reward is None


async def test_reference_answers_come_only_when_asked_for(pool: Database, collected: Collected) -> None:
    await collected.rollout(group_id=collected.group(answers=["e2", "E2"]))
    assert (await page(pool))[0].reference is None
    async with pool.transaction(LOCAL_TENANT) as connection:
        (episode,) = await trajectories.list_trajectories(
            connection, TrajectoryQuery(), None, 10, include_references=True
        )
    assert episode.reference is not None
    assert episode.reference.answers == ("e2", "E2")


async def test_a_segment_becomes_the_very_tokens_that_were_sampled(pool: Database, collected: Collected) -> None:
    run = await collected.rollout(A("first", adds=(7, 8)), A("second", adds=(9,)))
    (row,) = await rows_of(pool, run)
    one, two = trace_of("first", (7, 8)), trace_of("second", ())
    assert row.token_ids.tolist() == [7, 8, *one.completion_ids, 9, *two.completion_ids]
    assert row.loss_mask.tolist() == [False] * 2 + [True] * 6 + [False] + [True] * 7
    assert row.behavior_logprobs[row.loss_mask].tolist() == [*one.logprobs, *two.logprobs]
    assert not row.behavior_logprobs[~row.loss_mask].any()
    assert row.entropy[row.loss_mask].tolist() == [*(one.entropy or ()), *(two.entropy or ())]
    assert row.turn_index.tolist() == [0] * 8 + [1] * 8
    assert row.turns.turn == (1, 2)
    assert row.turns.policy == ("planner@1", "planner@1")
    assert row.span_kind.tolist() == [-1, -1, 3, 3, 3, -1, -1, -1, -1, 3, 3, 3, -1, -1, -1, -1]


async def test_a_broken_context_makes_a_row_of_its_own(pool: Database, collected: Collected) -> None:
    run = await collected.rollout(A("one"), A("two", boundary_reason=BoundaryReason.MEMORY_EDIT), A("three"))
    rows = await rows_of(pool, run)
    assert [(r.segment_info.boundary_reason, r.turns.turn) for r in rows] == [("root", (1,)), ("memory_edit", (2, 3))]
    assert rows[1].segment_info.parent_idx == 0


async def test_a_quarantined_turn_is_context_unless_it_is_asked_for(pool: Database, collected: Collected) -> None:
    run = await collected.rollout(A("one"), A("two"))
    collected.quarantine(run, 0)
    (row,) = await rows_of(pool, run)
    assert set(row.turn_index[row.loss_mask].tolist()) == {1}
    (whole,) = await rows_of(pool, run, quarantined=True)
    assert set(whole.turn_index[whole.loss_mask].tolist()) == {0, 1}
    assert np.array_equal(row.token_ids, whole.token_ids)
    assert whole.turns.quarantine == ("other log-probabilities", "")


async def test_no_failed_attempt_is_among_the_tokens_or_texts(pool: Database, collected: Collected) -> None:
    run = await collected.rollout(A("fine"))
    async with pool.transaction(LOCAL_TENANT) as connection:
        (role_call,) = await trajectory_reads.list_role_calls(connection, run)
    assert role_call.failed_attempts[0]["text"] == "a failed attempt"
    assert "failed" not in role_call.completion + "".join(m.text for m in role_call.messages)


async def test_segments_are_read_in_batches(pool: Database, collected: Collected) -> None:
    run = await collected.rollout(*(A("word", boundary_reason=BoundaryReason.WORKSPACE_RESET) for _ in range(5)))
    async with pool.transaction(LOCAL_TENANT) as connection:
        batches, _ = await trajectories.split_segments(connection, [run], max_bytes=200)
    assert len(batches) > 1
    assert [idx for batch in batches for _, idx in batch] == [0, 1, 2, 3, 4]


async def test_turns_without_ids_have_text_and_no_tokens(pool: Database, collected: Collected) -> None:
    run = await collected.rollout(A("plain text", ids=False))
    async with pool.transaction(LOCAL_TENANT) as connection:
        assert await trajectories.split_segments(connection, [run]) == ([], 1)
        (role_call,) = await trajectory_reads.list_role_calls(connection, run)
    assert (role_call.trainable, role_call.tokens, role_call.completion) == ("sft", None, "plain text")


async def test_a_later_turn_repeats_what_was_said_with_the_turn_that_said_it(
    pool: Database, collected: Collected
) -> None:
    run = await collected.rollout(A("one"), A("two"))
    async with pool.transaction(LOCAL_TENANT) as connection:
        one, two = await trajectory_reads.list_role_calls(connection, run)
    assert [(m.role, m.text, m.turn) for m in two.messages][1] == ("assistant", "one", one.seq)


async def test_two_answers_to_the_same_prompt_are_a_preference_when_one_led_to_more(
    pool: Database, collected: Collected
) -> None:
    group = collected.group()
    good = await collected.rollout(A("good"), group_id=group, member=0, reward=1.0)
    bad = await collected.rollout(A("bad"), group_id=group, member=1, reward=0.0)
    alone = await collected.rollout(A("alone"), reward=1.0)
    async with pool.transaction(LOCAL_TENANT) as connection:
        (result,) = await trajectory_reads.list_preferences(connection, group)
        assert (result.chosen_run_id, result.rejected_run_id) == (good, bad)
        assert (result.chosen, result.rejected, result.chosen_reward) == ("good", "bad", 1.0)
        assert [m.text for m in result.messages] == ["observation 0"]
        other = (await trajectories.get_trajectory_metadata(connection, alone)).group_id
        assert other is not None
        assert await trajectory_reads.list_preferences(connection, other) == []


@pytest.mark.parametrize("accepted", [True, False])
async def test_what_no_role_could_use_is_never_preferred_and_never_imitated(
    pool: Database, collected: Collected, accepted: bool
) -> None:
    group = collected.group()
    await collected.rollout(A("good"), group_id=group, member=0, reward=1.0)
    bad = await collected.rollout(A("bad"), group_id=group, member=1, reward=0.0)
    mark = "update role_call set is_accepted = %s, problem = %s where run_id = %s"
    async with pool.transaction(LOCAL_TENANT) as connection:
        await connection.execute(mark, (accepted, "" if accepted else "not a word", bad))
        assert len(await trajectory_reads.list_preferences(connection, group)) == accepted
        (role_call,) = await trajectory_reads.list_role_calls(connection, bad)
    assert (role_call.is_trainable_text(), role_call.problem) == (accepted, "" if accepted else "not a word")
