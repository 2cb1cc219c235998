"""Training rows from the text of rollouts, tokenized for the trained policy, for SFT.

Such tokens have no recorded logprobs, so they cannot be used where a ratio is needed. Role calls
share a row only while a prompt begins with exactly the ids before it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

import numpy as np

from offing.core.model import Message
from offing.core.packed_segment import PackedTurns
from offing.core.tokens import CompletionSpan, SpanKind, locate_token_spans
from offing.core.training_rows import NO_SPAN, SPAN_CODES, TrainingRow
from offing.core.trajectory_records import RoleCallRecord, SegmentInfo, TextTrajectory


class ChatTokenizer(Protocol):
    """A policy's tokenizer with its chat template."""

    tokenizer_sha256: str
    template_sha256: str

    def encode_prompt(self, messages: Sequence[Message]) -> list[int]:
        """Tokenize messages up to where the assistant's turn begins."""
        ...

    def encode_answer(self, messages: Sequence[Message], text: str) -> tuple[list[int], tuple[bytes, ...]]:
        """Tokenize an assistant's text with its end-of-turn token.

        Returns the ids and the bytes that each of them decodes to.
        """
        ...


@dataclass(slots=True)
class _OpenRow:
    """A row that role calls are still added to."""

    turns: list[RoleCallRecord]
    token_ids: list[int]
    loss_mask: list[bool]
    turn_index: list[int]
    span_kinds: list[int]


def build_text_rows(
    trajectory: TextTrajectory,
    tokenizer: ChatTokenizer,
    roles: Sequence[str] = (),
    *,
    max_row_tokens: int | None = None,
) -> list[TrainingRow]:
    """Build the rows of a run's trainable text. Empty `roles` means all roles.

    A row has at most `max_row_tokens` tokens. A role call that is longer is left out.
    """
    heads = {head.idx: head for head in trajectory.segments}
    calls = [turn for turn in trajectory.role_calls if _is_trainable(turn, roles)]
    rows: list[TrainingRow] = []
    for segment, turns in groupby(sorted(calls, key=_segment_position), key=lambda turn: turn.segment_idx or 0):
        parts = enumerate(_merge_calls(turns, tokenizer, max_row_tokens))
        rows += [_build_row(trajectory, heads[segment], part, opened, tokenizer) for part, opened in parts]
    return rows


def _is_trainable(turn: RoleCallRecord, roles: Sequence[str]) -> bool:
    return (
        turn.segment_idx is not None
        and bool(turn.messages)
        and turn.is_trainable_text()
        and (not roles or turn.role in roles)
    )


def _segment_position(turn: RoleCallRecord) -> tuple[int, int]:
    return turn.segment_idx or 0, turn.position


def _merge_calls(
    turns: Iterable[RoleCallRecord], tokenizer: ChatTokenizer, max_row_tokens: int | None
) -> Iterator[_OpenRow]:
    """Merge role calls into a row while each continues the ids of the one before."""
    row: _OpenRow | None = None
    for turn in turns:
        prompt = tokenizer.encode_prompt(turn.messages)
        answer, token_texts = tokenizer.encode_answer(turn.messages, turn.completion)
        if max_row_tokens is not None and len(prompt) + len(answer) > max_row_tokens:
            continue
        if row is None or prompt[: len(row.token_ids)] != row.token_ids:
            if row is not None:
                yield row
            row = _OpenRow([], [], [], [], [])
        _append_call(row, turn, prompt[len(row.token_ids) :], answer, token_texts)
    if row is not None:
        yield row


def _append_call(
    row: _OpenRow, turn: RoleCallRecord, prompt: Sequence[int], answer: Sequence[int], token_texts: Sequence[bytes]
) -> None:
    kinds = [NO_SPAN] * len(answer)
    spans = [CompletionSpan(SpanKind(span.kind), span.start_char, span.end_char) for span in turn.spans]
    for span in locate_token_spans(turn.completion, token_texts, spans):
        kinds[span.start : span.end] = [SPAN_CODES[span.kind]] * (span.end - span.start)
    row.turn_index += [len(row.turns)] * (len(prompt) + len(answer))
    row.turns.append(turn)
    row.token_ids += [*prompt, *answer]
    row.loss_mask += [False] * len(prompt) + [True] * len(answer)
    row.span_kinds += [NO_SPAN] * len(prompt) + kinds


def _build_row(
    trajectory: TextTrajectory, head: SegmentInfo, part: int, row: _OpenRow, tokenizer: ChatTokenizer
) -> TrainingRow:
    mask = np.array(row.loss_mask, np.bool_)
    return TrainingRow(
        metadata=trajectory.metadata,
        segment_info=head,
        part=part,
        turns=_pack_turns(row.turns),
        tokenizer_sha256=tokenizer.tokenizer_sha256,
        template_sha256=tokenizer.template_sha256,
        token_ids=np.array(row.token_ids, np.int32),
        loss_mask=mask,
        behavior_logprobs=np.where(mask, np.float32(np.nan), np.float32(0)),
        entropy=np.full(len(mask), np.nan, np.float32),
        turn_index=np.array(row.turn_index, np.int16),
        span_kind=np.array(row.span_kinds, np.int8),
    )


def _pack_turns(turns: Sequence[RoleCallRecord]) -> PackedTurns:
    """Pack role calls without temperature and policy, since they were not sampled from this policy."""
    nothing = ("",) * len(turns)
    return PackedTurns(
        seq=tuple(turn.seq for turn in turns),
        turn=tuple(turn.turn for turn in turns),
        temperature=(None,) * len(turns),
        top_p=(None,) * len(turns),
        policy=nothing,
        weights_sha256=nothing,
        engine_build=nothing,
        finish_reason=tuple(turn.finish_reason for turn in turns),
        is_final=tuple(turn.is_final for turn in turns),
        checkpoint_id=tuple(turn.checkpoint_id for turn in turns),
        state_key=nothing,
        action_key=nothing,
        quarantine=nothing,
    )
