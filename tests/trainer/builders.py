"""Groups of rollouts as the trainer gets them; a test states only what matters to it.

A rollout is its segments, and a segment the lengths of its turns in sampled tokens: `((2, 3), (4,))` is a row of two
turns and a row of one. Before each turn's tokens there are `CONTEXT` tokens that nobody trains.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import numpy as np

from offing.core.training_rows import NO_SPAN, SPAN_CODES, TrainingRow
from offing.core.trajectory_records import SegmentInfo
from offing_trainer.batch import Floats, RolloutGroup, TrainingBatch, TrainingRollout, build_training_batch
from offing_trainer.config import LearnerConfig, PipelineConfig, load_recipe
from offing_trainer.learner.contract import ForwardResult, LossGradients
from offing_trainer.pipeline import Pipeline, build_pipeline, compute_required_columns
from offing_trainer.training_step import (
    MetricAccumulator,
    PreparedStep,
    ViewedGroups,
    apply_view,
    build_loss,
    compute_advantages,
    compute_token_weights,
)
from tests.unit.exports.builders import many_turns, trajectory_metadata

CONTEXT = 2

POLICY = "planner@1"

Segments = Sequence[Sequence[int]]

ONE_TURN: Segments = ((3,),)


def a_row(
    lengths: Sequence[int] = (3,),
    *,
    run: int = 1,
    segment: int = 0,
    boundary_reason: str = "root",
    role: str = "planner",
    first: int = 1,
    done: bool = True,
    policy: str = POLICY,
    kinds: Sequence[Sequence[str]] | None = None,
    logprobs: Sequence[float] | None = None,
    entropy: Sequence[float] | None = None,
    ids: Sequence[int] | None = None,
    turns: Mapping[str, Any] | None = None,
    **episode: Any,
) -> TrainingRow:
    """One segment. `kinds`: a span kind a sampled token, turn by turn; `logprobs`, `entropy`, `ids`: of sampled tokens.

    `first`: number of its first turn; `done`: its last turn ended the run; `turns`: columns of `Turns`, whole.
    """
    n, sampled = len(lengths), sum(lengths)
    mask = np.concatenate([[False] * CONTEXT + [True] * length for length in lengths]).astype(np.bool_)
    numbers = tuple(range(first, first + n))
    columns: dict[str, Any] = {
        "seq": tuple(2 * number for number in numbers),
        "turn": numbers,
        "temperature": (1.0,) * n,
        "policy": (policy,) * n,
        "is_final": (False,) * (n - 1) + (done,),
        "state_key": tuple(f"s{number}" for number in numbers),
        "action_key": tuple(f"a{number}" for number in numbers),
    }
    names = [kind for turn in kinds for kind in turn] if kinds else []
    return TrainingRow(
        metadata=trajectory_metadata(run_id=UUID(int=run), **episode),
        segment_info=SegmentInfo(segment, role, boundary_reason),
        part=0,
        turns=many_turns(n, **(columns | dict(turns or {}))),
        tokenizer_sha256="tok",
        template_sha256="tpl",
        token_ids=_laid(mask, ids or range(10, 10 + sampled), 1).astype(np.int32),
        loss_mask=mask,
        behavior_logprobs=_laid(mask, logprobs or [-0.1 * (1 + k % 7) for k in range(sampled)], 0).astype(np.float32),
        entropy=_laid(mask, entropy or [np.nan] * sampled, np.nan).astype(np.float32),
        turn_index=np.repeat(np.arange(n), [CONTEXT + length for length in lengths]).astype(np.int16),
        span_kind=_laid(mask, [SPAN_CODES[k] for k in names] or [NO_SPAN] * sampled, NO_SPAN).astype(np.int8),
    )


def _laid(mask: np.ndarray[Any, Any], sampled: Sequence[float], elsewhere: float) -> np.ndarray[Any, Any]:
    laid = np.full(len(mask), elsewhere, np.float64)
    laid[mask] = sampled
    return laid


def a_sample(
    reward: float | None = 1.0,
    segments: Segments = ONE_TURN,
    *,
    run: int = 1,
    outcome: str = "answered",
    fractures: Sequence[str] | None = None,
    replayed: bool = False,
    **row: Any,
) -> TrainingRollout:
    """A rollout; `row` goes to each of its rows. No segments: it has nothing to train."""
    reasons = fractures or ["root", *["memory_edit"] * len(segments)]
    firsts = np.cumsum([1, *(len(lengths) for lengths in segments)])
    shared: dict[str, Any] = {"reward": reward, "outcome": outcome, "member": run} | row
    rows = [
        a_row(lengths, run=run, segment=nth, boundary_reason=reasons[nth], first=int(firsts[nth]),
              done=outcome != "truncated" and nth == len(segments) - 1, **shared)
        for nth, lengths in enumerate(segments)
    ]  # fmt: skip
    episode = rows[0].metadata if rows else trajectory_metadata(run_id=UUID(int=run), reward=reward, outcome=outcome)
    return TrainingRollout(episode, tuple(rows), replayed)


def a_group(*samples: TrainingRollout, key: str = "g1", task: str = "t1") -> RolloutGroup:
    return RolloutGroup(key, task, samples)


def rewarded(
    rewards: Sequence[float | None], segments: Sequence[Segments] | None = None, *, key: str = "g1", first: int = 1
) -> RolloutGroup:
    """A group with these rewards; its runs are numbered from `first`."""
    shapes = segments or [ONE_TURN] * len(rewards)
    pairs = enumerate(zip(rewards, shapes, strict=True), first)
    return RolloutGroup(
        key, f"task of {key}", tuple(a_sample(reward, shape, run=run) for run, (reward, shape) in pairs)
    )


def turns_of(*counts: int, length: int = 2) -> list[Segments]:
    """For each rollout one row of a given number of turns."""
    return [((length,) * count,) for count in counts]


def rounds_of(*counts: int, length: int = 2) -> list[Segments]:
    """For each rollout a given number of rows of one turn, as where the context is rebuilt each round."""
    return [((length,),) * count for count in counts]


def random_groups(
    seed: int,
    groups: int = 3,
    rollouts: int = 4,
    *,
    segments: int = 3,
    turns: int = 3,
    tokens: int = 5,
    reward: Callable[[np.random.Generator], float] = lambda rng: float(rng.integers(0, 2)),
    policy: str = POLICY,
) -> list[RolloutGroup]:
    """Up to a given number of segments, turns and tokens each, at random; behavior, entropy, ids and span kinds too."""
    rng, runs = np.random.default_rng(seed), iter(range(1, 1 + groups * rollouts))
    return [
        RolloutGroup(f"g{nth}", f"t{nth}", tuple(
            _random_sample(rng, next(runs), segments, turns, tokens, reward(rng), policy) for _ in range(rollouts)
        ))
        for nth in range(groups)
    ]  # fmt: skip


def _random_sample(
    rng: np.random.Generator, run: int, segments: int, turns: int, tokens: int, reward: float, policy: str
) -> TrainingRollout:
    shape = [
        [int(length) for length in rng.integers(1, tokens + 1, int(rng.integers(1, turns + 1)))]
        for _ in range(int(rng.integers(1, segments + 1)))
    ]
    outcome = str(rng.choice(["answered", "truncated", "violated"], p=[0.7, 0.2, 0.1]))
    sample = a_sample(reward, shape, run=run, outcome=outcome, policy=policy)
    return replace(sample, rows=tuple(_random_tokens(rng, row) for row in sample.rows))


def _random_tokens(rng: np.random.Generator, row: TrainingRow) -> TrainingRow:
    mask, n = row.loss_mask, int(row.loss_mask.sum())
    kinds = rng.choice([SPAN_CODES[kind] for kind in ("switch", "subgoal", "action", "think")], n)
    return replace(
        row,
        token_ids=_laid(mask, rng.integers(2, 50, n).tolist(), 1).astype(np.int32),
        behavior_logprobs=_laid(mask, (-rng.exponential(1.0, n)).tolist(), 0).astype(np.float32),
        entropy=_laid(mask, rng.uniform(0, 2, n).tolist(), np.nan).astype(np.float32),
        span_kind=_laid(mask, kinds.tolist(), NO_SPAN).astype(np.int8),
    )


def random_batch(seed: int, **how: Any) -> TrainingBatch:
    return build_training_batch(random_groups(seed, **how))


def drifted(batch: TrainingBatch, seed: int, by: float = 0.2) -> Floats:
    """(P,) log-probabilities of a policy that has moved away from the one that sampled."""
    return np.minimum(batch.behavior_logprobs + np.random.default_rng(seed).normal(0, by, batch.num_tokens), -1e-3)


def slope(value: Callable[[Floats], float], at: Floats, step: float = 1e-6) -> Floats:
    """Derivative by central differences, entry by entry."""
    edges = np.eye(len(at)) * step
    return np.array([(value(at + edge) - value(at - edge)) / (2 * step) for edge in edges])


def a_pipeline(**seams: Any) -> Pipeline:
    """The plainest pipeline there is, with these seams in place of its own."""
    plain = {
        "view": {"name": "policy-turns"},
        "advantage": {"name": "group-z"},
        "token_weights": {"name": "token-mean"},
        "surrogate": {"name": "ppo-clip"},
    }
    return build_pipeline(PipelineConfig.model_validate(plain | seams))


def a_recipe(name: str, **seams: Any) -> Pipeline:
    """A recipe's pipeline, with these seams in place of its own."""
    return build_pipeline(PipelineConfig.model_validate(load_recipe(name)["pipeline"] | seams))


def seen_by(pipeline: Pipeline, groups: Sequence[RolloutGroup], seed: int = 0) -> ViewedGroups:
    return apply_view(pipeline, groups, {}, np.random.default_rng(seed))


def a_step(
    pipeline: Pipeline, groups: Sequence[RolloutGroup], *, seed: int = 0, by: float = 0.0, **learner: Any
) -> PreparedStep:
    """Groups through a pipeline up to the weights; late columns are of policies that moved by about `by` nats."""
    seen, how = seen_by(pipeline, groups, seed), LearnerConfig(**learner)
    early = {
        name: drifted(seen.batch, 11, by) for name in compute_required_columns(pipeline, how.mode).before_selection
    }
    chosen = compute_advantages(pipeline, seen, early, np.random.default_rng(seed), learner_config=how)
    live = chosen.batch.select_rows(chosen.active_rows)
    return compute_token_weights(
        pipeline,
        chosen,
        {n: drifted(live, 12, by) for n in compute_required_columns(pipeline, how.mode).after_selection},
    )


def by_turn(batch: TrainingBatch, token: Floats) -> list[float]:
    """What the first token of each turn has, for turns that have one."""
    _, first = np.unique(batch.token_turn, return_index=True)
    return token[first].tolist()


def by_row(batch: TrainingBatch, token: Floats) -> list[float]:
    """What the first token of each row has."""
    _, first = np.unique(batch.token_row, return_index=True)
    return token[first].tolist()


def derived(
    pipeline: Pipeline, ready: PreparedStep, logp: Floats, step: int = 0, tally: MetricAccumulator | None = None
) -> LossGradients:
    """A step's loss where the policy says `logp` of the tokens that it forwards, all in one part."""
    rows = len(ready.step_rows(step))
    return build_loss(pipeline, ready, step, tally)(np.arange(rows), ForwardResult(logp, np.ones(len(logp))))
