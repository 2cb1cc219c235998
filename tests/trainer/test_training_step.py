"""A whole step: what becomes of groups, and that nothing depends on how the work is cut up."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from offing.core.errors import InvalidInput
from offing.core.training_rows import build_rows
from offing.core.trajectory_records import SegmentInfo
from offing_trainer.batch import Floats, Indices, MixedPoliciesError, RolloutGroup, TrainingRollout
from offing_trainer.config import LearnerConfig, PipelineConfig
from offing_trainer.learner.contract import ForwardResult
from offing_trainer.pipeline import Pipeline, build_pipeline
from offing_trainer.plugin import (
    Advantage,
    AdvantageInput,
    GroupSelectorInput,
    Plugin,
    PluginKind,
    PluginOptions,
    PluginState,
    StepStatisticsInput,
    empty_state,
)
from offing_trainer.plugin_registry import PLUGINS, build_registry
from offing_trainer.step_metrics import group_metrics
from offing_trainer.training_step import (
    MetricAccumulator,
    PreparedStep,
    apply_view,
    build_loss,
    compute_advantages,
    compute_token_weights,
)
from tests.trainer.builders import (
    a_group,
    a_pipeline,
    a_recipe,
    a_row,
    a_sample,
    a_step,
    derived,
    drifted,
    random_groups,
    rewarded,
    seen_by,
    slope,
)
from tests.unit.exports.builders import packed, trajectory_metadata

RECIPES = ["flow-grpo", "grpo", "gspo", "eapo", "dcpo", "supo", "reinforce", "sft"]


def run(n: int) -> str:
    return str(UUID(int=n))


def gradient(
    pipeline: Pipeline, ready: PreparedStep, step: int, cut: Callable[[int], list[Indices]]
) -> tuple[float, Floats]:
    """The loss and its derivative by each forwarded token, part by part, with the same policy whatever the cut."""
    rows = np.flatnonzero(np.isin(ready.optimizer_steps[step], ready.active_rows))
    batch = ready.batch.select_rows(ready.optimizer_steps[step][rows])
    logp, loss = drifted(batch, 5, 0.3), build_loss(pipeline, ready, step)
    value, result = 0.0, np.full(batch.num_tokens, np.nan)
    for part in cut(batch.num_rows):
        tokens = batch.token_indices(part)
        got = loss(part, ForwardResult(logp[tokens], np.ones(len(tokens))))
        value += got.value
        result[tokens] = got.logprob_grads
    return value, result


def all_at_once(rows: int) -> list[Indices]:
    return [np.arange(rows)]


def one_by_one(rows: int) -> list[Indices]:
    return [np.array([n]) for n in reversed(range(rows))]


def in_parts(rows: int) -> list[Indices]:
    return list(np.array_split(np.random.default_rng(1).permutation(rows), 3))


# Cuts and order ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("cut", [one_by_one, in_parts])
def test_how_rows_are_cut_for_memory_changes_nothing(name: str, cut: Callable[[int], list[Indices]]) -> None:
    pipeline = a_recipe(name)
    ready = a_step(pipeline, random_groups(3), minibatches=2, by=0.1)
    for step in range(len(ready.optimizer_steps)):
        (value, whole), (parts, summed) = (gradient(pipeline, ready, step, how) for how in (all_at_once, cut))
        assert parts == pytest.approx(value, abs=1e-12)
        assert np.allclose(whole, summed, atol=1e-15)


@pytest.mark.parametrize("name", ["flow-grpo", "grpo", "gspo", "eapo", "supo"])
def test_the_order_of_rollouts_changes_nothing(name: str) -> None:
    pipeline, groups = a_recipe(name, regularizers=[]), random_groups(3)
    turned = [a_group(*reversed(g.rollouts), key=g.key) for g in reversed(groups)]
    results: list[dict[str, float]] = []
    for order in (groups, turned):
        ready = a_step(pipeline, order)
        logp = ready.batch.select_rows(ready.active_rows).behavior_logprobs
        slopes = derived(pipeline, ready, logp).logprob_grads
        sums = np.bincount(ready.batch.select_rows(ready.active_rows).token_row, slopes)
        results.append(dict(zip(ready.batch.select_rows(ready.active_rows).row_keys, sums.tolist(), strict=True)))
    assert results[0] == pytest.approx(results[1], abs=1e-12)


def test_the_derivatives_of_a_pipeline_are_those_of_its_value() -> None:
    terms = [{"name": "kl-ref", "coefficient": 0.3}, {"name": "entropy", "coefficient": 0.2}]
    pipeline = a_pipeline(regularizers=terms)
    ready = a_step(pipeline, random_groups(1, groups=1), by=0.2)
    logp, rows = drifted(ready.batch, 3, 0.3), np.arange(ready.batch.num_rows)
    entropy = np.linspace(0.1, 2, ready.batch.num_tokens)
    loss = build_loss(pipeline, ready, 0)
    result = loss(rows, ForwardResult(logp, entropy))
    assert np.allclose(
        result.logprob_grads, slope(lambda at: loss(rows, ForwardResult(at, entropy)).value, logp), atol=1e-7
    )
    assert result.entropy_grads is not None
    assert result.entropy_grads.tolist() == pytest.approx((-0.2 * ready.token_weights[0]).tolist())


@pytest.mark.parametrize("deal", ["rollouts", "rows"])
def test_every_row_is_trained_once_an_epoch(deal: str) -> None:
    ready = a_step(a_pipeline(), random_groups(2), minibatches=3, epochs=2, minibatch_unit=deal)
    assert len(ready.optimizer_steps) == 6
    for epoch in (ready.optimizer_steps[:3], ready.optimizer_steps[3:]):
        assert sorted(np.concatenate(epoch).tolist()) == list(range(ready.batch.num_rows))
    if deal == "rollouts":
        owners = [set(ready.batch.row_rollout[step].tolist()) for step in ready.optimizer_steps[:3]]
        assert not owners[0] & owners[1]
        assert not owners[1] & owners[2]


def test_the_same_seed_and_state_give_the_same_step() -> None:
    pipeline = a_recipe("dcpo")
    one, other, third = (a_step(pipeline, random_groups(2), seed=seed, minibatches=2) for seed in (4, 4, 5))
    assert one.batch.row_keys == other.batch.row_keys != third.batch.row_keys
    dealt = [
        [s.tolist() for s in a_step(a_pipeline(), random_groups(2), seed=n, minibatches=2).optimizer_steps]
        for n in (4, 5)
    ]
    assert dealt[0] != dealt[1]
    assert [s.tolist() for s in one.optimizer_steps] == [s.tolist() for s in other.optimizer_steps]
    assert all((a == b).all() for a, b in zip(one.token_weights, other.token_weights, strict=True))


def test_there_are_no_more_optimizer_steps_than_rows() -> None:
    ready = a_step(a_pipeline(), [rewarded([1.0, 0.0])], minibatches=5)
    assert [len(step) for step in ready.optimizer_steps] == [1, 1]


# What is trained --------------------------------------------------------------------------------------------------


def test_faults_and_rollouts_without_a_score_leave_their_group_and_are_no_zeros() -> None:
    group = a_group(
        a_sample(1.0, run=1), a_sample(0.0, run=2), a_sample(0.0, run=3, outcome="infra_error"), a_sample(None, run=4)
    )
    ready = a_step(a_pipeline(), [group])
    assert ready.batch.run_ids == (run(1), run(2))
    assert np.unique(ready.advantage).tolist() == pytest.approx([-0.707106, 0.707106], abs=1e-5)
    assert ready.ledger_reasons == {run(1): "used", run(2): "used", run(3): "infra_error", run(4): "unselected"}


def test_a_group_that_is_too_small_for_the_pipeline_is_left_out() -> None:
    group = a_group(a_sample(1.0, run=1), a_sample(0.0, run=2, outcome="infra_error"))
    ready = a_step(a_pipeline(advantage={"name": "leave-one-out"}), [group])
    assert ready.batch.num_groups == 0
    assert ready.ledger_reasons == {run(1): "incomplete_group", run(2): "infra_error"}


def test_every_rollout_that_is_given_has_a_ledger_reason() -> None:
    group = a_group(
        a_sample(1.0, run=1), a_sample(0.0, run=2), a_sample(0.0, ((2,),), run=3, outcome="truncated"),
        a_sample(0.0, (), run=4),
    )  # fmt: skip
    same = a_group(a_sample(1.0, run=5), a_sample(1.0, run=6), key="g2")
    ready = a_step(a_recipe("supo"), [group, same])
    assert [ready.ledger_reasons[run(n)] for n in range(1, 7)] == [
        "used", "used", "truncated", "no_tokens", "zero_advantage", "zero_advantage",
    ]  # fmt: skip


def test_a_rollout_that_is_masked_token_by_token_is_not_counted_as_trained() -> None:
    mask = {"name": "truncated-importance", "mode": "mask", "min_ratio": 0.5, "max_ratio": 2.0}
    pipeline = a_pipeline(token_weights=[{"name": "token-mean"}, mask])
    how = LearnerConfig(mode="decoupled", minibatches=2)
    chosen = compute_advantages(
        pipeline, seen_by(pipeline, [rewarded([1.0, 0.0])]), {}, np.random.default_rng(0), learner_config=how
    )
    far = chosen.batch.behavior_logprobs + np.where(chosen.batch.token_rollout == 1, 3.0, 0.0)
    assert compute_token_weights(pipeline, chosen, {"old_logprobs": far}).ledger_reasons == {
        run(1): "used",
        run(2): "zero_weight",
    }


def test_policy_versions_are_not_mixed_in_a_group() -> None:
    mixed = a_group(a_sample(1.0, run=1), a_sample(0.0, run=2, policy="planner@2"))
    with pytest.raises(MixedPoliciesError, match="planner@1 and planner@2"):
        seen_by(a_pipeline(), [mixed])


def test_completions_that_no_role_could_use_are_trained_only_when_asked() -> None:
    sample = a_sample(0.0, ((2,), (3,)), fractures=["root", "rejected"])
    groups = [a_group(sample, a_sample(1.0, run=2))]
    assert a_step(a_pipeline(), groups).batch.row_boundary_reasons == ("root", "root")
    pipeline = a_pipeline(view={"name": "policy-turns", "include_rejected": True})
    assert a_step(pipeline, groups).batch.row_boundary_reasons == ("root", "rejected", "root")


def test_only_the_roles_that_were_named_are_trained() -> None:
    rows = (a_row(run=1), a_row(run=1, segment=1, role="writer", first=2))
    groups = [a_group(TrainingRollout(rows[0].metadata, rows), a_sample(0.0, run=2))]
    ready = a_step(a_pipeline(view={"name": "policy-turns", "roles": ["writer"]}), groups)
    assert ready.batch.row_keys == (f"{run(1)}/1/0",)


def test_rows_without_a_gradient_are_not_forwarded_and_still_count() -> None:
    groups = [rewarded([1.0, 0.0]), rewarded([1.0, 1.0], key="g2", first=5)]
    ready = a_step(a_pipeline(), groups)
    assert (len(ready.list_active_rows), ready.batch.num_rows) == (2, 4)
    assert ready.token_weights[0].tolist() == pytest.approx([1 / 12] * 12)
    assert len(ready.step_rows(0)) == 2
    held = a_step(a_pipeline(regularizers=[{"name": "entropy"}]), groups)
    assert len(held.step_rows(0)) == 4


def test_rows_that_a_critic_is_asked_about_are_forwarded_without_an_advantage_too() -> None:
    pipeline = a_custom_pipeline(COUNTING, advantage={"name": "counting"}, advantage_modifiers=[{"name": "nothing"}])
    assert len(a_step(pipeline, [rewarded([1.0, 0.0])]).step_rows(0)) == 2


def test_modifiers_change_advantages_one_after_the_other() -> None:
    pipeline = a_custom_pipeline(
        advantage={"name": "constant"}, advantage_modifiers=[{"name": "plus-one"}, {"name": "twice"}]
    )
    assert a_step(pipeline, [rewarded([1.0])]).advantage.tolist() == [4.0] * 3


def test_a_step_without_groups_is_no_step() -> None:
    for name in RECIPES:
        ready = a_step(a_recipe(name), [])
        assert (ready.batch.num_tokens, ready.optimizer_steps, ready.ledger_reasons) == (0, (), {})
        assert all(np.isfinite(value) for value in ready.metrics.values())


# Anchors ----------------------------------------------------------------------------------------------------------


def test_in_bypass_form_the_anchor_is_what_was_sampled() -> None:
    pipeline, groups = a_pipeline(), random_groups(1)
    ready = a_step(pipeline, groups)
    tally = MetricAccumulator()
    derived(pipeline, ready, ready.batch.select_rows(ready.active_rows).behavior_logprobs, tally=tally)
    metrics = tally.compute_metrics()
    assert (metrics["ratio"], metrics["ess"], metrics["kl"]) == pytest.approx((1.0, 1.0, 0.0), abs=1e-6)
    assert (metrics["clip_low"], metrics["clip_high"]) == (0, 0)


def test_in_decoupled_form_the_anchor_is_computed_and_behavior_becomes_a_weight() -> None:
    pipeline = a_pipeline(token_weights=[{"name": "token-mean"}, {"name": "truncated-importance", "max_ratio": 1.5}])
    how, groups = LearnerConfig(mode="decoupled"), [rewarded([1.0, 0.0])]
    seen = seen_by(pipeline, groups)
    chosen = compute_advantages(pipeline, seen, {}, np.random.default_rng(0), learner_config=how)
    anchor = chosen.batch.behavior_logprobs + np.array([0.0, 0.1, 0.2, -0.3, 0.7, 0.0])
    ready = compute_token_weights(pipeline, chosen, {"old_logprobs": anchor})
    assert (ready.token_weights[0] * 6).tolist() == pytest.approx([1, np.exp(0.1), np.exp(0.2), np.exp(-0.3), 1.5, 1])
    result = derived(pipeline, ready, anchor)
    assert result.logprob_grads.tolist() == pytest.approx((-ready.token_weights[0] * ready.advantage).tolist())


def test_rows_that_are_not_forwarded_weigh_as_if_nothing_had_changed() -> None:
    pipeline = a_pipeline(token_weights=[{"name": "token-mean"}, {"name": "truncated-importance"}])
    groups = [rewarded([1.0, 0.0]), rewarded([1.0, 1.0], key="g2", first=5)]
    ready = a_step(pipeline, groups, by=0.3, mode="decoupled")
    assert ready.token_weights[0][6:].tolist() == pytest.approx([1 / 12] * 6)
    assert ready.token_weights[0][:6].tolist() != pytest.approx([1 / 12] * 6, abs=1e-4)


def test_columns_that_are_missing_are_rejected() -> None:
    pipeline = a_pipeline(regularizers=[{"name": "kl-ref"}])
    chosen = compute_advantages(pipeline, seen_by(pipeline, random_groups(1)), {}, np.random.default_rng(0))
    with pytest.raises(InvalidInput, match="ref_logprobs is required"):
        compute_token_weights(pipeline, chosen, {})


def test_rows_that_do_not_say_how_likely_they_were_are_rejected_where_it_matters() -> None:
    unknown = a_sample(1.0, run=1, logprobs=[np.nan, -1.0, -1.0])
    groups = [a_group(unknown, a_sample(0.0, run=2))]
    with pytest.raises(InvalidInput, match="the recorded behavior_logprobs, which 1 rows do not have"):
        a_step(a_pipeline(), groups)
    imitated = a_pipeline(advantage={"name": "constant"}, surrogate={"name": "cross-entropy"})
    assert a_step(imitated, groups).batch.num_rows == 2


def test_facts_that_a_pipeline_needs_are_asked_for() -> None:
    pipeline = a_pipeline(rewards={"name": "tool-efficiency"})
    with pytest.raises(InvalidInput, match="tool_calls of each rollout"):
        seen_by(pipeline, random_groups(1))
    groups = [rewarded([1.0, 0.0])]
    facts = {UUID(int=1): {"tool_calls": 3.0}, UUID(int=2): {"tool_calls": 1.0}}
    seen = apply_view(pipeline, groups, {}, np.random.default_rng(0), rollout_stats=facts)
    assert seen.batch.rollout_stats["tool_calls"].tolist() == [3, 1]


# Segments that were edited -----------------------------------------------------------------------------------------


def test_without_an_edit_dcpo_is_grpo_bit_for_bit() -> None:
    groups = [rewarded([1.0, 0.0, 0.0, 1.0], [((3, 2),)] * 4)]
    dcpo = a_step(a_recipe("dcpo", selectors=[], regularizers=[]), groups)
    grpo = a_step(a_recipe("grpo", regularizers=[]), groups)
    assert (dcpo.advantage == grpo.advantage).all()
    assert (dcpo.token_weights[0] == grpo.token_weights[0]).all()


def edited() -> RolloutGroup:
    """A rollout of three turns; before the third its memory was edited: the first turn's words are in its prompt."""
    before = packed(((1, 2), (10, 11)), ((3,), (12, 13)), segment_info=SegmentInfo(0, "agent", "root"))
    after = packed(((1, 2, 10, 11, 4), (14, 15)), segment_info=SegmentInfo(1, "agent", "memory_edit"))
    samples: list[TrainingRollout] = []
    for nth in (1, 2):
        episode = trajectory_metadata(run_id=UUID(int=nth), reward=float(nth - 1))
        samples.append(
            TrainingRollout(episode, tuple(row for part in (before, after) for row in build_rows(episode, part)))
        )
    return a_group(*samples)


def test_every_sampled_token_is_trained_exactly_once_and_no_context_ever() -> None:
    ready = a_step(a_recipe("dcpo", selectors=[]), [edited()])
    for rollout in (0, 1):
        mine = ready.batch.token_ids[ready.batch.token_rollout == rollout]
        assert mine.tolist() == [10, 11, 12, 13, 14, 15]


def test_as_released_the_last_segment_trains_again_what_it_keeps() -> None:
    pipeline = a_pipeline(view={"name": "surviving"})
    with pytest.raises(InvalidInput, match="the recorded behavior_logprobs, which 2 rows do not have"):
        a_step(pipeline, [edited()])
    ready = a_step(pipeline, [edited()], mode="decoupled")
    assert ready.batch.token_ids[ready.batch.token_rollout == 0].tolist() == [10, 11, 12, 13, 10, 11, 14, 15]


def test_as_released_a_rejected_completion_is_no_last_segment() -> None:
    group = edited()
    first = group.rollouts[0]
    last = max(first.rows, key=lambda row: row.segment_info.idx)
    rejected = replace(
        last, segment_info=replace(last.segment_info, idx=last.segment_info.idx + 1, boundary_reason="rejected")
    )
    pipeline = a_pipeline(view={"name": "surviving", "include_rejected": True})
    longer = replace(group, rollouts=(replace(first, rows=(*first.rows, rejected)), *group.rollouts[1:]))
    ready = a_step(pipeline, [longer], mode="decoupled")
    trained = [
        ready.batch.token_ids[ready.batch.token_row == nth].tolist()
        for nth in range(ready.batch.num_rows)
        if ready.batch.row_rollout[nth] == 0
    ]
    assert trained == [[10, 11, 12, 13], [10, 11, 14, 15], [14, 15]]


def test_the_gradient_of_the_parts_is_that_of_the_whole_episode() -> None:
    """SUPO's theorem 3.2: a token's log-probability counts once, whichever span it is in."""
    pipeline = a_pipeline(
        advantage={"name": "constant"}, surrogate={"name": "reinforce"}, token_weights={"name": "row-sum"}
    )
    ready = a_step(pipeline, [edited()])
    result = derived(pipeline, ready, ready.batch.behavior_logprobs)
    assert (result.logprob_grads * ready.batch.num_rows).tolist() == pytest.approx([-1.0] * 12)


# State and critics ------------------------------------------------------------------------------------------------


def counting(options: PluginOptions, inputs: AdvantageInput) -> tuple[Advantage, PluginState]:
    known = int(inputs.state.get("count", {}).get("steps", 0))
    targets = {"value": np.arange(inputs.batch.num_turns, dtype=np.float64)}
    return Advantage(np.ones(inputs.batch.num_tokens), targets), {"count": {"steps": known + 1}}


def surveyed(options: PluginOptions, inputs: StepStatisticsInput) -> PluginState:
    return {"seen": {"rows": int(inputs.state.get("seen", {}).get("rows", 0)) + inputs.batch.num_rows}}


def remembering(options: PluginOptions, inputs: GroupSelectorInput) -> tuple[Sequence[RolloutGroup], PluginState]:
    return inputs.groups, {"met": {"groups": int(inputs.state.get("met", {}).get("groups", 0)) + len(inputs.groups)}}


MODIFIERS: Mapping[str, Callable[[PluginOptions, AdvantageInput, Floats], Floats]] = {
    "nothing": lambda options, inputs, token: 0 * token,
    "plus-one": lambda options, inputs, token: token + 1,
    "twice": lambda options, inputs, token: token * 2,
}


def a_custom_pipeline(*plugins: Plugin, **seams: Any) -> Pipeline:
    modifiers = [Plugin(name, PluginKind.ADVANTAGE_MODIFIER, "a test", apply) for name, apply in MODIFIERS.items()]
    registry = build_registry((*PLUGINS.values(), *plugins, *modifiers))
    plain = {
        "advantage": {"name": "group-z"},
        "token_weights": {"name": "token-mean"},
        "surrogate": {"name": "reinforce"},
    }
    return build_pipeline(PipelineConfig.model_validate(plain | seams), registry)


COUNTING = Plugin("counting", PluginKind.ADVANTAGE, "a test", counting, state_tables=frozenset({"count"}))


def test_what_a_plugin_remembers_is_given_to_it_at_the_next_step() -> None:
    pipeline = a_custom_pipeline(COUNTING, advantage={"name": "counting"})
    state: Mapping[str, Any] = {"other": {"kept": True}}
    for _ in range(2):
        seen = apply_view(pipeline, [rewarded([1.0, 0.0])], state, np.random.default_rng(0))
        state = compute_token_weights(
            pipeline, compute_advantages(pipeline, seen, {}, np.random.default_rng(0)), {}
        ).state
    assert state == {"other": {"kept": True}, "count": {"steps": 2}}
    assert pipeline.state_tables == {"count"}


def test_selections_of_groups_remember_one_after_the_other() -> None:
    met = Plugin("met", PluginKind.SELECTOR, "a test", remembering, stage="groups", state_tables=frozenset({"met"}))
    pipeline = a_custom_pipeline(met, selectors=[{"name": "met"}, {"name": "met"}])
    assert a_step(pipeline, [rewarded([1.0, 0.0])]).state == {"met": {"groups": 2}}


def test_a_survey_sees_each_optimizer_step_before_its_loss_does() -> None:
    entropy = PLUGINS["regularizer.entropy"]
    watcher = Plugin(
        "watcher",
        PluginKind.REGULARIZER,
        "a test",
        entropy.apply,
        step_statistics=surveyed,
        state_tables=frozenset({"seen"}),
    )
    pipeline = a_custom_pipeline(watcher, regularizers=[{"name": "watcher"}])
    ready = a_step(pipeline, [rewarded([1.0, 0.0, 1.0, 0.0])], minibatches=2)
    assert [state["seen"]["rows"] for state in ready.step_states] == [2, 4]
    assert ready.state["seen"] == {"rows": 4}


def test_critics_are_asked_for_their_targets_turn_by_turn_in_any_cut() -> None:
    pipeline = a_custom_pipeline(COUNTING, advantage={"name": "counting"})
    ready = a_step(pipeline, [rewarded([1.0, 0.0], [((2, 1), (1,)), ((3,),)])])
    text = np.array([0.5, 0.0, 2.0, 9.0])  # turns row after row; their targets are 0, 1, 2, 3

    def slopes(cut: list[list[int]], turns: list[list[int]]) -> list[float]:
        results: list[float] = []
        loss = build_loss(pipeline, ready, 0)
        for rows, mine in zip(cut, turns, strict=True):
            tokens = ready.batch.token_indices(np.array(rows))
            forwarded = ForwardResult(
                ready.batch.behavior_logprobs[tokens], np.ones(len(tokens)), {"value": text[mine]}
            )
            results += loss(np.array(rows), forwarded).value_grads["value"].tolist()
        return results

    expected = [0.125, -0.25, 0.0, 1.5]
    assert slopes([[0, 1, 2]], [[0, 1, 2, 3]]) == pytest.approx(expected)
    assert slopes([[0], [1, 2]], [[0, 1], [2, 3]]) == pytest.approx(expected)


# Figures ----------------------------------------------------------------------------------------------------------


def test_metrics_say_what_a_step_was() -> None:
    groups = [rewarded([1.0, 0.0]), rewarded([0.0, 0.0], key="g2", first=5)]
    step = a_step(a_pipeline(), groups).metrics
    expected = {
        "groups": 2, "rollouts": 4, "zero_variance": 0.5, "reward": 0.25, "success_rate": 0.25,
        "rows": 4, "tokens": 12, "turns": 4, "advantage_near_zero": 0.5, "advantage_below_-0.5": 0.25,
        "advantage_below_1": 0.25, "advantage_mean": 0,
    }  # fmt: skip
    assert {name: step[name] for name in expected} == pytest.approx(expected)
    bars = [value for name, value in step.items() if name.startswith(("advantage_below", "advantage_from"))]
    assert sum(bars) == pytest.approx(1)


def test_violations_are_counted_among_scored_rollouts_whose_outcome_is_known() -> None:
    outcomes = ("violated", "answered", "truncated", "no_answer")
    scored = [a_sample(0.0, run=run, outcome=outcome) for run, outcome in enumerate(outcomes, 1)]
    failed = a_sample(None, run=5, outcome="infra_error")
    assert group_metrics([a_group(*scored, failed)])["violation_fraction"] == 0.25
    unknown = replace(scored[0], metadata=replace(scored[0].metadata, outcome=None))
    assert group_metrics([a_group(unknown, *scored[1:3])])["violation_fraction"] == 0
    assert "violation_fraction" not in group_metrics([a_group(unknown, failed)])


def test_metrics_of_the_loss_are_the_same_in_any_cut() -> None:
    pipeline = a_recipe("flow-grpo")
    ready = a_step(pipeline, random_groups(3), by=0.2)
    logp, results = drifted(ready.batch, 5, 0.3), list[dict[str, float]]()
    for cut in (all_at_once, in_parts):
        tally, loss = MetricAccumulator(), None
        loss = build_loss(pipeline, ready, 0, tally)
        for part in cut(ready.batch.num_rows):
            tokens = ready.batch.token_indices(part)
            loss(part, ForwardResult(logp[tokens], np.ones(len(tokens))))
        results.append(tally.compute_metrics())
    assert results[0] == pytest.approx(results[1])
    known = results[0]
    ratio = np.exp(logp - ready.batch.behavior_logprobs)
    assert known["ratio"] == pytest.approx(ratio.mean())
    assert (known["ratio_min"], known["ratio_max"]) == pytest.approx((ratio.min(), ratio.max()))
    assert known["ess"] == pytest.approx(ratio.sum() ** 2 / (ratio**2).sum() / len(ratio))
    assert known["kl"] == pytest.approx((ratio - 1 - np.log(ratio)).mean())
    assert known["kl_ref"] > 0
    assert known["loss"] == pytest.approx(known["loss_ppo-clip"] + 0.001 * known["loss_kl-ref"])


def test_plugins_that_keep_nothing_change_no_state() -> None:
    assert empty_state() == {}
    assert a_step(a_pipeline(), [rewarded([1.0, 0.0])]).state == {}


def test_a_replayed_rollout_is_not_decided_on_again() -> None:
    again = a_group(a_sample(1.0, run=1, policy="planner@0", replayed=True), a_sample(0.0, run=2))
    ready = a_step(a_pipeline(), [again])
    assert ready.batch.num_rows == 2
    assert ready.ledger_reasons == {run(2): "used"}
