"""Rollouts as the policy engine samples them, and what one turn a row makes of them; for tests of learners."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import numpy as np
import torch

from offing.core.training_rows import TrainingRow, build_rows
from offing_engine.batch import Completion, DecodeBatch, GenerationRequest
from offing_engine.random_policy import create_random_policy
from offing_engine.sampling import SamplingParams
from offing_engine.weights import LoadedPolicy, load_full_policy
from offing_trainer.batch import Indices, expand_ranges
from tests.unit.exports.builders import float16, float32, many_turns, packed, trajectory_metadata

WORDS = [f"w{n}" for n in range(40)]

FIRST, LAST = 6, 45
"""Ids of words."""


def small_policy(folder: Path, seed: int = 1) -> Path:
    create_random_policy(folder, WORDS, seed=seed)
    return folder


def served(folder: Path) -> LoadedPolicy:
    return load_full_policy("p@1", folder, torch.device("cpu"), 4096)


def answered(
    policy: LoadedPolicy, prompt: Sequence[int], maximum: int, sampling: SamplingParams, seed: int
) -> Completion:
    """What the engine draws."""
    results: list[Completion | BaseException] = []
    batch = DecodeBatch(policy)
    with torch.inference_mode():
        batch.add([GenerationRequest(tuple(prompt), maximum, sampling, seed, (), results.append)])
        while len(batch):
            batch.decode_step()
    (only,) = results
    assert isinstance(only, Completion)
    return only


def rollout(
    policy: LoadedPolicy, seed: int, *, turns: int = 3, heat: float | None = 1.0, sizes: Sequence[int] = (12, 5, 8)
) -> TrainingRow:
    """One row of an append-only transcript. `sizes`: tokens of the first prompt, of an observation, of an answer."""
    dice, messages, drawn = random.Random(seed), list[tuple[list[int], tuple[int, ...]]](), list[Completion]()
    transcript: list[int] = []
    for number in range(turns):
        prompt = dice.choices(range(FIRST, LAST + 1), k=sizes[0] if number == 0 else sizes[1])
        transcript += prompt
        drawn.append(
            answered(policy, transcript, sizes[2], SamplingParams(1.0 if heat is None else heat), seed + number)
        )
        transcript += drawn[-1].ids
        messages.append((prompt, drawn[-1].ids))
    segment = packed(
        *messages,
        logprobs=float32(*(p for one in drawn for p in one.logprobs)),
        entropy=float16(*(nats for one in drawn for nats in one.entropies)),
        entropy_counts=tuple(len(one.ids) for one in drawn),
        turns=many_turns(turns, temperature=(heat,) * turns),
    )
    return build_rows(trajectory_metadata(run_id=UUID(int=seed)), segment)[0]


def rollouts(folder: Path, count: int = 5, *, seed: int = 0) -> list[TrainingRow]:
    """Of different lengths, at different temperatures."""
    policy, heats = served(folder), (1.0, 0.7, None, 1.3)
    return [
        rollout(policy, 100 * seed + n + 1, turns=1 + n % 3, heat=heats[n % 4], sizes=(7 + 5 * n, 4, 6 + n))
        for n in range(count)
    ]


def by_turn(row: TrainingRow) -> list[TrainingRow]:
    """The same tokens with a row a turn, each behind its whole prompt: what merging saves."""
    ends = [int(np.flatnonzero(row.turn_index == nth)[-1]) + 1 for nth in range(len(row.turns))]
    return [_until(row, nth, end) for nth, end in enumerate(ends)]


def _until(row: TrainingRow, nth: int, end: int) -> TrainingRow:
    own = row.turn_index[:end] == nth
    return replace(
        row,
        part=nth,
        turns=row.turns.subset(nth, nth + 1),
        token_ids=row.token_ids[:end],
        loss_mask=row.loss_mask[:end] & own,
        behavior_logprobs=np.where(own, row.behavior_logprobs[:end], np.float32(0)),
        entropy=np.where(own, row.entropy[:end], np.float32(np.nan)),
        turn_index=np.zeros(end, np.int16),
        span_kind=row.span_kind[:end],
    )


def tokens_of(rows: Sequence[TrainingRow], which: Indices) -> Indices:
    """Where the trained tokens of some rows are among those of all."""
    ends = np.cumsum([0, *(int(row.loss_mask.sum()) for row in rows)])
    return expand_ranges(ends[which], ends[which + 1])
