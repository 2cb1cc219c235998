"""The probability of a task's reference answer before each turn: its rows and columns.

The answer follows exactly the tokens that the policy continued at that turn: its prompt, the
earlier completions and observations, and the beginning of its next message, as the graph and the
chat template made them. A prefix leads to the answer, as in the released code of IGPO (arXiv
2510.14967), where it is the graph's own form of an answer. Prefix and answer are tokenized
separately, so that only the answer is scored. The temperature is 1. These rows are not trained.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from offing.core.errors import InvalidInput
from offing.core.training_rows import NO_SPAN, TrainingRow
from offing_trainer.batch import Floats, Indices, TrainingBatch
from offing_trainer.turn_math import mark_first, mark_last, shift_from_next, turn_indices

NO_ROW = -1

COLUMNS = frozenset({"answer_logprob", "initial_answer_logprob"})
"""The columns that this module computes."""


class AnswerTokenizer(Protocol):
    """A policy's tokenizer."""

    max_tokens: int | None
    """Maximum number of tokens of the policy. `None` means that it is unknown."""

    def encode_text(self, text: str) -> list[int]:
        """Tokenize text within a turn. Raises InvalidInput for text that it has no tokens for."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceRows:
    """Rows whose scored tokens are reference answers."""

    rows: tuple[TrainingRow, ...]
    """Contexts followed by the answer. Rollouts with the same beginning share a row."""
    turn_row: Indices
    """Index of the row before each turn, (T,).
    `-1` means that the turn has no trained token, so its start is unknown.
    """


@dataclass(frozen=True, slots=True)
class _AnswerTokens:
    """A task's reference answer in tokens."""

    prefix: Sequence[int]
    answer: Sequence[int]


def build_reference_rows(
    batch: TrainingBatch,
    rows: Sequence[TrainingRow],
    answers: Mapping[str, str],
    prefix: str,
    tokenizer: AnswerTokenizer,
) -> ReferenceRows:
    """Build the rows. `rows` are the rows of the batch, (N,); `answers` are by task.

    Raises InvalidInput for rows of several roles, since their contexts differ; for text that the
    tokenizer cannot encode; and for a context that leaves no room for the answer.
    """
    _check_single_role(rows)
    prefix_tokens = tokenizer.encode_text(prefix)
    answer_tokens = {
        task: _AnswerTokens(prefix_tokens, _encode_answer(tokenizer, answers[task]))
        for task in sorted(set(batch.task_keys))
    }
    reference_rows, row_numbers, turn = (
        list[TrainingRow](),
        dict[tuple[str, bytes], int](),
        np.full(batch.num_turns, NO_ROW, np.int64),
    )
    turn_iterator = iter(turn_indices(batch, np.arange(batch.num_rows)).tolist())
    groups: list[int] = batch.rollout_group[batch.row_rollout].tolist()
    for row, group in zip(rows, groups, strict=True):
        task, starts = batch.task_keys[group], list[int](_turn_starts(row).tolist())
        for nth, start in enumerate(starts):
            at = next(turn_iterator)
            if start == NO_ROW:
                continue
            key = task, row.token_ids[:start].tobytes()
            if key not in row_numbers:
                row_numbers[key] = len(reference_rows)
                reference_rows.append(_append_answer(row, nth, start, answer_tokens[task], tokenizer.max_tokens))
            turn[at] = row_numbers[key]
    return ReferenceRows(tuple(reference_rows), turn)


def compute_answer_columns(batch: TrainingBatch, reference_rows: ReferenceRows, logprobs: Floats) -> dict[str, Floats]:
    """Compute the columns. `logprobs` are those of the scored tokens of the rows, in order.

    See `plugin.COLUMNS`. A turn without trained tokens is skipped: its observation takes effect before
    the next turn.
    """
    counts = np.array([row.loss_mask.sum() for row in reference_rows.rows], np.int64)
    means = np.bincount(np.repeat(np.arange(len(counts)), counts), logprobs, len(counts)) / counts
    before = _fill_from_next_turn(batch, np.append(means, np.nan)[reference_rows.turn_row])
    last = mark_last(batch.turn_rollout)
    start, first = np.full(batch.num_rollouts, np.nan), mark_first(batch.turn_rollout)
    start[batch.turn_rollout[first]] = before[first]
    nothing = np.full(batch.num_turns, np.nan)
    return {"answer_logprob": shift_from_next(before, last, nothing), "initial_answer_logprob": start}


def _fill_from_next_turn(batch: TrainingBatch, before: Floats) -> Floats:
    """Fill unknown values with the value before the rollout's next turn that has one, (T,)."""
    known = np.flatnonzero(~np.isnan(before))
    if not len(known):
        return before
    after = known[np.minimum(np.searchsorted(known, np.arange(batch.num_turns)), len(known) - 1)]
    there = (after >= np.arange(batch.num_turns)) & (batch.turn_rollout[after] == batch.turn_rollout)
    return np.where(there, before[after], np.nan)


def _turn_starts(row: TrainingRow) -> Indices:
    """Return the first trained token of each turn of the row, or -1 if it has none."""
    trained = np.flatnonzero(row.loss_mask)
    turn_ids, first = np.unique(row.turn_index[trained], return_index=True)
    starts = np.full(len(row.turns), NO_ROW, np.int64)
    starts[turn_ids] = trained[first]
    return starts


def _append_answer(
    row: TrainingRow, turn: int, start: int, answer_tokens: _AnswerTokens, max_tokens: int | None
) -> TrainingRow:
    """Return the tokens before a turn's own, followed by the answer."""
    ids = np.concatenate((row.token_ids[:start], answer_tokens.prefix, answer_tokens.answer)).astype(np.int32)
    if max_tokens is not None and len(ids) > max_tokens:
        problem = f"{row.key} with the reference answer has {len(ids)} tokens, but the policy's maximum is {max_tokens}"
        raise InvalidInput("data", problem, "Exclude such rollouts, or use another reward than info-gain.")
    mask = np.arange(len(ids)) >= len(ids) - len(answer_tokens.answer)
    return replace(
        row,
        turns=replace(row.turns.subset(turn, turn + 1), temperature=(None,)),
        token_ids=ids,
        loss_mask=mask,
        behavior_logprobs=np.zeros(len(ids), np.float32),
        entropy=np.full(len(ids), np.nan, np.float32),
        turn_index=np.zeros(len(ids), np.int16),
        span_kind=np.full(len(ids), NO_SPAN, np.int8),
    )


def _encode_answer(tokenizer: AnswerTokenizer, answer: str) -> list[int]:
    ids = tokenizer.encode_text(answer)
    if not ids:
        raise InvalidInput("data", f"the reference answer {answer!r} has no tokens", "Use other tasks.")
    return ids


def _check_single_role(rows: Sequence[TrainingRow]) -> None:
    roles = sorted({row.segment_info.role for row in rows})
    if len(roles) > 1:
        problem = f"the reference answer needs the contexts of a single role, but there are {' and '.join(roles)}"
        raise InvalidInput("data.roles", problem, "Use one of them.")
