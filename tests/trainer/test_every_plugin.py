"""What every plug-in must fulfill. The tests walk the registry, so they include each new plug-in.

Each is put into the plainest pipeline that can have it. Columns, and what weights say, are made of the names of rows,
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

from offing.core.training_rows import TrainingRow
from offing_trainer.batch import Floats, Indices, MixedPoliciesError, RolloutGroup, TrainingBatch, build_training_batch
from offing_trainer.config import LearnerConfig
from offing_trainer.learner.contract import ForwardResult, LossGradients
from offing_trainer.pipeline import ROLLOUT_STATS_PREFIX, Pipeline, compute_required_columns
from offing_trainer.plugin import (
    COLUMNS,
    SINGLE_KINDS,
    AdvantageInput,
    GroupSelectorInput,
    Plugin,
    PluginKind,
    PluginState,
    RewardInput,
    Rewards,
    RowSelectorInput,
    TokenWeightInput,
)
from offing_trainer.plugin_registry import PLUGINS
from offing_trainer.training_step import (
    PreparedStep,
    apply_view,
    build_loss,
    compute_advantages,
    compute_token_weights,
    is_per_token,
)
from tests.trainer.builders import a_group, a_pipeline, a_sample, random_groups, rewarded, slope

EVERY = tuple(PLUGINS.values())

NAMES = {kind: f"{kind}s" for kind in PluginKind if kind not in SINGLE_KINDS}

Options = Mapping[str, Any]

T = TypeVar("T")

IDENTITY: Mapping[str, Options] = {
    "outcome": {},
    "violation": {"outcomes": ()},
    "keep-penalty": {"keep_reward": 0, "changed_subgoal_reward": 0},
    "successes": {"min_reward": -1.0},
    "success-replay": {"mean_below": -1.0},
    "learning-potential": {"max_groups": 1000},
    "rollout-sample": {"max_rollouts": 1000},
    "dp-multiple": {"multiple": 1},
    "overlong": {"outcomes": ()},
    "max-variance": {"fraction": 1.0},
    "entropy-modulated": {"k": 0, "zeta": 0, "center": False},
    "invalid-action-penalty": {"penalty": 0},
    "top-tokens": {"fraction": 1.0},
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
    "row-sum": {"fixed_length": 7.0},
    "dp-multiple": {"multiple": 5},
    "informed": {"min_advantage": 0.5},
    "segment-sample": {"rows_per_group": 3},
    "successes": {"min_reward": 0.5},
    "learning-potential": {"max_groups": 2},
    "rollout-sample": {"max_rollouts": 2},
}
"""Options with which a plug-in does something to the groups of this page, where its defaults do not."""

named = pytest.mark.parametrize("plugin", EVERY, ids=lambda plugin: f"{plugin.kind}-{plugin.name}")


def with_it(plugin: Plugin, options: Options | None = None, **request: Any) -> Pipeline:
    """`asked`: beside the plug-in's options, such as a regularizer's coefficient."""
    entry = {"name": plugin.name, **(ACTIVE.get(plugin.name, {}) if options is None else options), **request}
    seam = NAMES.get(plugin.kind, str(plugin.kind))
    return a_pipeline(**{"view": _view_for(plugin), seam: entry if plugin.kind in SINGLE_KINDS else [entry]})


def _view_for(plugin: Plugin) -> Options:
    return {"name": "policy-turns", "include_rejected": plugin.needs_rejected}


def mixed_groups(seed: int = 5) -> list[RolloutGroup]:
    groups = random_groups(seed, 4, 4, reward=lambda rng: float(rng.choice([0.0, 0.4, 1.0])))
    violated = a_sample(0.0, ((2,), (3,)), run=81, outcome="violated", fractures=["root", "rejected"])
    others = [a_group(violated, a_sample(1.0, run=82), key="g8"), rewarded([0.0, 0.0], key="g9", first=91)]
    return [*groups, *_with_rows(others, _unsure)]


def _with_rows(groups: Sequence[RolloutGroup], changed: Callable[[TrainingRow], TrainingRow]) -> list[RolloutGroup]:
    return [
        replace(g, rollouts=tuple(replace(s, rows=tuple(map(changed, s.rows))) for s in g.rollouts)) for g in groups
    ]


def mixed_up(items: Sequence[T], rng: np.random.Generator) -> tuple[T, ...]:
    order: list[int] = rng.permutation(len(items)).tolist()
    return tuple(items[n] for n in order)


def column_values(what: str, key: str, count: int) -> Floats:
    return np.random.default_rng(zlib.crc32(f"{what} {key}".encode())).normal(size=count)


def column(batch: TrainingBatch, name: str) -> Floats:
    if is_per_token(name):
        return turn_texts(
            batch.row_keys, np.bincount(batch.token_row, minlength=batch.num_rows), batch.behavior_logprobs, name
        )
    if COLUMNS[name].startswith("(R,)"):
        return np.array([-abs(column_values(name, run, 1)[0]) for run in batch.run_ids])
    keys = [f"{batch.run_ids[r]} {s}" for r, s in zip(batch.turn_rollout, batch.turn_seq, strict=True)]
    return np.array([-abs(column_values(name, key, 1)[0]) for key in keys])


def turn_texts(rows: Sequence[str], counts: Indices, behavior: Floats, name: str) -> Floats:
    """Log-probabilities that have moved from those that were sampled."""
    moved = [0.2 * column_values(name, row, int(count)) for row, count in zip(rows, counts, strict=True)]
    return np.minimum(behavior + np.concatenate([np.empty(0), *moved]), -1e-3)


def forwarded(rows: Sequence[TrainingRow], heads: Sequence[str]) -> ForwardResult:
    keys, counts = [row.key for row in rows], np.array([row.loss_mask.sum() for row in rows], np.int64)
    behavior = np.concatenate([np.empty(0), *(row.behavior_logprobs[row.loss_mask].astype(np.float64) for row in rows)])
    entropy = [3 * np.abs(column_values("entropy", key, int(n))) for key, n in zip(keys, counts, strict=True)]
    values = {
        head: np.concatenate([np.empty(0), *(column_values(head, row.key, len(row.turns)) for row in rows)])
        for head in heads
    }
    return ForwardResult(turn_texts(keys, counts, behavior, "now"), np.concatenate([np.empty(0), *entropy]), values)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One step of training, up to its derivatives."""

    pipeline: Pipeline
    ready: PreparedStep
    value: float
    by_row: Mapping[str, Floats]
    """Derivatives of a row's tokens, and of their entropies and values behind them."""

    @property
    def state(self) -> PluginState:
        return self.ready.state


def a_step(
    pipeline: Pipeline, groups: Sequence[RolloutGroup], state: PluginState | None = None, seed: int = 7, cut: int = 0
) -> Step:
    """`cut`: how many parts its rows are forwarded in. 0: all together."""
    rng = np.random.default_rng(seed)
    runs = [sample.metadata.run_id for group in groups for sample in group.rollouts]
    facts = {
        run: {name: float(abs(column_values(name, str(run), 1)[0])) for name in pipeline.required_stats} for run in runs
    }
    seen = apply_view(pipeline, groups, state or {}, rng, rollout_stats=facts)
    how = LearnerConfig(mode="decoupled")
    needed = compute_required_columns(pipeline, how.mode)
    early = {name: column(seen.batch, name) for name in needed.before_selection}
    chosen = compute_advantages(pipeline, seen, early, rng, progress=0.3, learner_config=how)
    live = chosen.batch.select_rows(chosen.active_rows)
    ready = compute_token_weights(pipeline, chosen, {name: column(live, name) for name in needed.after_selection})
    return _derived(pipeline, ready, cut)


def _derived(pipeline: Pipeline, ready: PreparedStep, cut: int) -> Step:
    value, by_row = 0.0, dict[str, Floats]()
    for nth in range(len(ready.optimizer_steps)):
        rows, loss = ready.step_rows(nth), build_loss(pipeline, ready, nth)
        for part in _parts(len(rows), cut):
            mine = [rows[int(n)] for n in part]
            result = loss(part, forwarded(mine, sorted(ready.value_targets)))
            value += result.value
            for row, derivatives in _by_row(mine, result).items():
                by_row[row] = by_row.get(row, 0.0) + derivatives
    return Step(pipeline, ready, value, by_row)


def _parts(rows: int, cut: int) -> list[Indices]:
    order = np.random.default_rng(3).permutation(rows) if cut else np.arange(rows)
    return np.array_split(order, max(cut, 1))


def _by_row(rows: Sequence[TrainingRow], result: LossGradients) -> dict[str, Floats]:
    tokens = np.cumsum([0, *(int(row.loss_mask.sum()) for row in rows)])
    turns = np.cumsum([0, *(len(row.turns) for row in rows)])
    entropy_grads = np.zeros(len(result.logprob_grads)) if result.entropy_grads is None else result.entropy_grads
    messages: dict[str, Floats] = {}
    for nth, row in enumerate(rows):
        a, b = slice(tokens[nth], tokens[nth + 1]), slice(turns[nth], turns[nth + 1])
        parts = [
            result.logprob_grads[a],
            entropy_grads[a],
            *(result.value_grads[head][b] for head in sorted(result.value_grads)),
        ]
        messages[row.key] = messages.get(row.key, 0.0) + np.concatenate(parts)
    return messages


def same(one: Step, other: Step, within: float = 1e-9) -> None:
    assert one.value == pytest.approx(other.value, rel=within, abs=within)
    for row in one.by_row.keys() | other.by_row.keys():
        size = max(step.by_row[row].size for step in (one, other) if row in step.by_row)
        here, there = (step.by_row.get(row, np.zeros(size)) for step in (one, other))
        np.testing.assert_allclose(here, there, rtol=within, atol=within, err_msg=row)


@cache
def plain_step() -> Step:
    return a_step(a_pipeline(), mixed_groups())


def test_every_plugin_has_an_identity_or_a_reason_why_not() -> None:
    whole = {p.name for p in EVERY if p.kind not in {*SINGLE_KINDS, PluginKind.REGULARIZER}}
    assert whole == IDENTITY.keys() | NO_IDENTITY.keys()
    assert not IDENTITY.keys() & NO_IDENTITY.keys()


@pytest.mark.parametrize("plugin", [p for p in EVERY if p.name in IDENTITY], ids=lambda plugin: plugin.name)
def test_an_identity_gives_back_what_it_was_given_bit_for_bit(plugin: Plugin) -> None:
    options, groups = plugin.options.model_validate(IDENTITY[plugin.name]), mixed_groups()
    batch, rng = build_training_batch(groups), np.random.default_rng(1)
    rewards = Rewards(batch.reward, column_values("paid", "turns", batch.num_turns))
    token = column_values("credit", "tokens", batch.num_tokens)
    columns = {"old_logprobs": batch.behavior_logprobs}
    if plugin.kind is PluginKind.REWARD:
        paid = plugin.apply(options, RewardInput(batch, rewards, columns, {}))[0]
        assert (paid.rollout.tobytes(), paid.turn.tobytes()) == (rewards.rollout.tobytes(), rewards.turn.tobytes())
    elif plugin.kind is PluginKind.ADVANTAGE_MODIFIER:
        inputs = AdvantageInput(batch, rewards, columns, {})
        assert plugin.apply(options, inputs, token).tobytes() == token.tobytes()
    elif plugin.kind is PluginKind.TOKEN_WEIGHT:
        assert plugin.apply(options, TokenWeightInput(batch, token, columns, 0.3)).tolist() == [1.0] * batch.num_tokens
    elif plugin.stage == "groups":
        stored = plugin.apply(options, GroupSelectorInput(groups, {}, rng))[0]
        assert [group.rollouts for group in stored] == [group.rollouts for group in groups]
    else:
        rows = plugin.apply(options, RowSelectorInput(batch, rewards, token, 0.3, {}, rng))[0]
        assert rows.tolist() == list(range(batch.num_rows))


@pytest.mark.parametrize(
    "plugin", [p for p in EVERY if p.kind is PluginKind.REGULARIZER], ids=lambda plugin: plugin.name
)
def test_a_regularizer_without_a_coefficient_changes_nothing(plugin: Plugin) -> None:
    groups = mixed_groups()
    step = a_step(with_it(plugin, coefficient=0.0), groups)
    same(step, plain_step(), within=0.0)


@named
def test_the_order_of_groups_rollouts_and_rows_decides_nothing(plugin: Plugin) -> None:
    if plugin.uses_rng:
        pytest.skip("what is drawn is drawn by place")
    groups, rng = mixed_groups(), np.random.default_rng(11)
    shuffled = [
        replace(g, rollouts=tuple(replace(s, rows=mixed_up(s.rows, rng)) for s in mixed_up(g.rollouts, rng)))
        for g in mixed_up(groups, rng)
    ]
    pipeline = with_it(plugin)
    first, second = a_step(pipeline, groups), a_step(pipeline, shuffled)
    same(first, second)
    same(a_step(pipeline, groups, first.state), a_step(pipeline, shuffled, second.state))


@named
def test_how_rows_are_cut_for_memory_decides_nothing(plugin: Plugin) -> None:
    pipeline, groups = with_it(plugin), mixed_groups()
    whole = a_step(pipeline, groups)
    for cut in (3, 1000):
        same(a_step(pipeline, groups, cut=cut), whole)


@named
def test_context_and_padding_have_no_part_in_a_loss(plugin: Plugin) -> None:
    groups = mixed_groups()
    longer = _with_rows(groups, _padded)
    pipeline = with_it(plugin)
    same(a_step(pipeline, groups), a_step(pipeline, longer), within=0.0)


def _padded(row: TrainingRow) -> TrainingRow:
    """With tokens in front and behind that nobody sampled."""

    def put(values: Any, filler: Any) -> Any:
        return np.concatenate([np.full(3, filler, values.dtype), values, np.full(4, filler, values.dtype)])

    return replace(
        row,
        token_ids=put(row.token_ids, 1),
        loss_mask=put(row.loss_mask, False),
        behavior_logprobs=put(row.behavior_logprobs, 0),
        entropy=put(row.entropy, np.nan),
        turn_index=put(row.turn_index, 0),
        span_kind=put(row.span_kind, -1),
    )


DEGENERATE: Mapping[str, list[RolloutGroup]] = {
    "no groups": [],
    "one rollout": [rewarded([1.0])],
    "one rollout without tokens": [a_group(a_sample(1.0, ()))],
    "uniform rewards": [rewarded([1.0, 1.0, 1.0]), rewarded([0.0, 0.0], key="g2", first=11)],
    "all cut off": [a_group(*(a_sample(0.0, run=run, outcome="truncated") for run in (1, 2)))],
    "all violated": [a_group(*(a_sample(0.0, run=run, outcome="violated") for run in (1, 2)))],
    "one token": [rewarded([1.0, 0.0], [((1,),), ((1,),)])],
}


def _sure(row: TrainingRow) -> TrainingRow:
    """With entropies, which are all the same."""
    return replace(row, entropy=np.where(row.loss_mask, np.float32(0.5), np.float32(np.nan)))


@named
@pytest.mark.parametrize("case", DEGENERATE)
def test_a_degenerate_batch_gives_finite_numbers(plugin: Plugin, case: str) -> None:
    pipeline, groups = with_it(plugin), _with_rows(DEGENERATE[case], _sure)
    first = a_step(pipeline, groups)
    for step in (first, a_step(pipeline, groups, first.state)):
        assert np.isfinite(step.value)
        assert all(np.isfinite(derivatives).all() for derivatives in step.by_row.values())
        assert all(np.isfinite(weight).all() and (weight >= 0).all() for weight in step.ready.token_weights)
        assert np.isfinite(step.ready.advantage).all()
        json.dumps(step.state, allow_nan=False)


@named
def test_the_same_seed_gives_the_same_bytes(plugin: Plugin) -> None:
    pipeline = with_it(plugin)
    one, other = a_step(pipeline, mixed_groups()), a_step(pipeline, mixed_groups())
    assert one.value == other.value
    assert {row: result.tobytes() for row, result in one.by_row.items()} == {
        row: result.tobytes() for row, result in other.by_row.items()
    }
    assert json.dumps(one.state, sort_keys=True) == json.dumps(other.state, sort_keys=True)


@named
def test_state_may_go_through_the_store_between_steps(plugin: Plugin) -> None:
    pipeline, state = with_it(plugin), a_step(with_it(plugin), mixed_groups(4)).state
    assert plugin.state_tables <= pipeline.state_tables
    assert set(state) <= plugin.state_tables
    stored = json.loads(json.dumps(state, allow_nan=False))
    remaining, brought = (a_step(pipeline, mixed_groups(), which) for which in (state, stored))
    same(remaining, brought, within=0.0)
    assert json.dumps(remaining.state, sort_keys=True) == json.dumps(brought.state, sort_keys=True)


@named
def test_what_is_given_is_left_as_it_is(plugin: Plugin) -> None:
    pipeline, groups = with_it(plugin), mixed_groups()
    state = a_step(pipeline, groups).state
    before, stored = json.dumps(state, sort_keys=True), build_training_batch(groups)
    a_step(pipeline, groups, state)
    assert json.dumps(state, sort_keys=True) == before
    assert build_training_batch(groups).behavior_logprobs.tobytes() == stored.behavior_logprobs.tobytes()


WITHOUT_EFFECT: Mapping[str, str] = {
    "policy-turns": "is the view of the plainest pipeline",
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
    groups, pipeline = mixed_groups(), with_it(plugin)
    step = a_step(pipeline, groups, a_step(pipeline, mixed_groups(4)).state)
    plain = a_step(a_pipeline(view=_view_for(plugin)), groups)
    shared = step.by_row.keys() & plain.by_row.keys()
    apart = [step.by_row[row][: plain.by_row[row].size] - plain.by_row[row][: step.by_row[row].size] for row in shared]
    assert step.by_row.keys() != plain.by_row.keys() or max(np.abs(each).max() for each in apart) > 1e-6


@pytest.mark.parametrize(
    "plugin",
    [p for p in EVERY if p.kind in {PluginKind.SURROGATE, PluginKind.REGULARIZER}],
    ids=lambda plugin: plugin.name,
)
def test_derivatives_are_those_of_the_value(plugin: Plugin) -> None:
    groups = [rewarded([1.0, 0.4, 0.0], [((3,), (2, 2)), ((4,),), ((2, 3),)])]
    groups = _with_rows(groups, _unsure)
    pipeline = with_it(plugin)
    ready = a_step(pipeline, groups, a_step(pipeline, groups).state).ready
    rows, loss = ready.step_rows(0), build_loss(pipeline, ready, 0)
    text, positions = forwarded(rows, ()), np.arange(len(rows))
    result = loss(positions, text)
    by_logp = slope(lambda at: loss(positions, replace(text, logprobs=at)).value, text.logprobs)
    by_entropy = slope(lambda at: loss(positions, replace(text, entropy=at)).value, text.entropy)
    np.testing.assert_allclose(result.logprob_grads, by_logp, atol=1e-6)
    np.testing.assert_allclose(
        np.zeros(len(by_logp)) if result.entropy_grads is None else result.entropy_grads, by_entropy, atol=1e-6
    )
    assert np.abs(result.logprob_grads).max() > 0


def _unsure(row: TrainingRow) -> TrainingRow:
    entropy = np.abs(column_values("sampled", row.key, len(row))).astype(np.float32)
    return replace(row, entropy=np.where(row.loss_mask, entropy, np.float32(np.nan)))


@named
def test_a_group_of_two_policies_is_rejected(plugin: Plugin) -> None:
    samples = [
        a_sample(reward, run=run, policy=f"planner@{version}", turns={"policy": (f"planner@{version}",)})
        for run, (reward, version) in enumerate([(1.0, 1), (0.0, 1), (1.0, 2), (0.0, 2)], 1)
    ]
    with pytest.raises(MixedPoliciesError, match="planner@1 and planner@2"):
        a_step(with_it(plugin, {}), _with_rows([a_group(*samples)], _sure))


@named
def test_what_it_needs_has_a_name_that_somebody_can_give(plugin: Plugin) -> None:
    pipeline = with_it(plugin)
    needs = frozenset[str]().union(*(link.needs for link in pipeline.plugins))
    assert all(
        name in {*COLUMNS, "behavior_logprobs", "entropy"} or name.startswith(ROLLOUT_STATS_PREFIX) for name in needs
    )
    assert plugin.source
