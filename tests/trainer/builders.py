"""Groups of rollouts as the trainer gets them; a test states only what matters to it.

A rollout is its segments, and a segment the lengths of its turns in sampled tokens: `((2, 3), (4,))` is a row of two
turns and a row of one. Before each turn's tokens there are `CONTEXT` tokens that nobody trains.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import numpy as np

from offing.core.episode import SegmentHead
from offing.core.rows import NO_SPAN, SPAN_CODES, TrainRow
from offing_trainer.batch import Batch, Floats, Group, Sample, batch_of
from offing_trainer.chain import Chain, chain_of, needed_columns
from offing_trainer.config import ChainConfig, LearnerConfig, recipe
from offing_trainer.learner.contract import Derivatives, Forwarded
from offing_trainer.update import Prepared, Tally, Viewed, loss_of, measured, prepared, viewed
from tests.unit.exports.builders import an_episode, many_turns

CONTEXT = 2

POLICY = "planner@1"

Segments = Sequence[Sequence[int]]

ONE_TURN: Segments = ((3,),)


def a_row(
    lengths: Sequence[int] = (3,),
    *,
    run: int = 1,
    segment: int = 0,
    fracture: str = "root",
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
) -> TrainRow:
    """One segment. `kinds`: a span kind a sampled token, turn by turn; `logprobs`, `entropy`, `ids`: of sampled tokens.

    `first`: number of its first turn; `done`: its last turn ended the run; `turns`: columns of `Turns`, whole.
    """
    n, sampled = len(lengths), sum(lengths)
    mask = np.concatenate([[False] * CONTEXT + [True] * length for length in lengths]).astype(np.bool_)
    numbers = tuple(range(first, first + n))
    columns: dict[str, Any] = {
        "seq": tuple(2 * number for number in numbers),
        "number": numbers,
        "temperature": (1.0,) * n,
        "policy": (policy,) * n,
        "done": (False,) * (n - 1) + (done,),
        "state_key": tuple(f"s{number}" for number in numbers),
        "action_key": tuple(f"a{number}" for number in numbers),
    }
    names = [kind for turn in kinds for kind in turn] if kinds else []
    return TrainRow(
        episode=an_episode(run=UUID(int=run), **episode),
        head=SegmentHead(segment, role, fracture),
        part=0,
        turns=many_turns(n, **(columns | dict(turns or {}))),
        tokenizer_sha256="tok",
        template_sha256="tpl",
        token_ids=_laid(mask, ids or range(10, 10 + sampled), 1).astype(np.int32),
        loss_mask=mask,
        behaviour_logprobs=_laid(mask, logprobs or [-0.1 * (1 + k % 7) for k in range(sampled)], 0).astype(np.float32),
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
) -> Sample:
    """A rollout; `row` goes to each of its rows. No segments: it has nothing to train."""
    reasons = fractures or ["root", *["memory_edit"] * len(segments)]
    firsts = np.cumsum([1, *(len(lengths) for lengths in segments)])
    shared: dict[str, Any] = {"reward": reward, "outcome": outcome, "member": run} | row
    rows = [
        a_row(lengths, run=run, segment=nth, fracture=reasons[nth], first=int(firsts[nth]),
              done=outcome != "truncated" and nth == len(segments) - 1, **shared)
        for nth, lengths in enumerate(segments)
    ]  # fmt: skip
    return Sample(rows[0].episode if rows else an_episode(run=UUID(int=run), reward=reward, outcome=outcome),
                  tuple(rows), replayed)  # fmt: skip


def a_group(*samples: Sample, key: str = "g1", task: str = "t1") -> Group:
    return Group(key, task, samples)


def rewarded(
    rewards: Sequence[float | None], segments: Sequence[Segments] | None = None, *, key: str = "g1", first: int = 1
) -> Group:
    """A group with these rewards; its runs are numbered from `first`."""
    shapes = segments or [ONE_TURN] * len(rewards)
    pairs = enumerate(zip(rewards, shapes, strict=True), first)
    return Group(key, f"task of {key}", tuple(a_sample(reward, shape, run=run) for run, (reward, shape) in pairs))


def turns_of(*counts: int, length: int = 2) -> list[Segments]:
    """For each rollout one row of so many turns."""
    return [((length,) * count,) for count in counts]


def rounds_of(*counts: int, length: int = 2) -> list[Segments]:
    """For each rollout so many rows of one turn, as where the context is rebuilt each round."""
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
) -> list[Group]:
    """Up to so many segments, turns and tokens each, at random; behaviour, entropy, ids and span kinds too."""
    rng, runs = np.random.default_rng(seed), iter(range(1, 1 + groups * rollouts))
    return [
        Group(f"g{nth}", f"t{nth}", tuple(
            _random_sample(rng, next(runs), segments, turns, tokens, reward(rng), policy) for _ in range(rollouts)
        ))
        for nth in range(groups)
    ]  # fmt: skip


def _random_sample(
    rng: np.random.Generator, run: int, segments: int, turns: int, tokens: int, reward: float, policy: str
) -> Sample:
    shape = [
        [int(length) for length in rng.integers(1, tokens + 1, int(rng.integers(1, turns + 1)))]
        for _ in range(int(rng.integers(1, segments + 1)))
    ]
    outcome = str(rng.choice(["answered", "truncated", "violated"], p=[0.7, 0.2, 0.1]))
    sample = a_sample(reward, shape, run=run, outcome=outcome, policy=policy)
    return replace(sample, rows=tuple(_random_tokens(rng, row) for row in sample.rows))


def _random_tokens(rng: np.random.Generator, row: TrainRow) -> TrainRow:
    mask, n = row.loss_mask, int(row.loss_mask.sum())
    kinds = rng.choice([SPAN_CODES[kind] for kind in ("switch", "subgoal", "action", "think")], n)
    return replace(
        row,
        token_ids=_laid(mask, rng.integers(2, 50, n).tolist(), 1).astype(np.int32),
        behaviour_logprobs=_laid(mask, (-rng.exponential(1.0, n)).tolist(), 0).astype(np.float32),
        entropy=_laid(mask, rng.uniform(0, 2, n).tolist(), np.nan).astype(np.float32),
        span_kind=_laid(mask, kinds.tolist(), NO_SPAN).astype(np.int8),
    )


def random_batch(seed: int, **how: Any) -> Batch:
    return batch_of(random_groups(seed, **how))


def drifted(batch: Batch, seed: int, by: float = 0.2) -> Floats:
    """(P,) log-probabilities of a policy that has moved away from the one that sampled."""
    return np.minimum(batch.behaviour + np.random.default_rng(seed).normal(0, by, batch.tokens), -1e-3)


def slope(value: Callable[[Floats], float], at: Floats, step: float = 1e-6) -> Floats:
    """Derivative by central differences, entry by entry."""
    edges = np.eye(len(at)) * step
    return np.array([(value(at + edge) - value(at - edge)) / (2 * step) for edge in edges])


def a_chain(**seams: Any) -> Chain:
    """The plainest chain there is, with these seams in place of its own."""
    plain = {
        "view": {"name": "policy-turns"},
        "advantage": {"name": "group-z"},
        "weight": {"name": "token-mean"},
        "surrogate": {"name": "ppo-clip"},
    }
    return chain_of(ChainConfig.model_validate(plain | seams))


def a_recipe(name: str, **seams: Any) -> Chain:
    """A recipe's chain, with these seams in place of its own."""
    return chain_of(ChainConfig.model_validate(recipe(name)["chain"] | seams))


def seen_by(chain: Chain, groups: Sequence[Group], seed: int = 0) -> Viewed:
    return viewed(chain, groups, {}, np.random.default_rng(seed))


def a_step(chain: Chain, groups: Sequence[Group], *, seed: int = 0, by: float = 0.0, **learner: Any) -> Prepared:
    """Groups through a chain up to the weights; late columns are of policies that moved by about `by` nats."""
    seen, how = seen_by(chain, groups, seed), LearnerConfig(**learner)
    early = {name: drifted(seen.batch, 11, by) for name in needed_columns(chain, how.mode).early}
    chosen = prepared(chain, seen, early, np.random.default_rng(seed), learner=how)
    live = chosen.batch.only(chosen.live)
    return measured(chain, chosen, {n: drifted(live, 12, by) for n in needed_columns(chain, how.mode).late})


def by_turn(batch: Batch, token: Floats) -> list[float]:
    """What the first token of each turn has, for turns that have one."""
    _, first = np.unique(batch.token_turn, return_index=True)
    return token[first].tolist()


def by_row(batch: Batch, token: Floats) -> list[float]:
    """What the first token of each row has."""
    _, first = np.unique(batch.token_row, return_index=True)
    return token[first].tolist()


def derived(chain: Chain, ready: Prepared, logp: Floats, step: int = 0, tally: Tally | None = None) -> Derivatives:
    """A step's loss where the policy says `logp` of the tokens that it forwards, all in one part."""
    rows = len(ready.rows_of(step))
    return loss_of(chain, ready, step, tally)(np.arange(rows), Forwarded(logp, np.ones(len(logp))))
