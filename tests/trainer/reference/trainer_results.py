"""Groups with everything that is awkward, and the trainer's own answer about them by key, beside the references'.

What weights and critics say is made of the names of rows, turns and runs, so that both sides hear the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np

from offing.core.training_rows import NO_SPAN, SPAN_CODES, TrainingRow
from offing_trainer.batch import Floats, RolloutGroup, TrainingBatch, TrainingRollout
from offing_trainer.config import LearnerConfig
from offing_trainer.learner.contract import ForwardResult
from offing_trainer.pipeline import Pipeline, compute_required_columns
from offing_trainer.plugin import COLUMNS, PluginState
from offing_trainer.training_step import PreparedStep, apply_view, build_loss, compute_advantages, compute_token_weights
from tests.trainer.builders import a_group, a_sample, random_groups
from tests.trainer.reference.records import PerToken, PerTurn, Rollout, Row, all_rows

OPENS, GOES_ON, PLAIN = ("switch", "subgoal", "action", ""), ("switch", "kept", "action", ""), ("action", "answer")
UNREAD = ("text",)


def awkward_groups(seed: int, groups: int = 3, rollouts: int = 4) -> list[RolloutGroup]:
    """Turns and rows that nobody trains, a group of one, one that failed, one all masked, a rollout without rows."""
    rng = np.random.default_rng(seed)
    whole = random_groups(seed, groups, rollouts, segments=2, turns=3, tokens=4, reward=_graded)
    failed = a_group(
        a_sample(0.0, ((2, 2), (1,)), run=401),
        a_sample(0.0, ((1, 3),), run=402, outcome="truncated"),
        key="failed",
        task="f",
    )
    alone = a_group(a_sample(1.0, ((2,), (1, 3)), run=501), key="alone", task="a")
    silent = a_group(
        _silent(a_sample(1.0, ((2, 1),), run=601)), _silent(a_sample(0.0, ((3,),), run=602)), key="silent", task="s"
    )
    absent = a_group(a_sample(1.0, ((2,),), run=701), a_sample(0.0, (), run=702), key="absent", task="n")
    return [*(_thinned(group, rng) for group in (*whole, failed, alone, absent)), silent]


def _graded(rng: np.random.Generator) -> float:
    return float(rng.choice([0.0, 0.4, 1.0], p=[0.4, 0.2, 0.4]))


def _silent(sample: TrainingRollout) -> TrainingRollout:
    return replace(sample, rows=tuple(replace(row, loss_mask=np.zeros(len(row), np.bool_)) for row in sample.rows))


def _thinned(group: RolloutGroup, rng: np.random.Generator) -> RolloutGroup:
    rows = [tuple(_with_behavior(row, rng) for row in sample.rows) for sample in group.rollouts]
    return replace(group, rollouts=tuple(replace(s, rows=r) for s, r in zip(group.rollouts, rows, strict=True)))


def _with_behavior(row: TrainingRow, rng: np.random.Generator) -> TrainingRow:
    """Some turns as context alone, seldom all; spans as a planner in two levels writes them; entropies."""
    out = rng.random(len(row.turns)) < 0.15
    mask = row.loss_mask & ~out[row.turn_index]
    spans = np.full(len(row), NO_SPAN, np.int8)
    for nth in range(len(row.turns)):
        at = np.flatnonzero(row.loss_mask & (row.turn_index == nth))
        kinds = (OPENS, GOES_ON, PLAIN, UNREAD)[int(rng.integers(0, 4))]
        drawn: list[int] = sorted(rng.choice(len(kinds), len(at)).tolist())
        spans[at] = [SPAN_CODES.get(kinds[kind], NO_SPAN) for kind in drawn]
    entropy = np.where(mask, rng.uniform(0.1, 2.0, len(row)), np.nan).astype(np.float32)
    return replace(row, loss_mask=mask, span_kind=spans, entropy=entropy)


# What weights and critics say -------------------------------------------------------------------------------------


def value_of(what: str, key: str, nth: int = 0) -> float:
    return Random(f"{what} {key} {nth}").gauss(0, 1)


def logp_of(what: str, row: Row) -> list[float]:
    """Of a policy that has moved from what sampled the row; with the name of nothing, that one itself."""
    if not what:
        return [token.behavior for token in row.tokens]
    moved = [token.behavior + 0.25 * value_of(what, row.key, nth) for nth, token in enumerate(row.tokens)]
    return [logp if logp < 0 else -0.1 * logp - 1e-3 for logp in moved]


def logps(what: str, rollouts: Sequence[Rollout]) -> PerToken:
    return {row.key: logp_of(what, row) for row in all_rows(rollouts)}


def entropies(rollouts: Sequence[Rollout]) -> PerToken:
    return {row.key: entropies_of(row) for row in all_rows(rollouts)}


def entropies_of(row: Row) -> list[float]:
    return [3 * abs(value_of("entropy", row.key, n)) for n in range(len(row.tokens))]


def of_turns(what: str, rollouts: Sequence[Rollout]) -> PerTurn:
    return {turn.key: -abs(value_of(what, turn.key)) for rollout in rollouts for turn in rollout.all_turns}


def of_runs(what: str, rollouts: Sequence[Rollout]) -> dict[str, float]:
    return {rollout.run: -abs(value_of(what, rollout.run)) for rollout in rollouts}


def column(batch: TrainingBatch, name: str, records: Mapping[str, Row]) -> Floats:
    shape = COLUMNS[name]
    if shape.startswith("(P,)"):
        return np.array([value for key in batch.row_keys for value in logp_of(name, records[key])], np.float64)
    if shape.startswith("(R,)"):
        return np.array([-abs(value_of(name, run)) for run in batch.run_ids], np.float64)
    keys = [f"{batch.run_ids[r]} {seq}" for r, seq in zip(batch.turn_rollout, batch.turn_seq, strict=True)]
    return np.array([-abs(value_of(name, key)) for key in keys], np.float64)


# The trainer's answer ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class TrainerResult:
    """One optimizer step of the trainer, by key."""

    ready: PreparedStep
    rows: tuple[str, ...]
    """Keys of the rows that are trained, one that is trained twice twice."""
    credit: PerToken
    weights: Sequence[Sequence[float]]
    """For each of `rows`."""
    value: float
    logprob_grads: PerToken
    entropy_grads: PerToken
    state: PluginState


def compute_with_trainer(
    pipeline: Pipeline,
    groups: Sequence[RolloutGroup],
    rollouts: Sequence[Rollout],
    *,
    state: PluginState | None = None,
    mode: str = "decoupled",
    progress: float = 0.0,
    facts: Mapping[str, Mapping[str, float]] | None = None,
    parts: int = 1,
) -> TrainerResult:
    """`facts`: by run, then by name. `parts`: how many the rows are forwarded in."""
    rng, records = np.random.default_rng(5), {row.key: row for row in all_rows(rollouts)}
    how = LearnerConfig.model_validate({"mode": mode})
    runs = {str(sample.metadata.run_id): sample.metadata.run_id for group in groups for sample in group.rollouts}
    known = {runs[run]: of_run for run, of_run in (facts or {}).items()}
    seen = apply_view(pipeline, groups, state or {}, rng, rollout_stats=known)
    needed = compute_required_columns(pipeline, how.mode)
    early = {name: column(seen.batch, name, records) for name in needed.before_selection}
    chosen = compute_advantages(pipeline, seen, early, rng, progress=progress, learner_config=how)
    live = chosen.batch.select_rows(chosen.active_rows)
    ready = compute_token_weights(
        pipeline, chosen, {name: column(live, name, records) for name in needed.after_selection}
    )
    value, slopes = _derived(pipeline, ready, records, parts)
    weights = ready.token_weights[0] if ready.optimizer_steps else np.empty(0)
    batch, advantages = ready.batch, _by_key(ready.batch, ready.advantage)
    return TrainerResult(ready, batch.row_keys, advantages, _by_row(batch, weights), value, *slopes, ready.state)


def _derived(
    pipeline: Pipeline, ready: PreparedStep, records: Mapping[str, Row], parts: int
) -> tuple[float, tuple[PerToken, PerToken]]:
    value, logprob_grads, entropy_grads = 0.0, dict[str, list[float]](), dict[str, list[float]]()
    if not ready.optimizer_steps:
        return value, (logprob_grads, entropy_grads)
    rows, loss = [records[row.key] for row in ready.step_rows(0)], build_loss(pipeline, ready, 0)
    order = np.random.default_rng(2).permutation(len(rows)) if parts > 1 else np.arange(len(rows))
    for part in np.array_split(order, parts):
        positions: list[int] = part.tolist()
        mine = [rows[n] for n in positions]
        logp = [value for row in mine for value in logp_of("now", row)]
        entropy = [value for row in mine for value in entropies_of(row)]
        out = loss(part, ForwardResult(np.array(logp, np.float64), np.array(entropy, np.float64)))
        value += out.value
        _add(logprob_grads, mine, out.logprob_grads.tolist())
        _add(
            entropy_grads,
            mine,
            np.zeros(len(logp)).tolist() if out.entropy_grads is None else out.entropy_grads.tolist(),
        )
    return value, (logprob_grads, entropy_grads)


def _add(to: dict[str, list[float]], rows: Sequence[Row], values: Sequence[float]) -> None:
    """A row that is there twice counts twice."""
    left = iter(values)
    for row in rows:
        before = to.get(row.key, [0.0] * len(row.tokens))
        to[row.key] = [value + next(left) for value in before]


def _by_row(batch: TrainingBatch, values: Floats) -> list[list[float]]:
    ends = np.cumsum(np.bincount(batch.token_row, minlength=batch.num_rows))
    return [part.tolist() for part in np.split(values, ends[:-1])] if batch.num_rows else []


def _by_key(batch: TrainingBatch, values: Floats) -> PerToken:
    return dict(zip(batch.row_keys, _by_row(batch, values), strict=True))
