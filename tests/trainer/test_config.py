"""A job's configuration: what is read, what lies under it, what is rejected."""

import tomllib

import pytest

from offing.core.errors import InvalidInput
from offing_trainer.config import load_recipe, merge_tables, parse_config

COMPLETE = {"policy": "planner@1", "algorithm": "flow-grpo"}


def test_a_file_that_names_a_recipe_is_complete() -> None:
    text = 'policy = "planner@1"\nalgorithm = "flow-grpo"\n[learner]\nlearning_rate = 3e-4\n'
    config = parse_config(tomllib.loads(text))
    assert config.pipeline.advantage[0].name == "group-z"
    assert config.pipeline.token_weights[0].name == "rollout-turn-token"
    assert config.learner.learning_rate == 3e-4
    assert config.pipeline.regularizers[0].coefficient == 0.001


def test_what_is_said_goes_over_the_recipe_option_by_option() -> None:
    config = parse_config({**COMPLETE, "pipeline": {"surrogate": {"high": 0.28}}})
    assert config.pipeline.surrogate[0].options == {"low": 0.2, "high": 0.28}


def test_another_plugin_takes_nothing_over_from_the_recipes() -> None:
    config = parse_config({**COMPLETE, "pipeline": {"surrogate": {"name": "gspo"}, "regularizers": []}})
    assert config.pipeline.surrogate[0].options == {}
    assert config.pipeline.regularizers == ()


def test_tables_are_merged_and_lists_replaced() -> None:
    under = {"data": {"graph": "g", "tags": ["a"]}, "policy": "p@1"}
    assert merge_tables(under, {"data": {"tags": ["b"]}}) == {"data": {"graph": "g", "tags": ["b"]}, "policy": "p@1"}


def test_an_unknown_entry_is_rejected_by_its_path() -> None:
    with pytest.raises(InvalidInput, match=r"learner\.learning_rat: extra inputs"):
        parse_config({**COMPLETE, "learner": {"learning_rat": 1}})
    with pytest.raises(InvalidInput, match="policy: field required"):
        parse_config({"algorithm": "grpo"})


def test_an_unknown_recipe_is_rejected_with_those_that_there_are() -> None:
    with pytest.raises(InvalidInput, match=r"there is no recipe flow.*dcpo"):
        parse_config({"policy": "planner@1", "algorithm": "flow"})


def test_a_configuration_survives_being_stored() -> None:
    config = parse_config({**COMPLETE, "pipeline": {"rewards": {"name": "outcome", "threshold": 0.5}}})
    assert parse_config(config.model_dump(mode="json")) == config
    assert "name" in load_recipe("grpo")["pipeline"]["advantage"]
