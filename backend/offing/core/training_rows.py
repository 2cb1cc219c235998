"""Training rows: the role calls of a segment as one flat sequence of tokens with per-token data.

Role calls share a row only while each recorded prompt begins with exactly the tokens before it.
Nothing is tokenized again to achieve this. This module needs numpy; it depends on no table and no
file format.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import accumulate, chain, pairwise
from operator import add, eq
from typing import Any

import numpy as np
import numpy.typing as npt

from offing.core.errors import OffingError
from offing.core.packed_segment import PackedSegment, PackedSpans, PackedTurns
from offing.core.tokens import SpanKind
from offing.core.trajectory_records import SegmentInfo, TrajectoryMetadata

Int32Array = npt.NDArray[np.int32]
Int16Array = npt.NDArray[np.int16]
Int8Array = npt.NDArray[np.int8]
BoolArray = npt.NDArray[np.bool_]
Float32Array = npt.NDArray[np.float32]
Indices = npt.NDArray[np.int64]

NO_SPAN = -1

SPAN_CODES = {kind.value: code for code, kind in enumerate(SpanKind)}
"""Codes of `TrainingRow.span_kind`, in the order in which the kinds are declared."""


class CorruptSegmentError(OffingError):
    """A stored segment has a gap: a role call continues from tokens that no earlier role call contains."""

    code = "corrupt_segment"


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRow:
    """One token sequence to forward. All arrays have the same length, with one entry per token."""

    metadata: TrajectoryMetadata
    segment_info: SegmentInfo
    part: int
    """Number of the row within its segment, from 0.

    A segment has more than one row only where a prompt did not begin with the tokens before it.
    """
    turns: PackedTurns
    tokenizer_sha256: str
    template_sha256: str
    token_ids: Int32Array
    loss_mask: BoolArray
    """`True` where the policy sampled the token and the token is trained."""
    behavior_logprobs: Float32Array
    """Logprobs under the distribution that was sampled from. 0 where `loss_mask` is `False`."""
    entropy: Float32Array
    """Entropy in nats with the precision of float16. NaN where it is unknown and outside `loss_mask`."""
    turn_index: Int16Array
    """Index into `turns` of the role call that each token belongs to."""
    span_kind: Int8Array
    """Code from `SPAN_CODES`. -1 means that the token is in no span."""

    def __len__(self) -> int:
        return len(self.token_ids)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TrainingRow):
            return NotImplemented
        return all(_is_same_value(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))

    __hash__ = None  # type: ignore[assignment]

    @property
    def key(self) -> str:
        """Stable key of the row: run, segment and part."""
        return f"{self.metadata.run_id}/{self.segment_info.idx}/{self.part}"


def build_rows(
    metadata: TrajectoryMetadata, segment: PackedSegment, *, include_quarantined: bool = False
) -> list[TrainingRow]:
    """Build the training rows of a segment. Raises CorruptSegmentError.

    Rows without a trained token are left out. Role calls that are not for `rl` stay as masked context.
    Role calls in quarantine do, too, unless `include_quarantined` is set.
    """
    return build_all_rows([(metadata, segment)], include_quarantined=include_quarantined)[0]


def build_all_rows(
    segments: Sequence[tuple[TrajectoryMetadata, PackedSegment]], *, include_quarantined: bool = False
) -> list[list[TrainingRow]]:
    """Build the training rows of each segment, see `build_rows`. The rows are views of shared arrays."""
    flat_rows = _FlatRows([segment for _, segment in segments], include_quarantined)
    return [flat_rows.rows_of_segment(nth, episode) for nth, (episode, _) in enumerate(segments)]


def _find_breaks(segment: PackedSegment) -> list[int]:
    """Return the indices of role calls that do not continue from all the tokens before them."""
    ends = accumulate(map(add, segment.prompt_counts, segment.completion_counts), initial=0)
    if all(map(eq, segment.offsets, ends)) and len(set(segment.tokenizer_sha256)) == 1:
        return []  # true for almost every segment
    broken: list[int] = []
    end = 0
    for nth, offset in enumerate(segment.offsets):
        if offset > end:
            raise CorruptSegmentError(
                f"role call {segment.turns.seq[nth]} starts at token {offset}, but the segment has only {end} tokens"
            )
        if nth and (offset != end or segment.tokenizer_sha256[nth] != segment.tokenizer_sha256[nth - 1]):
            broken.append(nth)
        end = offset + segment.prompt_counts[nth] + segment.completion_counts[nth]
    return broken


class _FlatRows:
    """The role calls of segments as flat arrays, without repeated tokens.

    All segments are processed at once, because numpy takes as long for one segment as for a hundred.
    """

    def __init__(self, segments: Sequence[PackedSegment], include_quarantined: bool) -> None:
        self.segments = segments
        counts = np.array([len(s.turns) for s in segments], np.int64)
        self.firsts = np.concatenate(([0], np.cumsum(counts)))
        prompts = np.array(_concat(s.prompt_counts for s in segments), np.int64)
        completions = np.array(_concat(s.completion_counts for s in segments), np.int64)
        self.starts = np.concatenate(([0], np.cumsum(prompts + completions)))
        self.heads = self.starts[:-1] + prompts
        before = np.cumsum(completions) - completions
        sampled: Indices = np.arange(int(completions.sum())) + np.repeat(self.heads - before, completions)
        self.ids = _unpack_ids(b"".join(s.token_ids for s in segments))
        uses = ((use, doubt) for s in segments for use, doubt in zip(s.trainable, s.turns.quarantine, strict=True))
        is_trained = [use == "rl" and (include_quarantined or not doubt) for use, doubt in uses]
        trained = _unpack_mask(b"".join(s.loss_mask for s in segments), completions) & np.repeat(
            np.array(is_trained, np.bool_), completions
        )
        self.mask = np.zeros(len(self.ids), np.bool_)
        self.mask[sampled] = trained
        logprobs = np.frombuffer(b"".join(s.logprobs for s in segments), "<f4")
        self.logprobs = np.zeros(len(self.ids), np.float32)
        self.logprobs[sampled] = np.where(trained, logprobs, np.float32(0))
        self.entropy = self._align_entropy(sampled, trained, completions)
        turn_indices = np.arange(len(prompts)) - np.repeat(self.firsts[:-1], counts)
        self.index = np.repeat(turn_indices.astype(np.int16), prompts + completions)
        self.kinds = self._span_kinds()

    def _align_entropy(self, sampled_mask: Indices, trained_mask: BoolArray, completions: Indices) -> Float32Array:
        entropy = np.full(len(self.ids), np.nan, np.float32)
        stored = np.frombuffer(b"".join(s.entropy for s in self.segments), "<f2").astype(np.float32)
        if len(stored):
            segment_has_entropy = np.array(_concat(s.entropy_counts for s in self.segments)) > 0
            has_entropy = np.repeat(segment_has_entropy, completions)
            entropy[sampled_mask[has_entropy]] = np.where(trained_mask[has_entropy], stored, np.float32(np.nan))
        return entropy

    def _span_kinds(self) -> Int8Array:
        """Return the span code of each token. A later span overrides an earlier one."""
        kinds = np.full(len(self.ids), NO_SPAN, np.int8)
        spans = [s.spans for s in self.segments]
        if any(s.seq for s in spans):
            heads = self.heads[self._turns_of_spans(spans)]
            starts, ends = (np.array(_concat(getattr(s, e) for s in spans), np.int64) for e in ("start", "end"))
            codes = np.array([SPAN_CODES[kind] for s in spans for kind in s.kind], np.int8)
            lengths = ends - starts
            before = np.cumsum(lengths) - lengths
            kinds[np.arange(int(lengths.sum())) + np.repeat(heads + starts - before, lengths)] = np.repeat(
                codes, lengths
            )
        return kinds

    def _turns_of_spans(self, spans: Sequence[PackedSpans]) -> Indices:
        """Return the index of the role call that contains each span."""
        turns, marks = (
            _number_seqs([one.seq for one in groups]) for groups in ([s.turns for s in self.segments], spans)
        )
        return np.searchsorted(turns, marks)

    def rows_of_segment(self, segment_index: int, metadata: TrajectoryMetadata) -> list[TrainingRow]:
        segment = self.segments[segment_index]
        edges = pairwise((0, *_find_breaks(segment), len(segment.turns)))
        rows = (self._build_row(segment_index, metadata, part, *edge) for part, edge in enumerate(edges))
        return [row for row in rows if row.loss_mask.any()]

    def _build_row(
        self, segment_index: int, metadata: TrajectoryMetadata, part: int, first: int, end: int
    ) -> TrainingRow:
        """Build the row of role calls `first` to `end` of a segment.

        The row begins with the context that the first role call continues.
        """
        segment, before = self.segments[segment_index], self.firsts[segment_index]
        a, b = self.starts[before + first], self.starts[before + end]
        context_ids = self._context_ids(segment, before, first)
        return TrainingRow(
            metadata=metadata,
            segment_info=segment.segment_info,
            part=part,
            turns=segment.turns.subset(first, end),
            tokenizer_sha256=segment.tokenizer_sha256[first],
            template_sha256=segment.template_sha256[first],
            token_ids=_append(context_ids, self.ids[a:b]),
            loss_mask=_append(np.zeros(len(context_ids), np.bool_), self.mask[a:b]),
            behavior_logprobs=_append(np.zeros(len(context_ids), np.float32), self.logprobs[a:b]),
            entropy=_append(np.full(len(context_ids), np.nan, np.float32), self.entropy[a:b]),
            turn_index=_append(
                np.zeros(len(context_ids), np.int16), self.index[a:b] - np.int16(first) if first else self.index[a:b]
            ),
            span_kind=_append(np.full(len(context_ids), NO_SPAN, np.int8), self.kinds[a:b]),
        )

    def _rebase_indices(self, a: int, b: int, first: int) -> Int16Array:
        """Return indices relative to `first`. Nothing is copied if `first` is 0."""
        return self.index[a:b] - np.int16(first) if first else self.index[a:b]

    def _context_ids(self, segment: PackedSegment, context_length: int, turn: int) -> Int32Array:
        """Return the tokens of the segment before this role call's own prompt ids. Empty for the first one."""
        offset, context_ids = segment.offsets[turn], np.empty(0, np.int32)
        while turn and len(context_ids) < offset:
            turn -= 1
            begins, end = segment.offsets[turn], offset - len(context_ids)
            if begins < end:
                context_ids = np.concatenate(
                    (self.ids[self.starts[context_length + turn] :][: end - begins], context_ids)
                )
        return context_ids


def _concat(parts: Iterable[Sequence[int]]) -> list[int]:
    return list(chain.from_iterable(parts))


def _number_seqs(seqs: Sequence[Sequence[int]]) -> Indices:
    """Return step numbers that differ between segments, ascending."""
    return np.array(_concat(seqs), np.int64) + np.repeat(np.arange(len(seqs)) << 40, [len(one) for one in seqs])


def _append(values: npt.NDArray[Any], new: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.concatenate((values, new)) if len(values) else new


def _unpack_ids(packed: bytes) -> Int32Array:
    """Unpack 24-bit ids to int32.

    Four bytes are read at every third byte, and the last of them is masked out.
    """
    overlapping = np.ndarray(len(packed) // 3, "<i4", packed + b"\0", strides=(3,))
    return overlapping & np.int32(2**24 - 1)


def _unpack_mask(packed: bytes, counts: Indices) -> BoolArray:
    """Unpack the mask of all completion ids. Each role call begins with a new byte."""
    bits = np.unpackbits(np.frombuffer(packed, np.uint8), bitorder="little").astype(np.bool_)
    starts = np.concatenate(([0], np.cumsum((counts + 7) // 8 * 8)))[:-1]
    firsts = np.concatenate(([0], np.cumsum(counts)))[:-1]
    return bits[np.arange(counts.sum()) + np.repeat(starts - firsts, counts)]


def _is_same_value(one: Any, other: Any) -> bool:
    if not hasattr(one, "dtype"):
        return one == other
    return hasattr(other, "dtype") and one.dtype == other.dtype and _is_same_array(one, other)


def _is_same_array(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
