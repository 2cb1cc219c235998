"""What every plug-in must hold to, by walking the catalogue: a new one is tried as soon as it is there.

Each is put into the plainest chain that can have it. Columns, and what weights say, are made of the names of rows,
turns and rollouts, so that they are the same wherever a row lies.
"""

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar

import numpy as np
import pytest

from offing.core.rows import TrainRow
from offing_trainer.batch import Batch, Floats, Group, MixedPolicies, Places, batch_of
from offing_trainer.catalogue import built_in
from offing_trainer.chain import FACT, Chain, needed_columns
from offing_trainer.config import LearnerConfig
from offing_trainer.learner.contract import Derivatives, Forwarded
from offing_trainer.seam import (
    COLUMNS,
    SINGLE,
    AdvantageGiven,
    GroupsGiven,
    Plugin,
    RewardGiven,
    Rewards,
    RowsGiven,
    Seam,
    State,
    WeightGiven,
)
from offing_trainer.update import Prepared, a_token, loss_of, measured, prepared, viewed
from tests.trainer.builders import a_chain, a_group, a_sample, random_groups, rewarded, slope

EVERY = built_in()

NAMES = {Seam.MODIFIER: "modifiers"}

Options = Mapping[str, Any]

T = TypeVar("T")

IDENTITY: Mapping[str, Options] = {
    "outcome": {},
    "violation": {"outcomes": ()},
    "keep-penalty": {"keep": 0, "drift": 0},
    "successes": {"least": -1.0},
    "success-replay": {"mean_below": -1.0},
    "learning-potential": {"keep": 1000},
    "rollout-sample": {"count": 1000},
    "dp-multiple": {"size": 1},
    "overlong": {"outcomes": ()},
    "max-variance": {"share": 1.0},
    "entropy-modulated": {"k": 0, "zeta": 0, "centre": False},
    "top-tokens": {"share": 1.0},
    "truncated-importance": {},
}
"""Options with which a plug-in gives back what it was given, where nothing has moved."""

NO_IDENTITY: Mapping[str, str] = {
    "geometric": "pays turns in place of rollouts",
    "info-gain": "pays turns in place of rollouts",
    "tool-efficiency": "keeps a reward only at the least cost",
    "informative": "is one choice",
    "informed": "is one choice",
    "segment-sample": "always draws its count",
    **dict.fromkeys(
        ("token-mean", "row-mean", "row-sum", "rollout-mean", "rollout-turn-token", "segment-sum"),
        "is an averaging rule, of which there is always one",
    ),
}

ACTIVE: Mapping[str, Options] = {
    "outcome": {"threshold": 0.5},
    "row-sum": {"length": 7.0},
    "dp-multiple": {"size": 5},
    "informed": {"epsilon": 0.5},
    "segment-sample": {"count": 3},
    "successes": {"least": 0.5},
    "learning-potential": {"keep": 2},
    "rollout-sample": {"count": 2},
}
"""Options with which a plug-in does something to the groups of this page, where its defaults do not."""

named = pytest.mark.parametrize("plugin", EVERY, ids=lambda plugin: f"{plugin.seam}-{plugin.name}")


def with_it(plugin: Plugin, options: Options | None = None, **asked: Any) -> Chain:
    """`asked`: beside the plug-in's options, such as a regulariser's coefficient."""
    entry = {"name": plugin.name, **(ACTIVE.get(plugin.name, {}) if options is None else options), **asked}
    seam = NAMES.get(plugin.seam, str(plugin.seam))
    return a_chain(**{seam: entry if plugin.seam in SINGLE else [entry]})


def mixed_groups(seed: int = 5) -> list[Group]:
    groups = random_groups(seed, 4, 4, reward=lambda rng: float(rng.choice([0.0, 0.4, 1.0])))
    return [*groups, *_with_rows([rewarded([0.0, 0.0], key="g9", first=91)], _unsure)]


def _with_rows(groups: Sequence[Group], changed: Callable[[TrainRow], TrainRow]) -> list[Group]:
    return [replace(g, samples=tuple(replace(s, rows=tuple(map(changed, s.rows))) for s in g.samples)) for g in groups]


def mixed_up(items: Sequence[T], rng: np.random.Generator) -> tuple[T, ...]:
    order: list[int] = rng.permutation(len(items)).tolist()
    return tuple(items[n] for n in order)


def made_of(what: str, key: str, count: int) -> Floats:
    return np.random.default_rng(zlib.crc32(f"{what} {key}".encode())).normal(size=count)


def column(batch: Batch, name: str) -> Floats:
    if a_token(name):
        return spoken(batch.row, np.bincount(batch.token_row, minlength=batch.rows), batch.behaviour, name)
    if COLUMNS[name].startswith("(R,)"):
        return np.array([-abs(made_of(name, run, 1)[0]) for run in batch.rollout])
    keys = [f"{batch.rollout[r]} {s}" for r, s in zip(batch.turn_rollout, batch.turn_seq, strict=True)]
    return np.array([-abs(made_of(name, key, 1)[0]) for key in keys])


def spoken(rows: Sequence[str], counts: Places, behaviour: Floats, name: str) -> Floats:
    """Log-probabilities that have moved from those that were sampled."""
    moved = [0.2 * made_of(name, row, int(count)) for row, count in zip(rows, counts, strict=True)]
    return np.minimum(behaviour + np.concatenate([np.empty(0), *moved]), -1e-3)


def forwarded(rows: Sequence[TrainRow], heads: Sequence[str]) -> Forwarded:
    keys, counts = [row.key for row in rows], np.array([row.loss_mask.sum() for row in rows], np.int64)
    behaviour = np.concatenate(
        [np.empty(0), *(row.behaviour_logprobs[row.loss_mask].astype(np.float64) for row in rows)]
    )
    entropy = [3 * np.abs(made_of("entropy", key, int(n))) for key, n in zip(keys, counts, strict=True)]
    values = {
        head: np.concatenate([np.empty(0), *(made_of(head, row.key, len(row.turns)) for row in rows)]) for head in heads
    }
    return Forwarded(spoken(keys, counts, behaviour, "now"), np.concatenate([np.empty(0), *entropy]), values)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One step of training, up to its derivatives."""

    chain: Chain
    ready: Prepared
    value: float
    by_row: Mapping[str, Floats]
    """Derivatives of a row's tokens, and of their entropies and values behind them."""

    @property
    def state(self) -> State:
        return self.ready.state


def a_step(chain: Chain, groups: Sequence[Group], state: State | None = None, seed: int = 7, cut: int = 0) -> Step:
    """`cut`: how many parts its rows are forwarded in. 0: all together."""
    rng = np.random.default_rng(seed)
    runs = [sample.episode.run for group in groups for sample in group.samples]
    facts = {run: {name: float(abs(made_of(name, str(run), 1)[0])) for name in chain.facts} for run in runs}
    seen = viewed(chain, groups, state or {}, rng, facts=facts)
    how = LearnerConfig(mode="decoupled")
    needed = needed_columns(chain, how.mode)
    early = {name: column(seen.batch, name) for name in needed.early}
    chosen = prepared(chain, seen, early, rng, progress=0.3, learner=how)
    live = chosen.batch.only(chosen.live)
    ready = measured(chain, chosen, {name: column(live, name) for name in needed.late})
    return _derived(chain, ready, cut)


def _derived(chain: Chain, ready: Prepared, cut: int) -> Step:
    value, by_row = 0.0, dict[str, Floats]()
    for nth in range(len(ready.steps)):
        rows, loss = ready.rows_of(nth), loss_of(chain, ready, nth)
        for part in _parts(len(rows), cut):
            mine = [rows[int(n)] for n in part]
            found = loss(part, forwarded(mine, sorted(ready.targets)))
            value += found.value
            for row, derivatives in _told(mine, found).items():
                by_row[row] = by_row.get(row, 0.0) + derivatives
    return Step(chain, ready, value, by_row)


def _parts(rows: int, cut: int) -> list[Places]:
    order = np.random.default_rng(3).permutation(rows) if cut else np.arange(rows)
    return np.array_split(order, max(cut, 1))


def _told(rows: Sequence[TrainRow], found: Derivatives) -> dict[str, Floats]:
    tokens = np.cumsum([0, *(int(row.loss_mask.sum()) for row in rows)])
    turns = np.cumsum([0, *(len(row.turns) for row in rows)])
    dentropy = np.zeros(len(found.dlogp)) if found.dentropy is None else found.dentropy
    told: dict[str, Floats] = {}
    for nth, row in enumerate(rows):
        a, b = slice(tokens[nth], tokens[nth + 1]), slice(turns[nth], turns[nth + 1])
        parts = [found.dlogp[a], dentropy[a], *(found.dvalues[head][b] for head in sorted(found.dvalues))]
        told[row.key] = told.get(row.key, 0.0) + np.concatenate(parts)
    return told


def same(one: Step, other: Step, within: float = 1e-9) -> None:
    assert one.value == pytest.approx(other.value, rel=within, abs=within)
    for row in one.by_row.keys() | other.by_row.keys():
        size = max(step.by_row[row].size for step in (one, other) if row in step.by_row)
        here, there = (step.by_row.get(row, np.zeros(size)) for step in (one, other))
        np.testing.assert_allclose(here, there, rtol=within, atol=within, err_msg=row)


@cache
def plain_step() -> Step:
    return a_step(a_chain(), mixed_groups())


def test_every_plugin_has_an_identity_or_a_reason_why_not() -> None:
    whole = {p.name for p in EVERY if p.seam not in {*SINGLE, Seam.REGULARISE}}
    assert whole == IDENTITY.keys() | NO_IDENTITY.keys()
    assert not IDENTITY.keys() & NO_IDENTITY.keys()


@pytest.mark.parametrize("plugin", [p for p in EVERY if p.name in IDENTITY], ids=lambda plugin: plugin.name)
def test_an_identity_gives_back_what_it_was_given_bit_for_bit(plugin: Plugin) -> None:
    options, groups = plugin.options.model_validate(IDENTITY[plugin.name]), mixed_groups()
    batch, rng = batch_of(groups), np.random.default_rng(1)
    rewards = Rewards(batch.reward, made_of("paid", "turns", batch.turns))
    token = made_of("credit", "tokens", batch.tokens)
    columns = {"logp_old": batch.behaviour}
    if plugin.seam is Seam.REWARD:
        paid = plugin.apply(options, RewardGiven(batch, rewards, columns, {}))[0]
        assert (paid.rollout.tobytes(), paid.turn.tobytes()) == (rewards.rollout.tobytes(), rewards.turn.tobytes())
    elif plugin.seam is Seam.MODIFIER:
        given = AdvantageGiven(batch, rewards, columns, {})
        assert plugin.apply(options, given, token).tobytes() == token.tobytes()
    elif plugin.seam is Seam.WEIGHT:
        assert plugin.apply(options, WeightGiven(batch, token, columns, 0.3)).tolist() == [1.0] * batch.tokens
    elif plugin.stage == "groups":
        kept = plugin.apply(options, GroupsGiven(groups, {}, rng))[0]
        assert [group.samples for group in kept] == [group.samples for group in groups]
    else:
        rows = plugin.apply(options, RowsGiven(batch, rewards, token, 0.3, {}, rng))[0]
        assert rows.tolist() == list(range(batch.rows))


@pytest.mark.parametrize("plugin", [p for p in EVERY if p.seam is Seam.REGULARISE], ids=lambda plugin: plugin.name)
def test_a_regulariser_without_a_coefficient_changes_nothing(plugin: Plugin) -> None:
    groups = mixed_groups()
    found = a_step(with_it(plugin, coefficient=0.0), groups)
    same(found, plain_step(), within=0.0)


@named
def test_the_order_of_groups_rollouts_and_rows_decides_nothing(plugin: Plugin) -> None:
    if plugin.draws:
        pytest.skip("what is drawn is drawn by place")
    groups, rng = mixed_groups(), np.random.default_rng(11)
    shuffled = [
        replace(g, samples=tuple(replace(s, rows=mixed_up(s.rows, rng)) for s in mixed_up(g.samples, rng)))
        for g in mixed_up(groups, rng)
    ]
    chain = with_it(plugin)
    first, second = a_step(chain, groups), a_step(chain, shuffled)
    same(first, second)
    same(a_step(chain, groups, first.state), a_step(chain, shuffled, second.state))


@named
def test_how_rows_are_cut_for_memory_decides_nothing(plugin: Plugin) -> None:
    chain, groups = with_it(plugin), mixed_groups()
    whole = a_step(chain, groups)
    for cut in (3, 1000):
        same(a_step(chain, groups, cut=cut), whole)


@named
def test_context_and_padding_have_no_part_in_a_loss(plugin: Plugin) -> None:
    groups = mixed_groups()
    longer = _with_rows(groups, _padded)
    chain = with_it(plugin)
    same(a_step(chain, groups), a_step(chain, longer), within=0.0)


def _padded(row: TrainRow) -> TrainRow:
    """With tokens in front and behind that nobody sampled."""

    def put(values: Any, filler: Any) -> Any:
        return np.concatenate([np.full(3, filler, values.dtype), values, np.full(4, filler, values.dtype)])

    return replace(
        row,
        token_ids=put(row.token_ids, 1),
        loss_mask=put(row.loss_mask, False),
        behaviour_logprobs=put(row.behaviour_logprobs, 0),
        entropy=put(row.entropy, np.nan),
        turn_index=put(row.turn_index, 0),
        span_kind=put(row.span_kind, -1),
    )


DEGENERATE: Mapping[str, list[Group]] = {
    "no groups": [],
    "one rollout": [rewarded([1.0])],
    "one rollout without tokens": [a_group(a_sample(1.0, ()))],
    "uniform rewards": [rewarded([1.0, 1.0, 1.0]), rewarded([0.0, 0.0], key="g2", first=11)],
    "all cut off": [a_group(*(a_sample(0.0, run=run, outcome="truncated") for run in (1, 2)))],
    "all violated": [a_group(*(a_sample(0.0, run=run, outcome="violated") for run in (1, 2)))],
    "one token": [rewarded([1.0, 0.0], [((1,),), ((1,),)])],
}


def _sure(row: TrainRow) -> TrainRow:
    """With entropies, which are all the same."""
    return replace(row, entropy=np.where(row.loss_mask, np.float32(0.5), np.float32(np.nan)))


@named
@pytest.mark.parametrize("case", DEGENERATE)
def test_a_degenerate_batch_gives_finite_numbers(plugin: Plugin, case: str) -> None:
    chain, groups = with_it(plugin), _with_rows(DEGENERATE[case], _sure)
    first = a_step(chain, groups)
    for step in (first, a_step(chain, groups, first.state)):
        assert np.isfinite(step.value)
        assert all(np.isfinite(derivatives).all() for derivatives in step.by_row.values())
        assert all(np.isfinite(weight).all() and (weight >= 0).all() for weight in step.ready.weights)
        assert np.isfinite(step.ready.advantage).all()
        json.dumps(step.state, allow_nan=False)


@named
def test_the_same_seed_gives_the_same_bytes(plugin: Plugin) -> None:
    chain = with_it(plugin)
    one, other = a_step(chain, mixed_groups()), a_step(chain, mixed_groups())
    assert one.value == other.value
    assert {row: found.tobytes() for row, found in one.by_row.items()} == {
        row: found.tobytes() for row, found in other.by_row.items()
    }
    assert json.dumps(one.state, sort_keys=True) == json.dumps(other.state, sort_keys=True)


@named
def test_state_may_go_through_the_store_between_steps(plugin: Plugin) -> None:
    chain, state = with_it(plugin), a_step(with_it(plugin), mixed_groups(4)).state
    assert plugin.state <= chain.tables
    assert set(state) <= plugin.state
    stored = json.loads(json.dumps(state, allow_nan=False))
    kept, brought = (a_step(chain, mixed_groups(), which) for which in (state, stored))
    same(kept, brought, within=0.0)
    assert json.dumps(kept.state, sort_keys=True) == json.dumps(brought.state, sort_keys=True)


@named
def test_what_is_given_is_left_as_it_is(plugin: Plugin) -> None:
    chain, groups = with_it(plugin), mixed_groups()
    state = a_step(chain, groups).state
    before, kept = json.dumps(state, sort_keys=True), batch_of(groups)
    a_step(chain, groups, state)
    assert json.dumps(state, sort_keys=True) == before
    assert batch_of(groups).behaviour.tobytes() == kept.behaviour.tobytes()


WITHOUT_EFFECT: Mapping[str, str] = {
    "policy-turns": "is the view of the plainest chain",
    "group-z": "is its advantage",
    "token-mean": "is its weight",
    "ppo-clip": "is its surrogate",
    "surviving": "finds nothing here that was said before; it is tried by itself",
    "success-replay": "has nothing stored here; it is tried by itself",
}


@named
def test_it_does_something_where_it_is_active(plugin: Plugin) -> None:
    """Of a term this is a gradient that is not 0: a penalty that is a constant would have none."""
    if plugin.name in WITHOUT_EFFECT:
        pytest.skip(WITHOUT_EFFECT[plugin.name])
    groups, chain = mixed_groups(), with_it(plugin)
    found, plain = a_step(chain, groups, a_step(chain, mixed_groups(4)).state), plain_step()
    shared = found.by_row.keys() & plain.by_row.keys()
    apart = [
        found.by_row[row][: plain.by_row[row].size] - plain.by_row[row][: found.by_row[row].size] for row in shared
    ]
    assert found.by_row.keys() != plain.by_row.keys() or max(np.abs(each).max() for each in apart) > 1e-6


@pytest.mark.parametrize(
    "plugin", [p for p in EVERY if p.seam in {Seam.SURROGATE, Seam.REGULARISE}], ids=lambda plugin: plugin.name
)
def test_derivatives_are_those_of_the_value(plugin: Plugin) -> None:
    groups = [rewarded([1.0, 0.4, 0.0], [((3,), (2, 2)), ((4,),), ((2, 3),)])]
    groups = _with_rows(groups, _unsure)
    chain = with_it(plugin)
    ready = a_step(chain, groups, a_step(chain, groups).state).ready
    rows, loss = ready.rows_of(0), loss_of(chain, ready, 0)
    said, places = forwarded(rows, ()), np.arange(len(rows))
    found = loss(places, said)
    by_logp = slope(lambda at: loss(places, replace(said, logp=at)).value, said.logp)
    by_entropy = slope(lambda at: loss(places, replace(said, entropy=at)).value, said.entropy)
    np.testing.assert_allclose(found.dlogp, by_logp, atol=1e-6)
    np.testing.assert_allclose(
        np.zeros(len(by_logp)) if found.dentropy is None else found.dentropy, by_entropy, atol=1e-6
    )
    assert np.abs(found.dlogp).max() > 0


def _unsure(row: TrainRow) -> TrainRow:
    entropy = np.abs(made_of("sampled", row.key, len(row))).astype(np.float32)
    return replace(row, entropy=np.where(row.loss_mask, entropy, np.float32(np.nan)))


@named
def test_a_group_of_two_policies_is_refused(plugin: Plugin) -> None:
    samples = [
        a_sample(reward, run=run, policy=f"planner@{version}", turns={"policy": (f"planner@{version}",)})
        for run, (reward, version) in enumerate([(1.0, 1), (0.0, 1), (1.0, 2), (0.0, 2)], 1)
    ]
    with pytest.raises(MixedPolicies, match="planner@1 and planner@2"):
        a_step(with_it(plugin, {}), _with_rows([a_group(*samples)], _sure))


@named
def test_what_it_needs_has_a_name_that_somebody_can_give(plugin: Plugin) -> None:
    chain = with_it(plugin)
    needs = frozenset[str]().union(*(link.needs for link in chain.links))
    assert all(name in {*COLUMNS, "behaviour", "entropy"} or name.startswith(FACT) for name in needs)
    assert plugin.source
