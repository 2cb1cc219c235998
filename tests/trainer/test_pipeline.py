"""Which pipelines are rejected before any work, and what the rejection says."""

from typing import Any

import pytest

from offing.core.errors import InvalidInput
from offing_trainer.config import PipelineConfig, TrainConfig, list_recipes, parse_config
from offing_trainer.pipeline import (
    InvalidPipelineError,
    Pipeline,
    build_job_pipeline,
    build_pipeline,
    compute_required_columns,
)
from offing_trainer.plugin import (
    Plugin,
    PluginKind,
    PluginOptions,
    PluginState,
    PluginTrait,
    RewardInput,
    Rewards,
    empty_state,
)
from offing_trainer.plugin_registry import build_registry, load_registry
from offing_trainer.rewards import geometric
from tests.trainer.builders import a_pipeline


class Times(PluginOptions):
    factor: float = 1.0


def scale_rewards(options: Times, inputs: RewardInput) -> tuple[Rewards, PluginState]:
    return inputs.rewards, empty_state()


def a_plugin(name: str, seam: PluginKind = PluginKind.REWARD, **declared: Any) -> Plugin:
    return Plugin(name, seam, "a test", scale_rewards, Times, **declared)


def with_plugins(*plugins: Plugin, group_size: int | None = None, **seams: Any) -> Pipeline:
    plain = {
        "advantage": {"name": "group-z"},
        "token_weights": {"name": "token-mean"},
        "surrogate": {"name": "ppo-clip"},
        "rewards": [{"name": plugin.name} for plugin in plugins],
    }
    registry = {**load_registry(), **build_registry(plugins)}
    return build_pipeline(PipelineConfig.model_validate(plain | seams), registry, group_size=group_size)


def a_config(**tables: Any) -> TrainConfig:
    return parse_config({"policy": "planner@1", "algorithm": "grpo", **tables})


def test_an_unknown_plugin_is_rejected_with_those_that_there_are() -> None:
    with pytest.raises(
        InvalidPipelineError, match=r"pipeline\.surrogate: there is no plug-in ppo for surrogate.*ppo-clip"
    ):
        a_pipeline(surrogate={"name": "ppo"})


def test_a_plugin_at_the_wrong_seam_is_told_where_it_belongs() -> None:
    with pytest.raises(InvalidPipelineError, match=r"no plug-in geometric for token_weight\. It belongs under reward"):
        a_pipeline(token_weights={"name": "geometric"})


def test_an_unknown_option_is_rejected_with_those_that_there_are() -> None:
    with pytest.raises(InvalidPipelineError, match=r"pipeline\.surrogate\.clip: ppo-clip: .*low, high, dual"):
        a_pipeline(surrogate={"name": "ppo-clip", "clip": 0.2})


def test_a_value_of_the_wrong_kind_is_rejected() -> None:
    with pytest.raises(
        InvalidPipelineError, match=r"pipeline\.rewards\[1\]\.gamma: geometric: input should be less than"
    ):
        a_pipeline(rewards=[{"name": "outcome"}, {"name": "geometric", "gamma": 2}])


@pytest.mark.parametrize("seam", ["view", "advantage", "surrogate"])
def test_a_seam_that_takes_one_is_not_filled_twice_nor_left_empty(seam: str) -> None:
    entry = {"view": "policy-turns", "advantage": "group-z", "surrogate": "ppo-clip"}[seam]
    with pytest.raises(InvalidPipelineError, match=f"pipeline.{seam}: {entry} and {entry} cannot be combined"):
        a_pipeline(**{seam: [{"name": entry}, {"name": entry}]})
    with pytest.raises(InvalidPipelineError, match=f"pipeline.{seam}: is missing"):
        a_pipeline(**{seam: []})


def test_a_pipeline_without_a_weight_is_rejected_because_nothing_else_averages() -> None:
    with pytest.raises(InvalidPipelineError, match="such as token-mean"):
        a_pipeline(token_weights=[])


def test_a_column_that_nothing_computes_is_rejected() -> None:
    with pytest.raises(InvalidPipelineError, match=r"hae needs value_high.*learner\.critic: columns"):
        build_job_pipeline(a_config(pipeline={"advantage": {"name": "hae"}}))
    critic = {"columns": ["value_high", "value_low", "value_switch"]}
    assert build_job_pipeline(a_config(pipeline={"advantage": {"name": "hae"}}, learner={"critic": critic}))


def test_a_value_after_the_last_observation_is_rejected_with_what_to_set_instead() -> None:
    advantage, critic = {"name": "turn-gae", "at_truncation": "next-value"}, {"columns": ["value"]}
    with pytest.raises(
        InvalidPipelineError, match=r'needs value_final.*is not stored\. Set at_truncation to "last-value" or "off"'
    ):
        build_job_pipeline(a_config(pipeline={"advantage": advantage}, learner={"critic": critic}))
    assert build_job_pipeline(
        a_config(pipeline={"advantage": {**advantage, "at_truncation": "last-value"}}, learner={"critic": critic})
    )


def test_reference_answers_are_scored_before_advantages_are_computed() -> None:
    pipeline = build_job_pipeline(a_config(algorithm="igpo"))
    assert compute_required_columns(pipeline).before_selection == {"answer_logprob", "initial_answer_logprob"}


def test_what_only_one_may_do_is_not_done_twice() -> None:
    cost = a_plugin("cheaper", traits=frozenset({PluginTrait.COST}))
    with pytest.raises(InvalidPipelineError, match="geometric and cheaper both have the trait cost"):
        with_plugins(cost, rewards=[{"name": "geometric"}, {"name": "cheaper"}])


def test_declared_conflicts_hold_in_both_directions() -> None:
    one = a_plugin("one", conflicts={"other": "they undo each other"})
    for order in ((one, a_plugin("other")), (a_plugin("other"), one)):
        with pytest.raises(InvalidPipelineError, match="cannot be combined: they undo each other"):
            with_plugins(*order)


def test_groups_that_are_known_to_be_too_small_are_rejected() -> None:
    assert with_plugins(advantage={"name": "leave-one-out"}, group_size=2)
    with pytest.raises(
        InvalidPipelineError, match=r"leave-one-out needs groups of at least 2 rollouts, but data\.group_size is 1"
    ):
        with_plugins(advantage={"name": "leave-one-out"}, group_size=1)


def test_a_correction_of_the_anchor_is_rejected_where_the_anchor_is_what_was_sampled() -> None:
    weight = [{"name": "token-mean"}, {"name": "truncated-importance"}]
    with pytest.raises(InvalidPipelineError, match=r'truncated-importance has no effect.*learner\.mode to "decoupled"'):
        build_job_pipeline(a_config(pipeline={"token_weights": weight}))
    assert build_job_pipeline(a_config(pipeline={"token_weights": weight}, learner={"mode": "decoupled"}))


def test_a_rejection_is_bad_input() -> None:
    assert issubclass(InvalidPipelineError, InvalidInput)


def test_columns_are_asked_for_by_when_they_are_needed() -> None:
    pipeline = a_pipeline(regularizers=[{"name": "kl-ref"}])
    assert compute_required_columns(pipeline, "bypass").after_selection == {"ref_logprobs"}
    assert compute_required_columns(pipeline, "decoupled").after_selection == {"ref_logprobs", "old_logprobs"}
    assert compute_required_columns(pipeline, "decoupled").before_selection == frozenset()
    turns = a_pipeline(advantage={"name": "turn-gae"})
    assert compute_required_columns(turns, "bypass").before_selection == {"value"}


def test_imitation_needs_neither_scores_nor_columns() -> None:
    pipeline = a_pipeline(advantage={"name": "constant"}, surrogate={"name": "cross-entropy"})
    assert pipeline.allows_unscored
    assert not compute_required_columns(pipeline, "decoupled").after_selection
    assert not a_pipeline().allows_unscored


def test_every_recipe_is_a_pipeline() -> None:
    assert {"flow-grpo", "grpo", "gspo", "sft", "eapo", "dcpo", "supo"} <= set(list_recipes())
    for name in list_recipes():
        critic = {"columns": ["value", "value_high", "value_low", "value_switch"]}
        tables = {"policy": "planner@1", "algorithm": name, "learner": {"critic": critic}}
        assert build_job_pipeline(parse_config(tables)).plugins, name


def test_every_plugin_is_registered_under_its_kind_and_name() -> None:
    assert all(plugin.key == key for key, plugin in load_registry().items())
    assert load_registry()["reward.geometric"] is geometric.PLUGIN
