"""A job's configuration: what is read, what lies under it, what is refused."""

import tomllib

import pytest

from offing.core.errors import InvalidInput
from offing_trainer.config import config_of, laid_over, recipe

COMPLETE = {"policy": "planner@1", "algorithm": "flow-grpo"}


def test_a_file_that_names_a_recipe_is_complete() -> None:
    text = 'policy = "planner@1"\nalgorithm = "flow-grpo"\n[learner]\nlearning_rate = 3e-4\n'
    config = config_of(tomllib.loads(text))
    assert config.chain.advantage[0].name == "group-z"
    assert config.chain.weight[0].name == "rollout-turn-token"
    assert config.learner.learning_rate == 3e-4
    assert config.chain.regularise[0].coefficient == 0.001


def test_what_is_said_goes_over_the_recipe_option_by_option() -> None:
    config = config_of({**COMPLETE, "chain": {"surrogate": {"high": 0.28}}})
    assert config.chain.surrogate[0].options == {"low": 0.2, "high": 0.28}


def test_another_plugin_takes_nothing_over_from_the_recipes() -> None:
    config = config_of({**COMPLETE, "chain": {"surrogate": {"name": "gspo"}, "regularise": []}})
    assert config.chain.surrogate[0].options == {}
    assert config.chain.regularise == ()


def test_tables_are_merged_and_lists_replaced() -> None:
    under = {"data": {"graph": "g", "tags": ["a"]}, "policy": "p@1"}
    assert laid_over(under, {"data": {"tags": ["b"]}}) == {"data": {"graph": "g", "tags": ["b"]}, "policy": "p@1"}


def test_an_unknown_entry_is_refused_by_its_place() -> None:
    with pytest.raises(InvalidInput, match=r"learner\.learning_rat: extra inputs"):
        config_of({**COMPLETE, "learner": {"learning_rat": 1}})
    with pytest.raises(InvalidInput, match="policy: field required"):
        config_of({"algorithm": "grpo"})


def test_an_unknown_recipe_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(InvalidInput, match=r"there is no recipe flow.*dcpo"):
        config_of({"policy": "planner@1", "algorithm": "flow"})


def test_a_configuration_survives_being_stored() -> None:
    config = config_of({**COMPLETE, "chain": {"reward": {"name": "outcome", "threshold": 0.5}}})
    assert config_of(config.model_dump(mode="json")) == config
    assert "name" in recipe("grpo")["chain"]["advantage"]
