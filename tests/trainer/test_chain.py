"""Which chains are refused before any work, and what the refusal says."""

import sys
from pathlib import Path
from typing import Any

import pytest

from offing.core.errors import InvalidInput
from offing_trainer.catalogue import NamedTwice, by_name, every, of_module, offered
from offing_trainer.chain import Chain, ImpossibleChain, chain_for, chain_of, needed_columns
from offing_trainer.config import ChainConfig, TrainConfig, config_of, recipe_names
from offing_trainer.rewards import geometric
from offing_trainer.seam import Claim, Options, Plugin, RewardGiven, Rewards, Seam, State, no_state
from tests.trainer.builders import a_chain


class Times(Options):
    factor: float = 1.0


def as_paid(options: Times, given: RewardGiven) -> tuple[Rewards, State]:
    return given.rewards, no_state()


def a_plugin(name: str, seam: Seam = Seam.REWARD, **declared: Any) -> Plugin:
    return Plugin(name, seam, "a test", as_paid, Times, **declared)


def with_plugins(*plugins: Plugin, group_size: int | None = None, **seams: Any) -> Chain:
    plain = {
        "advantage": {"name": "group-z"},
        "weight": {"name": "token-mean"},
        "surrogate": {"name": "ppo-clip"},
        "reward": [{"name": plugin.name} for plugin in plugins],
    }
    catalogue = {**every(), **by_name(plugins)}
    return chain_of(ChainConfig.model_validate(plain | seams), catalogue, group_size=group_size)


def a_config(**tables: Any) -> TrainConfig:
    return config_of({"policy": "planner@1", "algorithm": "grpo", **tables})


def test_an_unknown_plugin_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ImpossibleChain, match=r"chain\.surrogate: there is no plug-in ppo for surrogate.*ppo-clip"):
        a_chain(surrogate={"name": "ppo"})


def test_a_plugin_at_the_wrong_seam_is_told_where_it_belongs() -> None:
    with pytest.raises(ImpossibleChain, match=r"no plug-in geometric for weight\. It belongs under reward"):
        a_chain(weight={"name": "geometric"})


def test_an_unknown_option_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ImpossibleChain, match=r"chain\.surrogate\.clip: ppo-clip: .*low, high, dual"):
        a_chain(surrogate={"name": "ppo-clip", "clip": 0.2})


def test_a_value_of_the_wrong_kind_is_refused() -> None:
    with pytest.raises(ImpossibleChain, match=r"chain\.reward\[1\]\.gamma: geometric: input should be less than"):
        a_chain(reward=[{"name": "outcome"}, {"name": "geometric", "gamma": 2}])


@pytest.mark.parametrize("seam", ["view", "advantage", "surrogate"])
def test_a_seam_that_takes_one_is_not_filled_twice_nor_left_empty(seam: str) -> None:
    entry = {"view": "policy-turns", "advantage": "group-z", "surrogate": "ppo-clip"}[seam]
    with pytest.raises(ImpossibleChain, match=f"chain.{seam}: {entry} and {entry} cannot both be there"):
        a_chain(**{seam: [{"name": entry}, {"name": entry}]})
    with pytest.raises(ImpossibleChain, match=f"chain.{seam}: nothing is named"):
        a_chain(**{seam: []})


def test_a_chain_without_a_weight_is_refused_because_nothing_else_averages() -> None:
    with pytest.raises(ImpossibleChain, match="token-mean, for example"):
        a_chain(weight=[])


def test_a_column_that_nothing_computes_is_refused() -> None:
    with pytest.raises(ImpossibleChain, match=r"hae needs value_high.*learner\.critic: columns"):
        chain_for(a_config(chain={"advantage": {"name": "hae"}}))
    critic = {"columns": ["value_high", "value_low", "value_term"]}
    assert chain_for(a_config(chain={"advantage": {"name": "hae"}}, learner={"critic": critic}))


def test_a_value_after_the_last_observation_is_refused_with_what_to_set_instead() -> None:
    advantage, critic = {"name": "turn-gae", "at_cut": "next-value"}, {"columns": ["value"]}
    with pytest.raises(ImpossibleChain, match=r'needs value_after.*in no stored row\. Set at_cut to "compat" or "off"'):
        chain_for(a_config(chain={"advantage": advantage}, learner={"critic": critic}))
    assert chain_for(a_config(chain={"advantage": {**advantage, "at_cut": "compat"}}, learner={"critic": critic}))


def test_reference_answers_are_asked_before_credit_is_given() -> None:
    chain = chain_for(a_config(algorithm="igpo"))
    assert needed_columns(chain).early == {"reference_logp", "reference_start"}


def test_what_only_one_may_do_is_not_done_twice() -> None:
    cost = a_plugin("cheaper", claims=frozenset({Claim.COST}))
    with pytest.raises(ImpossibleChain, match="geometric and cheaper both claim cost"):
        with_plugins(cost, reward=[{"name": "geometric"}, {"name": "cheaper"}])


def test_declared_conflicts_hold_in_both_directions() -> None:
    one = a_plugin("one", conflicts={"other": "they undo each other"})
    for order in ((one, a_plugin("other")), (a_plugin("other"), one)):
        with pytest.raises(ImpossibleChain, match="cannot work together: they undo each other"):
            with_plugins(*order)


def test_groups_that_are_known_to_be_too_small_are_refused() -> None:
    assert with_plugins(advantage={"name": "leave-one-out"}, group_size=2)
    with pytest.raises(ImpossibleChain, match=r"leave-one-out needs groups of 2 rollouts, and data\.group_size is 1"):
        with_plugins(advantage={"name": "leave-one-out"}, group_size=1)


def test_a_correction_of_the_anchor_is_refused_where_the_anchor_is_what_was_sampled() -> None:
    weight = [{"name": "token-mean"}, {"name": "truncated-importance"}]
    with pytest.raises(ImpossibleChain, match=r'truncated-importance does nothing.*learner\.mode to "decoupled"'):
        chain_for(a_config(chain={"weight": weight}))
    assert chain_for(a_config(chain={"weight": weight}, learner={"mode": "decoupled"}))


def test_a_refusal_is_bad_input() -> None:
    assert issubclass(ImpossibleChain, InvalidInput)


def test_columns_are_asked_for_by_when_they_are_needed() -> None:
    chain = a_chain(regularise=[{"name": "kl-ref"}])
    assert needed_columns(chain, "bypass").late == {"logp_ref"}
    assert needed_columns(chain, "decoupled").late == {"logp_ref", "logp_old"}
    assert needed_columns(chain, "decoupled").early == frozenset()
    turns = a_chain(advantage={"name": "turn-gae"})
    assert needed_columns(turns, "bypass").early == {"value"}


def test_imitation_needs_neither_scores_nor_columns() -> None:
    chain = a_chain(advantage={"name": "constant"}, surrogate={"name": "cross-entropy"})
    assert chain.unscored
    assert not needed_columns(chain, "decoupled").late
    assert not a_chain().unscored


def test_every_recipe_is_a_chain() -> None:
    assert {"flow-grpo", "grpo", "gspo", "sft", "eapo", "dcpo", "supo"} <= set(recipe_names())
    for name in recipe_names():
        critic = {"columns": ["value", "value_high", "value_low", "value_term"]}
        tables = {"policy": "planner@1", "algorithm": name, "learner": {"critic": critic}}
        assert chain_for(config_of(tables)).links, name


def test_a_module_offers_one_plugin_or_several() -> None:
    assert of_module(geometric) == (geometric.PLUGIN,)
    assert (Seam.REWARD, "geometric") in every()


def test_another_package_offers_plugins_by_an_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "someones.py").write_text(
        "from offing_trainer.seam import Plugin, Seam\n"
        "PLUGIN = Plugin('theirs', Seam.WEIGHT, 'someone', lambda options, given: 1)\n"
    )
    info = tmp_path / "someones-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: someones\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[offing.training]\nall = someones\none = someones:PLUGIN\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert {plugin.name for plugin in offered()} == {"theirs"}
    assert a_chain(weight={"name": "theirs"}).only(Seam.WEIGHT).plugin.source == "someone"


def test_two_plugins_of_one_name_are_refused() -> None:
    with pytest.raises(NamedTwice, match="two plug-ins one for reward"):
        by_name([a_plugin("one"), a_plugin("one")])
    assert by_name([a_plugin("one"), a_plugin("one", Seam.WEIGHT)])
