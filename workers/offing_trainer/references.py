"""How likely a policy finds a task's reference answer before each of its turns: the rows that ask it, and the columns.

The only home of where the answer stands. It follows the very tokens that the policy went on from at the turn: its
prompt, what it wrote and saw before, and the beginning of its next words, as the flow and the chat template made them.
An introduction leads to it, as in the released code of IGPO (arXiv 2510.14967), where it is the flow's own form of an
answer; both are tokenised apart, so that what is scored is the answer alone. Temperature is 1. Nothing here is trained.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from offing.core.errors import InvalidInput
from offing.core.rows import NO_SPAN, TrainRow
from offing_trainer.batch import Batch, Floats, Places
from offing_trainer.turns import closes, following, opens, turns_in

NOBODY = -1

COLUMNS = frozenset({"reference_logp", "reference_start"})
"""What is computed here."""


class Speller(Protocol):
    """A policy's tokenizer."""

    longest: int | None
    """Tokens that the policy reads at most. None: it is not said."""

    def words(self, text: str) -> list[int]:
        """Ids of text within a turn. Raises InvalidInput for what it has no tokens for."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """Rows whose trained tokens are reference answers."""

    rows: tuple[TrainRow, ...]
    """A context with the answer behind it; rollouts that begin alike share one."""
    turn: Places
    """(T,) the row that is asked before the turn. -1: its own tokens are not trained, so that nobody knows where they
    begin."""


@dataclass(frozen=True, slots=True)
class _Words:
    """A task's reference answer in tokens."""

    introduction: Sequence[int]
    answer: Sequence[int]


def asked(
    batch: Batch, rows: Sequence[TrainRow], answers: Mapping[str, str], introduction: str, speller: Speller
) -> Asked:
    """`rows`: (N,) of the batch; `answers`: by task.

    Raises InvalidInput for rows of several roles, whose contexts say different things, for words that the tokenizer
    does not have, and for a context that has no room for the answer.
    """
    _refuse_roles(rows)
    lead = speller.words(introduction)
    words = {task: _Words(lead, _spelled(speller, answers[task])) for task in sorted(set(batch.task))}
    found, number, turn = list[TrainRow](), dict[tuple[str, bytes], int](), np.full(batch.turns, NOBODY, np.int64)
    places = iter(turns_in(batch, np.arange(batch.rows)).tolist())
    groups: list[int] = batch.rollout_group[batch.row_rollout].tolist()
    for row, group in zip(rows, groups, strict=True):
        task, starts = batch.task[group], list[int](_begins(row).tolist())
        for nth, begins in enumerate(starts):
            at = next(places)
            if begins == NOBODY:
                continue
            key = task, row.token_ids[:begins].tobytes()
            if key not in number:
                number[key] = len(found)
                found.append(_continued(row, nth, begins, words[task], speller.longest))
            turn[at] = number[key]
    return Asked(tuple(found), turn)


def columns_of(batch: Batch, given: Asked, logp: Floats) -> dict[str, Floats]:
    """`logp`: of the trained tokens of `given.rows`, row after row. See `seam.COLUMNS`.

    A turn of context alone is passed over: what was seen by then is told apart only before the next one.
    """
    counts = np.array([row.loss_mask.sum() for row in given.rows], np.int64)
    means = np.bincount(np.repeat(np.arange(len(counts)), counts), logp, len(counts)) / counts
    before = _filled(batch, np.append(means, np.nan)[given.turn])
    last = closes(batch.turn_rollout)
    start, first = np.full(batch.rollouts, np.nan), opens(batch.turn_rollout)
    start[batch.turn_rollout[first]] = before[first]
    nothing = np.full(batch.turns, np.nan)
    return {"reference_logp": following(before, last, nothing), "reference_start": start}


def _filled(batch: Batch, before: Floats) -> Floats:
    """(T,) where it is not known, as before the next turn of the rollout where it is."""
    known = np.flatnonzero(~np.isnan(before))
    if not len(known):
        return before
    after = known[np.minimum(np.searchsorted(known, np.arange(batch.turns)), len(known) - 1)]
    there = (after >= np.arange(batch.turns)) & (batch.turn_rollout[after] == batch.turn_rollout)
    return np.where(there, before[after], np.nan)


def _begins(row: TrainRow) -> Places:
    """(turns of the row,) its first trained token. -1: it has none."""
    trained = np.flatnonzero(row.loss_mask)
    found, first = np.unique(row.turn_index[trained], return_index=True)
    begins = np.full(len(row.turns), NOBODY, np.int64)
    begins[found] = trained[first]
    return begins


def _continued(row: TrainRow, turn: int, begins: int, words: _Words, longest: int | None) -> TrainRow:
    """The tokens before a turn's own, with the answer in their place."""
    ids = np.concatenate((row.token_ids[:begins], words.introduction, words.answer)).astype(np.int32)
    if longest is not None and len(ids) > longest:
        problem = f"{row.key} with the reference answer has {len(ids)} tokens, and the policy reads {longest}"
        raise InvalidInput("data", problem, "Leave such rollouts out, or choose another reward than info-gain.")
    mask = np.arange(len(ids)) >= len(ids) - len(words.answer)
    return replace(
        row,
        turns=replace(row.turns.part(turn, turn + 1), temperature=(None,)),
        token_ids=ids,
        loss_mask=mask,
        behaviour_logprobs=np.zeros(len(ids), np.float32),
        entropy=np.full(len(ids), np.nan, np.float32),
        turn_index=np.zeros(len(ids), np.int16),
        span_kind=np.full(len(ids), NO_SPAN, np.int8),
    )


def _spelled(speller: Speller, answer: str) -> list[int]:
    ids = speller.words(answer)
    if not ids:
        raise InvalidInput("data", f"the reference answer {answer!r} has no token", "Choose other tasks.")
    return ids


def _refuse_roles(rows: Sequence[TrainRow]) -> None:
    roles = sorted({row.head.role for row in rows})
    if len(roles) > 1:
        problem = f"the reference answer is looked for in one role's contexts, and there are {' and '.join(roles)}"
        raise InvalidInput("data.roles", problem, "Name one of them.")
