"""What was said, as rows of tokens, by the tokenizer and template of the student that is to imitate it.

The only home of making ids from text in the trainer, and for imitation alone: such tokens have no log-probability, so
that nothing that needs a ratio takes them. Turns share a row only while a prompt begins with the very ids before it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

import numpy as np

from offing.core.episode import Dialogue, SegmentHead, Talk
from offing.core.model import Message
from offing.core.packed import Turns
from offing.core.rows import NO_SPAN, SPAN_CODES, TrainRow
from offing.core.tokens import SpanKind, TextSpan, token_spans


class Reader(Protocol):
    """A student's tokenizer with its chat template."""

    tokenizer_sha256: str
    template_sha256: str

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """Ids up to where the assistant begins."""
        ...

    def answer(self, messages: Sequence[Message], text: str) -> tuple[list[int], tuple[bytes, ...]]:
        """Ids of an assistant's words with the end of its turn, and the bytes that each decodes to."""
        ...


@dataclass(slots=True)
class _Open:
    """A row that turns are still added to."""

    turns: list[Talk]
    ids: list[int]
    mask: list[bool]
    index: list[int]
    kinds: list[int]


def rows_of(
    dialogue: Dialogue, reader: Reader, roles: Sequence[str] = (), *, longest: int | None = None
) -> list[TrainRow]:
    """The rows of a run whose text may be imitated. `roles` empty: of all; `longest`: tokens of a row at most.

    A turn that alone is longer than `longest` is left out.
    """
    heads = {head.idx: head for head in dialogue.segments}
    said = [turn for turn in dialogue.turns if _wanted(turn, roles)]
    rows: list[TrainRow] = []
    for segment, turns in groupby(sorted(said, key=_place), key=lambda turn: turn.segment or 0):
        parts = enumerate(_merged(turns, reader, longest))
        rows += [_row(dialogue, heads[segment], part, opened, reader) for part, opened in parts]
    return rows


def _wanted(turn: Talk, roles: Sequence[str]) -> bool:
    return turn.segment is not None and bool(turn.messages) and turn.teaches() and (not roles or turn.role in roles)


def _place(turn: Talk) -> tuple[int, int]:
    return turn.segment or 0, turn.place


def _merged(turns: Iterable[Talk], reader: Reader, longest: int | None) -> Iterator[_Open]:
    """Turns put together where one goes on from the ids of the one before."""
    row: _Open | None = None
    for turn in turns:
        prompt = reader.prompt(turn.messages)
        answer, pieces = reader.answer(turn.messages, turn.completion)
        if longest is not None and len(prompt) + len(answer) > longest:
            continue
        if row is None or prompt[: len(row.ids)] != row.ids:
            if row is not None:
                yield row
            row = _Open([], [], [], [], [])
        _add(row, turn, prompt[len(row.ids) :], answer, pieces)
    if row is not None:
        yield row


def _add(row: _Open, turn: Talk, prompt: Sequence[int], answer: Sequence[int], pieces: Sequence[bytes]) -> None:
    kinds = [NO_SPAN] * len(answer)
    spans = [TextSpan(SpanKind(span.kind), span.start_char, span.end_char) for span in turn.spans]
    for span in token_spans(turn.completion, pieces, spans):
        kinds[span.start : span.end] = [SPAN_CODES[span.kind]] * (span.end - span.start)
    row.index += [len(row.turns)] * (len(prompt) + len(answer))
    row.turns.append(turn)
    row.ids += [*prompt, *answer]
    row.mask += [False] * len(prompt) + [True] * len(answer)
    row.kinds += [NO_SPAN] * len(prompt) + kinds


def _row(dialogue: Dialogue, head: SegmentHead, part: int, row: _Open, reader: Reader) -> TrainRow:
    mask = np.array(row.mask, np.bool_)
    return TrainRow(
        episode=dialogue.episode,
        head=head,
        part=part,
        turns=_turns(row.turns),
        tokenizer_sha256=reader.tokenizer_sha256,
        template_sha256=reader.template_sha256,
        token_ids=np.array(row.ids, np.int32),
        loss_mask=mask,
        behaviour_logprobs=np.where(mask, np.float32(np.nan), np.float32(0)),
        entropy=np.full(len(mask), np.nan, np.float32),
        turn_index=np.array(row.index, np.int16),
        span_kind=np.array(row.kinds, np.int8),
    )


def _turns(turns: Sequence[Talk]) -> Turns:
    """Without temperature and policy: nothing was sampled from the student."""
    nothing = ("",) * len(turns)
    return Turns(
        seq=tuple(turn.seq for turn in turns),
        number=tuple(turn.number for turn in turns),
        temperature=(None,) * len(turns),
        top_p=(None,) * len(turns),
        policy=nothing,
        weights_sha256=nothing,
        engine_build=nothing,
        finish=tuple(turn.finish for turn in turns),
        done=tuple(turn.done for turn in turns),
        checkpoint_id=tuple(turn.checkpoint_id for turn in turns),
        state_key=nothing,
        action_key=nothing,
        quarantine=nothing,
    )
