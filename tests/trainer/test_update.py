"""A whole step: what becomes of groups, and that nothing depends on how the work is cut up."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from offing.core.episode import SegmentHead
from offing.core.errors import InvalidInput
from offing.core.rows import merged
from offing_trainer.batch import Floats, Group, MixedPolicies, Places, Sample
from offing_trainer.catalogue import built_in, by_name
from offing_trainer.chain import Chain, chain_of
from offing_trainer.config import ChainConfig, LearnerConfig
from offing_trainer.learner.contract import Forwarded
from offing_trainer.seam import (
    Advantage,
    AdvantageGiven,
    GroupsGiven,
    Options,
    Plugin,
    Seam,
    State,
    SurveyGiven,
    no_state,
)
from offing_trainer.update import Prepared, Tally, loss_of, measured, prepared, viewed
from tests.trainer.builders import (
    a_chain,
    a_group,
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
from tests.unit.exports.builders import an_episode, packed

RECIPES = ["flow-grpo", "grpo", "gspo", "eapo", "dcpo", "supo", "reinforce", "sft"]


def run(n: int) -> str:
    return str(UUID(int=n))


def gradient(chain: Chain, ready: Prepared, step: int, cut: Callable[[int], list[Places]]) -> tuple[float, Floats]:
    """The loss and its derivative by each forwarded token, part by part, with the same policy whatever the cut."""
    rows = np.flatnonzero(np.isin(ready.steps[step], ready.live))
    batch = ready.batch.only(ready.steps[step][rows])
    logp, loss = drifted(batch, 5, 0.3), loss_of(chain, ready, step)
    value, found = 0.0, np.full(batch.tokens, np.nan)
    for part in cut(batch.rows):
        tokens = batch.tokens_of(part)
        got = loss(part, Forwarded(logp[tokens], np.ones(len(tokens))))
        value += got.value
        found[tokens] = got.dlogp
    return value, found


def all_at_once(rows: int) -> list[Places]:
    return [np.arange(rows)]


def one_by_one(rows: int) -> list[Places]:
    return [np.array([n]) for n in reversed(range(rows))]


def in_parts(rows: int) -> list[Places]:
    return list(np.array_split(np.random.default_rng(1).permutation(rows), 3))


# Cuts and order ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("cut", [one_by_one, in_parts])
def test_how_rows_are_cut_for_memory_changes_nothing(name: str, cut: Callable[[int], list[Places]]) -> None:
    chain = a_recipe(name)
    ready = a_step(chain, random_groups(3), minibatches=2, by=0.1)
    for step in range(len(ready.steps)):
        (value, whole), (parts, found) = (gradient(chain, ready, step, how) for how in (all_at_once, cut))
        assert parts == pytest.approx(value, abs=1e-12)
        assert np.allclose(whole, found, atol=1e-15)


@pytest.mark.parametrize("name", ["flow-grpo", "grpo", "gspo", "eapo", "supo"])
def test_the_order_of_rollouts_changes_nothing(name: str) -> None:
    chain, groups = a_recipe(name, regularise=[]), random_groups(3)
    turned = [a_group(*reversed(g.samples), key=g.key) for g in reversed(groups)]
    found: list[dict[str, float]] = []
    for order in (groups, turned):
        ready = a_step(chain, order)
        logp = ready.batch.only(ready.live).behaviour
        slopes = derived(chain, ready, logp).dlogp
        sums = np.bincount(ready.batch.only(ready.live).token_row, slopes)
        found.append(dict(zip(ready.batch.only(ready.live).row, sums.tolist(), strict=True)))
    assert found[0] == pytest.approx(found[1], abs=1e-12)


def test_the_derivatives_of_a_chain_are_those_of_its_value() -> None:
    terms = [{"name": "kl-ref", "coefficient": 0.3}, {"name": "entropy", "coefficient": 0.2}]
    chain = a_chain(regularise=terms)
    ready = a_step(chain, random_groups(1, groups=1), by=0.2)
    logp, rows = drifted(ready.batch, 3, 0.3), np.arange(ready.batch.rows)
    entropy = np.linspace(0.1, 2, ready.batch.tokens)
    loss = loss_of(chain, ready, 0)
    found = loss(rows, Forwarded(logp, entropy))
    assert np.allclose(found.dlogp, slope(lambda at: loss(rows, Forwarded(at, entropy)).value, logp), atol=1e-7)
    assert found.dentropy is not None
    assert found.dentropy.tolist() == pytest.approx((-0.2 * ready.weights[0]).tolist())


@pytest.mark.parametrize("deal", ["rollouts", "rows"])
def test_every_row_is_trained_once_an_epoch(deal: str) -> None:
    ready = a_step(a_chain(), random_groups(2), minibatches=3, epochs=2, deal=deal)
    assert len(ready.steps) == 6
    for epoch in (ready.steps[:3], ready.steps[3:]):
        assert sorted(np.concatenate(epoch).tolist()) == list(range(ready.batch.rows))
    if deal == "rollouts":
        owners = [set(ready.batch.row_rollout[step].tolist()) for step in ready.steps[:3]]
        assert not owners[0] & owners[1]
        assert not owners[1] & owners[2]


def test_the_same_seed_and_state_give_the_same_step() -> None:
    chain = a_recipe("dcpo")
    one, other, third = (a_step(chain, random_groups(2), seed=seed, minibatches=2) for seed in (4, 4, 5))
    assert one.batch.row == other.batch.row != third.batch.row
    dealt = [[s.tolist() for s in a_step(a_chain(), random_groups(2), seed=n, minibatches=2).steps] for n in (4, 5)]
    assert dealt[0] != dealt[1]
    assert [s.tolist() for s in one.steps] == [s.tolist() for s in other.steps]
    assert all((a == b).all() for a, b in zip(one.weights, other.weights, strict=True))


def test_there_are_no_more_optimiser_steps_than_there_is_to_deal() -> None:
    ready = a_step(a_chain(), [rewarded([1.0, 0.0])], minibatches=5)
    assert [len(step) for step in ready.steps] == [1, 1]


# What is trained --------------------------------------------------------------------------------------------------


def test_faults_and_rollouts_without_a_score_leave_their_group_and_are_no_zeros() -> None:
    group = a_group(
        a_sample(1.0, run=1), a_sample(0.0, run=2), a_sample(0.0, run=3, outcome="infra_error"), a_sample(None, run=4)
    )
    ready = a_step(a_chain(), [group])
    assert ready.batch.rollout == (run(1), run(2))
    assert np.unique(ready.advantage).tolist() == pytest.approx([-0.707106, 0.707106], abs=1e-5)
    assert ready.fates == {run(1): "kept", run(2): "kept", run(3): "infra_error", run(4): "unselected"}


def test_a_group_that_is_too_small_for_the_chain_is_left_out() -> None:
    group = a_group(a_sample(1.0, run=1), a_sample(0.0, run=2, outcome="infra_error"))
    ready = a_step(a_chain(advantage={"name": "leave-one-out"}), [group])
    assert ready.batch.groups == 0
    assert ready.fates == {run(1): "short_group", run(2): "infra_error"}


def test_every_rollout_that_is_given_has_a_fate() -> None:
    group = a_group(
        a_sample(1.0, run=1), a_sample(0.0, run=2), a_sample(0.0, ((2,),), run=3, outcome="truncated"),
        a_sample(0.0, (), run=4),
    )  # fmt: skip
    same = a_group(a_sample(1.0, run=5), a_sample(1.0, run=6), key="g2")
    ready = a_step(a_recipe("supo"), [group, same])
    assert [ready.fates[run(n)] for n in range(1, 7)] == [
        "kept", "kept", "truncated", "no_tokens", "zero_advantage", "zero_advantage",
    ]  # fmt: skip


def test_a_rollout_that_is_masked_token_by_token_is_not_counted_as_trained() -> None:
    mask = {"name": "truncated-importance", "how": "mask", "low": 0.5, "high": 2.0}
    chain = a_chain(weight=[{"name": "token-mean"}, mask])
    how = LearnerConfig(mode="decoupled", minibatches=2)
    chosen = prepared(chain, seen_by(chain, [rewarded([1.0, 0.0])]), {}, np.random.default_rng(0), learner=how)
    far = chosen.batch.behaviour + np.where(chosen.batch.token_rollout == 1, 3.0, 0.0)
    assert measured(chain, chosen, {"logp_old": far}).fates == {run(1): "kept", run(2): "ratio"}


def test_policy_versions_are_not_mixed_in_a_group() -> None:
    mixed = a_group(a_sample(1.0, run=1), a_sample(0.0, run=2, policy="planner@2"))
    with pytest.raises(MixedPolicies, match="planner@1 and planner@2"):
        seen_by(a_chain(), [mixed])


def test_completions_that_no_role_could_use_are_trained_only_when_asked() -> None:
    sample = a_sample(0.0, ((2,), (3,)), fractures=["root", "rejected"])
    groups = [a_group(sample, a_sample(1.0, run=2))]
    assert a_step(a_chain(), groups).batch.row_fracture == ("root", "root")
    shown = a_chain(view={"name": "policy-turns", "rejected": True})
    assert a_step(shown, groups).batch.row_fracture == ("root", "rejected", "root")


def test_only_the_roles_that_were_named_are_trained() -> None:
    rows = (a_row(run=1), a_row(run=1, segment=1, role="writer", first=2))
    groups = [a_group(Sample(rows[0].episode, rows), a_sample(0.0, run=2))]
    ready = a_step(a_chain(view={"name": "policy-turns", "roles": ["writer"]}), groups)
    assert ready.batch.row == (f"{run(1)}/1/0",)


def test_rows_without_a_gradient_are_not_forwarded_and_still_count() -> None:
    groups = [rewarded([1.0, 0.0]), rewarded([1.0, 1.0], key="g2", first=5)]
    ready = a_step(a_chain(), groups)
    assert (len(ready.live_rows), ready.batch.rows) == (2, 4)
    assert ready.weights[0].tolist() == pytest.approx([1 / 12] * 12)
    assert len(ready.rows_of(0)) == 2
    held = a_step(a_chain(regularise=[{"name": "entropy"}]), groups)
    assert len(held.rows_of(0)) == 4


def test_rows_that_a_critic_is_asked_about_are_forwarded_without_an_advantage_too() -> None:
    chain = a_custom_chain(COUNTING, advantage={"name": "counting"}, modifiers=[{"name": "nothing"}])
    assert len(a_step(chain, [rewarded([1.0, 0.0])]).rows_of(0)) == 2


def test_modifiers_change_credit_one_after_the_other() -> None:
    chain = a_custom_chain(advantage={"name": "constant"}, modifiers=[{"name": "plus-one"}, {"name": "twice"}])
    assert a_step(chain, [rewarded([1.0])]).advantage.tolist() == [4.0] * 3


def test_a_step_without_groups_is_no_step() -> None:
    for name in RECIPES:
        ready = a_step(a_recipe(name), [])
        assert (ready.batch.tokens, ready.steps, ready.fates) == (0, (), {})
        assert all(np.isfinite(value) for value in ready.figures.values())


# Anchors ----------------------------------------------------------------------------------------------------------


def test_in_bypass_form_the_anchor_is_what_was_sampled() -> None:
    chain, groups = a_chain(), random_groups(1)
    ready = a_step(chain, groups)
    tally = Tally()
    derived(chain, ready, ready.batch.only(ready.live).behaviour, tally=tally)
    figures = tally.figures()
    assert (figures["ratio"], figures["ess"], figures["kl"]) == pytest.approx((1.0, 1.0, 0.0), abs=1e-6)
    assert (figures["clip_low"], figures["clip_high"]) == (0, 0)


def test_in_decoupled_form_the_anchor_is_computed_and_behaviour_becomes_a_weight() -> None:
    chain = a_chain(weight=[{"name": "token-mean"}, {"name": "truncated-importance", "high": 1.5}])
    how, groups = LearnerConfig(mode="decoupled"), [rewarded([1.0, 0.0])]
    seen = seen_by(chain, groups)
    chosen = prepared(chain, seen, {}, np.random.default_rng(0), learner=how)
    anchor = chosen.batch.behaviour + np.array([0.0, 0.1, 0.2, -0.3, 0.7, 0.0])
    ready = measured(chain, chosen, {"logp_old": anchor})
    assert (ready.weights[0] * 6).tolist() == pytest.approx([1, np.exp(0.1), np.exp(0.2), np.exp(-0.3), 1.5, 1])
    found = derived(chain, ready, anchor)
    assert found.dlogp.tolist() == pytest.approx((-ready.weights[0] * ready.advantage).tolist())


def test_rows_that_are_not_forwarded_weigh_as_if_nothing_had_changed() -> None:
    chain = a_chain(weight=[{"name": "token-mean"}, {"name": "truncated-importance"}])
    groups = [rewarded([1.0, 0.0]), rewarded([1.0, 1.0], key="g2", first=5)]
    ready = a_step(chain, groups, by=0.3, mode="decoupled")
    assert ready.weights[0][6:].tolist() == pytest.approx([1 / 12] * 6)
    assert ready.weights[0][:6].tolist() != pytest.approx([1 / 12] * 6, abs=1e-4)


def test_columns_that_are_missing_are_refused() -> None:
    chain = a_chain(regularise=[{"name": "kl-ref"}])
    chosen = prepared(chain, seen_by(chain, random_groups(1)), {}, np.random.default_rng(0))
    with pytest.raises(InvalidInput, match="logp_ref is needed"):
        measured(chain, chosen, {})


def test_rows_that_do_not_say_how_likely_they_were_are_refused_where_it_matters() -> None:
    unknown = a_sample(1.0, run=1, logprobs=[np.nan, -1.0, -1.0])
    groups = [a_group(unknown, a_sample(0.0, run=2))]
    with pytest.raises(InvalidInput, match="behaviour as sampled, which 1 rows do not have"):
        a_step(a_chain(), groups)
    imitated = a_chain(advantage={"name": "constant"}, surrogate={"name": "cross-entropy"})
    assert a_step(imitated, groups).batch.rows == 2


def test_facts_that_a_chain_needs_are_asked_for() -> None:
    chain = a_chain(reward={"name": "tool-efficiency"})
    with pytest.raises(InvalidInput, match="tool_calls of each rollout"):
        seen_by(chain, random_groups(1))
    groups = [rewarded([1.0, 0.0])]
    facts = {UUID(int=1): {"tool_calls": 3.0}, UUID(int=2): {"tool_calls": 1.0}}
    seen = viewed(chain, groups, {}, np.random.default_rng(0), facts=facts)
    assert seen.batch.facts["tool_calls"].tolist() == [3, 1]


# Segments that were edited -----------------------------------------------------------------------------------------


def test_without_an_edit_dcpo_is_grpo_bit_for_bit() -> None:
    groups = [rewarded([1.0, 0.0, 0.0, 1.0], [((3, 2),)] * 4)]
    dcpo = a_step(a_recipe("dcpo", select=[], regularise=[]), groups)
    grpo = a_step(a_recipe("grpo", regularise=[]), groups)
    assert (dcpo.advantage == grpo.advantage).all()
    assert (dcpo.weights[0] == grpo.weights[0]).all()


def edited() -> Group:
    """A rollout of three turns; before the third its memory was edited: the first turn's words are in its prompt."""
    before = packed(((1, 2), (10, 11)), ((3,), (12, 13)), head=SegmentHead(0, "agent", "root"))
    after = packed(((1, 2, 10, 11, 4), (14, 15)), head=SegmentHead(1, "agent", "memory_edit"))
    samples: list[Sample] = []
    for nth in (1, 2):
        episode = an_episode(run=UUID(int=nth), reward=float(nth - 1))
        samples.append(Sample(episode, tuple(row for part in (before, after) for row in merged(episode, part))))
    return a_group(*samples)


def test_every_sampled_token_is_trained_exactly_once_and_no_context_ever() -> None:
    ready = a_step(a_recipe("dcpo", select=[]), [edited()])
    for rollout in (0, 1):
        mine = ready.batch.token_id[ready.batch.token_rollout == rollout]
        assert mine.tolist() == [10, 11, 12, 13, 14, 15]


def test_as_released_the_last_segment_trains_again_what_it_keeps() -> None:
    chain = a_chain(view={"name": "surviving"})
    with pytest.raises(InvalidInput, match="behaviour as sampled, which 2 rows do not have"):
        a_step(chain, [edited()])
    ready = a_step(chain, [edited()], mode="decoupled")
    assert ready.batch.token_id[ready.batch.token_rollout == 0].tolist() == [10, 11, 12, 13, 10, 11, 14, 15]


def test_the_gradient_of_the_parts_is_that_of_the_whole_episode() -> None:
    """SUPO's theorem 3.2: a token's log-probability counts once, whichever span it is in."""
    chain = a_chain(advantage={"name": "constant"}, surrogate={"name": "reinforce"}, weight={"name": "row-sum"})
    ready = a_step(chain, [edited()])
    found = derived(chain, ready, ready.batch.behaviour)
    assert (found.dlogp * ready.batch.rows).tolist() == pytest.approx([-1.0] * 12)


# State and critics ------------------------------------------------------------------------------------------------


def counting(options: Options, given: AdvantageGiven) -> tuple[Advantage, State]:
    known = int(given.state.get("count", {}).get("steps", 0))
    targets = {"value": np.arange(given.batch.turns, dtype=np.float64)}
    return Advantage(np.ones(given.batch.tokens), targets), {"count": {"steps": known + 1}}


def surveyed(options: Options, given: SurveyGiven) -> State:
    return {"seen": {"rows": int(given.state.get("seen", {}).get("rows", 0)) + given.batch.rows}}


def remembering(options: Options, given: GroupsGiven) -> tuple[Sequence[Group], State]:
    return given.groups, {"met": {"groups": int(given.state.get("met", {}).get("groups", 0)) + len(given.groups)}}


MODIFIERS: Mapping[str, Callable[[Options, AdvantageGiven, Floats], Floats]] = {
    "nothing": lambda options, given, token: 0 * token,
    "plus-one": lambda options, given, token: token + 1,
    "twice": lambda options, given, token: token * 2,
}


def a_custom_chain(*plugins: Plugin, **seams: Any) -> Chain:
    modifiers = [Plugin(name, Seam.MODIFIER, "a test", apply) for name, apply in MODIFIERS.items()]
    catalogue = by_name((*built_in(), *plugins, *modifiers))
    plain = {"advantage": {"name": "group-z"}, "weight": {"name": "token-mean"}, "surrogate": {"name": "reinforce"}}
    return chain_of(ChainConfig.model_validate(plain | seams), catalogue)


COUNTING = Plugin("counting", Seam.ADVANTAGE, "a test", counting, state=frozenset({"count"}))


def test_what_a_plugin_remembers_is_given_to_it_at_the_next_step() -> None:
    chain = a_custom_chain(COUNTING, advantage={"name": "counting"})
    state: Mapping[str, Any] = {"other": {"kept": True}}
    for _ in range(2):
        seen = viewed(chain, [rewarded([1.0, 0.0])], state, np.random.default_rng(0))
        state = measured(chain, prepared(chain, seen, {}, np.random.default_rng(0)), {}).state
    assert state == {"other": {"kept": True}, "count": {"steps": 2}}
    assert chain.tables == {"count"}


def test_selections_of_groups_remember_one_after_the_other() -> None:
    met = Plugin("met", Seam.SELECT, "a test", remembering, stage="groups", state=frozenset({"met"}))
    chain = a_custom_chain(met, select=[{"name": "met"}, {"name": "met"}])
    assert a_step(chain, [rewarded([1.0, 0.0])]).state == {"met": {"groups": 2}}


def test_a_survey_sees_each_optimiser_step_before_its_loss_does() -> None:
    entropy = by_name(built_in())[Seam.REGULARISE, "entropy"]
    watcher = Plugin("watcher", Seam.REGULARISE, "a test", entropy.apply, survey=surveyed, state=frozenset({"seen"}))
    chain = a_custom_chain(watcher, regularise=[{"name": "watcher"}])
    ready = a_step(chain, [rewarded([1.0, 0.0, 1.0, 0.0])], minibatches=2)
    assert [state["seen"]["rows"] for state in ready.surveyed] == [2, 4]
    assert ready.state["seen"] == {"rows": 4}


def test_critics_are_asked_for_their_targets_turn_by_turn_in_any_cut() -> None:
    chain = a_custom_chain(COUNTING, advantage={"name": "counting"})
    ready = a_step(chain, [rewarded([1.0, 0.0], [((2, 1), (1,)), ((3,),)])])
    said = np.array([0.5, 0.0, 2.0, 9.0])  # turns row after row; their targets are 0, 1, 2, 3

    def slopes(cut: list[list[int]], turns: list[list[int]]) -> list[float]:
        found: list[float] = []
        loss = loss_of(chain, ready, 0)
        for rows, mine in zip(cut, turns, strict=True):
            tokens = ready.batch.tokens_of(np.array(rows))
            forwarded = Forwarded(ready.batch.behaviour[tokens], np.ones(len(tokens)), {"value": said[mine]})
            found += loss(np.array(rows), forwarded).dvalues["value"].tolist()
        return found

    expected = [0.125, -0.25, 0.0, 1.5]
    assert slopes([[0, 1, 2]], [[0, 1, 2, 3]]) == pytest.approx(expected)
    assert slopes([[0], [1, 2]], [[0, 1], [2, 3]]) == pytest.approx(expected)


# Figures ----------------------------------------------------------------------------------------------------------


def test_figures_say_what_a_step_was() -> None:
    groups = [rewarded([1.0, 0.0]), rewarded([0.0, 0.0], key="g2", first=5)]
    figures = a_step(a_chain(), groups).figures
    expected = {
        "groups": 2, "rollouts": 4, "zero_variance": 0.5, "reward": 0.25, "success": 0.25,
        "rows": 4, "tokens": 12, "turns": 4, "advantage_small": 0.5, "advantage_below_-0.5": 0.25,
        "advantage_below_1": 0.25, "advantage_mean": 0,
    }  # fmt: skip
    assert {name: figures[name] for name in expected} == pytest.approx(expected)
    bars = [value for name, value in figures.items() if name.startswith(("advantage_below", "advantage_from"))]
    assert sum(bars) == pytest.approx(1)


def test_figures_of_the_loss_are_the_same_in_any_cut() -> None:
    chain = a_recipe("flow-grpo")
    ready = a_step(chain, random_groups(3), by=0.2)
    logp, found = drifted(ready.batch, 5, 0.3), list[dict[str, float]]()
    for cut in (all_at_once, in_parts):
        tally, loss = Tally(), None
        loss = loss_of(chain, ready, 0, tally)
        for part in cut(ready.batch.rows):
            tokens = ready.batch.tokens_of(part)
            loss(part, Forwarded(logp[tokens], np.ones(len(tokens))))
        found.append(tally.figures())
    assert found[0] == pytest.approx(found[1])
    known = found[0]
    ratio = np.exp(logp - ready.batch.behaviour)
    assert known["ratio"] == pytest.approx(ratio.mean())
    assert (known["ratio_min"], known["ratio_max"]) == pytest.approx((ratio.min(), ratio.max()))
    assert known["ess"] == pytest.approx(ratio.sum() ** 2 / (ratio**2).sum() / len(ratio))
    assert known["kl"] == pytest.approx((ratio - 1 - np.log(ratio)).mean())
    assert known["kl_ref"] > 0
    assert known["loss"] == pytest.approx(known["loss_ppo-clip"] + 0.001 * known["loss_kl-ref"])


def test_plugins_that_keep_nothing_change_no_state() -> None:
    assert no_state() == {}
    assert a_step(a_chain(), [rewarded([1.0, 0.0])]).state == {}


def test_a_replayed_rollout_is_not_decided_on_again() -> None:
    again = a_group(a_sample(1.0, run=1, policy="planner@0", replayed=True), a_sample(0.0, run=2))
    ready = a_step(a_chain(), [again])
    assert ready.batch.rows == 2
    assert ready.fates == {run(2): "kept"}
