"""Convert the turns of a rollout to the rows that the platform's record of them would give.

This packs turns that were never stored. `offing.core.training_rows` merges them.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
import numpy.typing as npt

from offing.core.packed_segment import PackedSegment, PackedSpans, PackedTurns
from offing.core.role_call import SegmentPosition
from offing.core.tokens import CompletionSpan, TokenSpan, TokenTrace, locate_token_spans
from offing.core.training_rows import TrainingRow, build_all_rows
from offing.core.trajectory import BoundaryReason
from offing.core.trajectory_records import SegmentInfo, TrajectoryMetadata


@dataclass(frozen=True, slots=True)
class Turn:
    """One completion with its position."""

    seq: int
    number: int
    """Turn of the graph's loop. 0 means outside of the loop."""
    role: str
    place: SegmentPosition
    trace: TokenTrace
    spans: tuple[CompletionSpan, ...]
    temperature: float
    done: bool = False
    """Whether the role ended the run with this completion."""
    trainable: str = "rl"

    def untrained(self) -> "Turn":
        return replace(self, trainable="none")


def rows_of(episodes: Sequence[TrajectoryMetadata], turned: Sequence[Sequence[Turn]]) -> list[list[TrainingRow]]:
    """Return the rows of each rollout."""
    packed = [(episode, segment) for episode, turns in zip(episodes, turned, strict=True) for segment in _packed(turns)]
    rows: dict[int, list[TrainingRow]] = {id(episode): [] for episode in episodes}
    for (episode, _), created in zip(packed, build_all_rows(packed) if packed else [], strict=True):
        rows[id(episode)] += created
    return [rows[id(episode)] for episode in episodes]


def _packed(turns: Sequence[Turn]) -> list[PackedSegment]:
    def place(turn: Turn) -> tuple[int, int]:
        return turn.place.segment_idx, turn.place.position

    return [
        _segment(list(own)) for _, own in groupby(sorted(turns, key=place), key=lambda turn: turn.place.segment_idx)
    ]


def _segment(turns: Sequence[Turn]) -> PackedSegment:
    offsets = [turn.place.kept_tokens if turn.place.position else 0 for turn in turns]
    prompts = [turn.trace.prompt_ids[offset:] for turn, offset in zip(turns, offsets, strict=True)]
    traces = [turn.trace for turn in turns]
    entropy = [nats for trace in traces for nats in trace.entropy or ()]
    masks = [np.packbits(np.ones(len(trace.completion_ids), np.uint8), bitorder="little") for trace in traces]
    return PackedSegment(
        segment_info=_head(turns[0]),
        turns=_columns(turns),
        trainable=tuple(turn.trainable for turn in turns),
        tokenizer_sha256=tuple(trace.tokenizer_sha256 for trace in traces),
        template_sha256=tuple(trace.template_sha256 for trace in traces),
        offsets=tuple(offsets),
        prompt_counts=tuple(map(len, prompts)),
        completion_counts=tuple(len(trace.completion_ids) for trace in traces),
        entropy_counts=tuple(len(trace.entropy or ()) for trace in traces),
        token_ids=b"".join(_int24((*p, *trace.completion_ids)) for p, trace in zip(prompts, traces, strict=True)),
        logprobs=np.array([one for trace in traces for one in trace.logprobs], "<f4").tobytes(),
        entropy=np.array(entropy, "<f2").tobytes(),
        loss_mask=b"".join(bits.tobytes() for bits in masks),
        spans=_spans(turns),
    )


def _head(turn: Turn) -> SegmentInfo:
    position = turn.place
    why = position.boundary_reason or BoundaryReason.ROOT
    return SegmentInfo(position.segment_idx, turn.role, why.value, position.parent_idx, position.shared_tokens)


def _columns(turns: Sequence[Turn]) -> PackedTurns:
    blank = ("",) * len(turns)
    return PackedTurns(
        seq=tuple(turn.seq for turn in turns),
        turn=tuple(turn.number for turn in turns),
        temperature=tuple(turn.temperature for turn in turns),
        top_p=(1.0,) * len(turns),
        policy=tuple(turn.trace.policy for turn in turns),
        weights_sha256=tuple(turn.trace.weights_sha256 for turn in turns),
        engine_build=tuple(turn.trace.engine_build for turn in turns),
        finish_reason=tuple(turn.trace.finish_reason for turn in turns),
        is_final=tuple(turn.done for turn in turns),
        checkpoint_id=(None,) * len(turns),
        state_key=tuple(hashlib.sha256(_int24(turn.trace.prompt_ids)).hexdigest()[:16] for turn in turns),
        action_key=blank,
        quarantine=blank,
    )


def _spans(turns: Sequence[Turn]) -> PackedSpans:
    results: list[tuple[int, TokenSpan]] = [
        (turn.seq, span)
        for turn in turns
        for span in locate_token_spans(turn.trace.text, turn.trace.token_bytes, turn.spans)
        if span.end > span.start
    ]
    return PackedSpans(
        tuple(seq for seq, _ in results),
        tuple(span.kind.value for _, span in results),
        tuple(span.start for _, span in results),
        tuple(span.end for _, span in results),
    )


def _int24(ids: Sequence[int]) -> bytes:
    wide: npt.NDArray[np.uint8] = np.array(ids, "<i4").view(np.uint8).reshape(-1, 4)
    return wide[:, :3].tobytes()
