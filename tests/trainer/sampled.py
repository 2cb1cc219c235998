"""Rollouts as the policy engine samples them, and what one turn a row makes of them; for tests of learners."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import numpy as np
import torch

from offing.core.rows import TrainRow, merged
from offing_engine.batch import Batch, Completion, Work
from offing_engine.sampling import Sampling
from offing_engine.small import new_policy
from offing_engine.weights import Policy, load_full
from offing_trainer.batch import Places, spread
from tests.unit.exports.builders import an_episode, float16, float32, many_turns, packed

WORDS = [f"w{n}" for n in range(40)]

FIRST, LAST = 6, 45
"""Ids of words."""


def small_policy(folder: Path, seed: int = 1) -> Path:
    new_policy(folder, WORDS, seed=seed)
    return folder


def served(folder: Path) -> Policy:
    return load_full("p@1", folder, torch.device("cpu"), 4096)


def answered(policy: Policy, prompt: Sequence[int], most: int, sampling: Sampling, seed: int) -> Completion:
    """What the engine draws."""
    found: list[Completion | BaseException] = []
    batch = Batch(policy)
    with torch.inference_mode():
        batch.join([Work(tuple(prompt), most, sampling, seed, (), found.append)])
        while len(batch):
            batch.step()
    (only,) = found
    assert isinstance(only, Completion)
    return only


def rollout(
    policy: Policy, seed: int, *, turns: int = 3, heat: float | None = 1.0, sizes: Sequence[int] = (12, 5, 8)
) -> TrainRow:
    """One row of an append-only transcript. `sizes`: tokens of the first prompt, of an observation, of an answer."""
    dice, said, drawn = random.Random(seed), list[tuple[list[int], tuple[int, ...]]](), list[Completion]()
    transcript: list[int] = []
    for number in range(turns):
        prompt = dice.choices(range(FIRST, LAST + 1), k=sizes[0] if number == 0 else sizes[1])
        transcript += prompt
        drawn.append(answered(policy, transcript, sizes[2], Sampling(1.0 if heat is None else heat), seed + number))
        transcript += drawn[-1].ids
        said.append((prompt, drawn[-1].ids))
    segment = packed(
        *said,
        logprobs=float32(*(p for one in drawn for p in one.logprobs)),
        entropy=float16(*(nats for one in drawn for nats in one.entropy)),
        entropy_counts=tuple(len(one.ids) for one in drawn),
        turns=many_turns(turns, temperature=(heat,) * turns),
    )
    return merged(an_episode(run=UUID(int=seed)), segment)[0]


def rollouts(folder: Path, count: int = 5, *, seed: int = 0) -> list[TrainRow]:
    """Of different lengths, at different temperatures."""
    policy, heats = served(folder), (1.0, 0.7, None, 1.3)
    return [
        rollout(policy, 100 * seed + n + 1, turns=1 + n % 3, heat=heats[n % 4], sizes=(7 + 5 * n, 4, 6 + n))
        for n in range(count)
    ]


def by_turn(row: TrainRow) -> list[TrainRow]:
    """The same tokens with a row a turn, each behind its whole prompt: what merging saves."""
    ends = [int(np.flatnonzero(row.turn_index == nth)[-1]) + 1 for nth in range(len(row.turns))]
    return [_until(row, nth, end) for nth, end in enumerate(ends)]


def _until(row: TrainRow, nth: int, end: int) -> TrainRow:
    own = row.turn_index[:end] == nth
    return replace(
        row,
        part=nth,
        turns=row.turns.part(nth, nth + 1),
        token_ids=row.token_ids[:end],
        loss_mask=row.loss_mask[:end] & own,
        behaviour_logprobs=np.where(own, row.behaviour_logprobs[:end], np.float32(0)),
        entropy=np.where(own, row.entropy[:end], np.float32(np.nan)),
        turn_index=np.zeros(end, np.int16),
        span_kind=row.span_kind[:end],
    )


def tokens_of(rows: Sequence[TrainRow], which: Places) -> Places:
    """Where the trained tokens of some rows are among those of all."""
    ends = np.cumsum([0, *(int(row.loss_mask.sum()) for row in rows)])
    return spread(ends[which], ends[which + 1])
