"""A rollout's turns as the rows that the platform's record of them gives.

The only home of packing turns that were never stored; merging them is `offing.core.rows`' own doing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
import numpy.typing as npt

from offing.core.episode import Episode, SegmentHead
from offing.core.packed import PackedSegment, Spans, Turns
from offing.core.role_call import SegmentPosition
from offing.core.rows import TrainRow, merged_all
from offing.core.tokens import TextSpan, TokenSpan, TokenTrace, token_spans
from offing.core.trajectory import Fracture


@dataclass(frozen=True, slots=True)
class Turn:
    """One completion in its place."""

    seq: int
    number: int
    """Of the flow's loop. 0: outside it."""
    role: str
    place: SegmentPosition
    trace: TokenTrace
    spans: tuple[TextSpan, ...]
    temperature: float
    done: bool = False
    """The role ended the run with it."""
    trainable: str = "rl"

    def untrained(self) -> "Turn":
        return replace(self, trainable="none")


def rows_of(episodes: Sequence[Episode], turned: Sequence[Sequence[Turn]]) -> list[list[TrainRow]]:
    """The rows of each rollout."""
    packed = [(episode, segment) for episode, turns in zip(episodes, turned, strict=True) for segment in _packed(turns)]
    rows: dict[int, list[TrainRow]] = {id(episode): [] for episode in episodes}
    for (episode, _), made in zip(packed, merged_all(packed) if packed else [], strict=True):
        rows[id(episode)] += made
    return [rows[id(episode)] for episode in episodes]


def _packed(turns: Sequence[Turn]) -> list[PackedSegment]:
    def place(turn: Turn) -> tuple[int, int]:
        return turn.place.segment, turn.place.place

    return [_segment(list(own)) for _, own in groupby(sorted(turns, key=place), key=lambda turn: turn.place.segment)]


def _segment(turns: Sequence[Turn]) -> PackedSegment:
    offsets = [turn.place.kept_tokens if turn.place.place else 0 for turn in turns]
    prompts = [turn.trace.prompt_ids[offset:] for turn, offset in zip(turns, offsets, strict=True)]
    traces = [turn.trace for turn in turns]
    entropy = [nats for trace in traces for nats in trace.entropy or ()]
    masks = [np.packbits(np.ones(len(trace.completion_ids), np.uint8), bitorder="little") for trace in traces]
    return PackedSegment(
        head=_head(turns[0]),
        turns=_columns(turns),
        trainable=tuple(turn.trainable for turn in turns),
        tokenizer_sha256=tuple(trace.tokenizer_sha256 for trace in traces),
        template_sha256=tuple(trace.template_sha256 for trace in traces),
        offsets=tuple(offsets),
        prompt_counts=tuple(map(len, prompts)),
        completion_counts=tuple(len(trace.completion_ids) for trace in traces),
        entropy_counts=tuple(len(trace.entropy or ()) for trace in traces),
        ids=b"".join(_int24((*p, *trace.completion_ids)) for p, trace in zip(prompts, traces, strict=True)),
        logprobs=np.array([one for trace in traces for one in trace.logprobs], "<f4").tobytes(),
        entropy=np.array(entropy, "<f2").tobytes(),
        mask=b"".join(bits.tobytes() for bits in masks),
        spans=_spans(turns),
    )


def _head(turn: Turn) -> SegmentHead:
    place = turn.place
    why = place.fracture or Fracture.ROOT
    return SegmentHead(place.segment, turn.role, why.value, place.parent, place.parent_tokens)


def _columns(turns: Sequence[Turn]) -> Turns:
    blank = ("",) * len(turns)
    return Turns(
        seq=tuple(turn.seq for turn in turns),
        number=tuple(turn.number for turn in turns),
        temperature=tuple(turn.temperature for turn in turns),
        top_p=(1.0,) * len(turns),
        policy=tuple(turn.trace.policy for turn in turns),
        weights_sha256=tuple(turn.trace.weights_sha256 for turn in turns),
        engine_build=tuple(turn.trace.engine_build for turn in turns),
        finish=tuple(turn.trace.finish for turn in turns),
        done=tuple(turn.done for turn in turns),
        checkpoint_id=(None,) * len(turns),
        state_key=blank,
        action_key=blank,
        quarantine=blank,
    )


def _spans(turns: Sequence[Turn]) -> Spans:
    found: list[tuple[int, TokenSpan]] = [
        (turn.seq, span)
        for turn in turns
        for span in token_spans(turn.trace.text, turn.trace.pieces, turn.spans)
        if span.end > span.start
    ]
    return Spans(
        tuple(seq for seq, _ in found),
        tuple(span.kind.value for _, span in found),
        tuple(span.start for _, span in found),
        tuple(span.end for _, span in found),
    )


def _int24(ids: Sequence[int]) -> bytes:
    wide: npt.NDArray[np.uint8] = np.array(ids, "<i4").view(np.uint8).reshape(-1, 4)
    return wide[:, :3].tobytes()
