"""Rows as a learner forwards them: a segment's turns as one flat sequence of tokens with what belongs to each token.

The only home of the merging rule: turns share a row only while each recorded prompt begins with the very tokens before
it; nothing is tokenised again to make it so. Needs numpy; knows no table and no file format.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import accumulate, chain, pairwise
from operator import add, eq
from typing import Any

import numpy as np
import numpy.typing as npt

from offing.core.episode import Episode, SegmentHead
from offing.core.errors import OffingError
from offing.core.packed import PackedSegment, Spans, Turns
from offing.core.tokens import SpanKind

Ints = npt.NDArray[np.int32]
Small = npt.NDArray[np.int16]
Tiny = npt.NDArray[np.int8]
Bits = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]
Places = npt.NDArray[np.int64]

NO_SPAN = -1

SPAN_CODES = {kind.value: code for code, kind in enumerate(SpanKind)}
"""What the numbers of `TrainRow.span_kind` stand for, in the order in which the kinds are declared."""


class BrokenSegment(OffingError):
    """A stored segment has a gap: a turn goes on from tokens that no turn before it holds."""

    code = "broken_segment"


@dataclass(frozen=True, slots=True, eq=False)
class TrainRow:
    """One sequence to forward. All arrays have length L, one entry a token."""

    episode: Episode
    head: SegmentHead
    part: int
    """From 0 within its segment; a segment has more than one only where a prompt did not begin with what was before."""
    turns: Turns
    tokenizer_sha256: str
    template_sha256: str
    token_ids: Ints
    loss_mask: Bits
    """True: sampled by the policy, and to be trained."""
    behaviour_logprobs: Floats
    """Of the distribution sampled from; 0 where `loss_mask` is False."""
    entropy: Floats
    """Nats, as exact as float16; NaN where it is not known, and outside `loss_mask`."""
    turn_index: Small
    """Which entry of `turns` a token came with."""
    span_kind: Tiny
    """`SPAN_CODES`; -1: in no span."""

    def __len__(self) -> int:
        return len(self.token_ids)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TrainRow):
            return NotImplemented
        return all(_same(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))

    __hash__ = None  # type: ignore[assignment]

    @property
    def key(self) -> str:
        """Names the row for good: run, segment and part."""
        return f"{self.episode.run}/{self.head.idx}/{self.part}"


def merged(episode: Episode, segment: PackedSegment, *, quarantined: bool = False) -> list[TrainRow]:
    """A segment's rows; those without a token to train are left out. Raises BrokenSegment.

    Turns that are not for `rl` stay as context, masked; so do quarantined ones unless they are asked for.
    """
    return merged_all([(episode, segment)], quarantined=quarantined)[0]


def merged_all(segments: Sequence[tuple[Episode, PackedSegment]], *, quarantined: bool = False) -> list[list[TrainRow]]:
    """The rows of each segment, see `merged`; views of arrays that all of them share."""
    laid = _Laid([segment for _, segment in segments], quarantined)
    return [laid.rows(nth, episode) for nth, (episode, _) in enumerate(segments)]


def _breaks(segment: PackedSegment) -> list[int]:
    """Turns that do not go on from all the tokens before them."""
    ends = accumulate(map(add, segment.prompt_counts, segment.completion_counts), initial=0)
    if all(map(eq, segment.offsets, ends)) and len(set(segment.tokenizer_sha256)) == 1:
        return []  # as almost every segment
    broken: list[int] = []
    end = 0
    for nth, offset in enumerate(segment.offsets):
        if offset > end:
            raise BrokenSegment(f"turn {segment.turns.seq[nth]} goes on from token {offset}, and there are {end}")
        if nth and (offset != end or segment.tokenizer_sha256[nth] != segment.tokenizer_sha256[nth - 1]):
            broken.append(nth)
        end = offset + segment.prompt_counts[nth] + segment.completion_counts[nth]
    return broken


class _Laid:
    """Segments' turns laid out one after the other, without what they repeat.

    All segments at once, because numpy costs as much for a segment as for a hundred.
    """

    def __init__(self, segments: Sequence[PackedSegment], quarantined: bool) -> None:
        self.segments = segments
        counts = np.array([len(s.turns) for s in segments], np.int64)
        self.firsts = np.concatenate(([0], np.cumsum(counts)))
        prompts = np.array(_end_to_end(s.prompt_counts for s in segments), np.int64)
        completions = np.array(_end_to_end(s.completion_counts for s in segments), np.int64)
        self.starts = np.concatenate(([0], np.cumsum(prompts + completions)))
        self.heads = self.starts[:-1] + prompts
        before = np.cumsum(completions) - completions
        sampled: Places = np.arange(int(completions.sum())) + np.repeat(self.heads - before, completions)
        self.ids = _ids(b"".join(s.ids for s in segments))
        judged = ((use, doubt) for s in segments for use, doubt in zip(s.trainable, s.turns.quarantine, strict=True))
        wanted = [use == "rl" and (quarantined or not doubt) for use, doubt in judged]
        trained = _bits(b"".join(s.mask for s in segments), completions) & np.repeat(
            np.array(wanted, np.bool_), completions
        )
        self.mask = np.zeros(len(self.ids), np.bool_)
        self.mask[sampled] = trained
        logprobs = np.frombuffer(b"".join(s.logprobs for s in segments), "<f4")
        self.logprobs = np.zeros(len(self.ids), np.float32)
        self.logprobs[sampled] = np.where(trained, logprobs, np.float32(0))
        self.entropy = self._entropy(sampled, trained, completions)
        places = np.arange(len(prompts)) - np.repeat(self.firsts[:-1], counts)
        self.index = np.repeat(places.astype(np.int16), prompts + completions)
        self.kinds = self._kinds()

    def _entropy(self, sampled: Places, trained: Bits, completions: Places) -> Floats:
        entropy = np.full(len(self.ids), np.nan, np.float32)
        stored = np.frombuffer(b"".join(s.entropy for s in self.segments), "<f2").astype(np.float32)
        if len(stored):
            known = np.array(_end_to_end(s.entropy_counts for s in self.segments)) > 0
            given = np.repeat(known, completions)
            entropy[sampled[given]] = np.where(trained[given], stored, np.float32(np.nan))
        return entropy

    def _kinds(self) -> Tiny:
        """A later span lies over an earlier one."""
        kinds = np.full(len(self.ids), NO_SPAN, np.int8)
        spans = [s.spans for s in self.segments]
        if any(s.seq for s in spans):
            heads = self.heads[self._spoken(spans)]
            starts, ends = (np.array(_end_to_end(getattr(s, e) for s in spans), np.int64) for e in ("start", "end"))
            codes = np.array([SPAN_CODES[kind] for s in spans for kind in s.kind], np.int8)
            lengths = ends - starts
            before = np.cumsum(lengths) - lengths
            kinds[np.arange(int(lengths.sum())) + np.repeat(heads + starts - before, lengths)] = np.repeat(
                codes, lengths
            )
        return kinds

    def _spoken(self, spans: Sequence[Spans]) -> Places:
        """Which of all turns each span lies in."""
        turns, marks = (_numbered([one.seq for one in found]) for found in ([s.turns for s in self.segments], spans))
        return np.searchsorted(turns, marks)

    def rows(self, nth: int, episode: Episode) -> list[TrainRow]:
        segment = self.segments[nth]
        edges = pairwise((0, *_breaks(segment), len(segment.turns)))
        rows = (self._row(nth, episode, part, *edge) for part, edge in enumerate(edges))
        return [row for row in rows if row.loss_mask.any()]

    def _row(self, nth: int, episode: Episode, part: int, first: int, end: int) -> TrainRow:
        """Turns `first` to `end` of a segment, with the part of it that the first goes on from."""
        segment, before = self.segments[nth], self.firsts[nth]
        a, b = self.starts[before + first], self.starts[before + end]
        known = self._context(segment, before, first)
        return TrainRow(
            episode=episode,
            head=segment.head,
            part=part,
            turns=segment.turns.part(first, end),
            tokenizer_sha256=segment.tokenizer_sha256[first],
            template_sha256=segment.template_sha256[first],
            token_ids=_after(known, self.ids[a:b]),
            loss_mask=_after(np.zeros(len(known), np.bool_), self.mask[a:b]),
            behaviour_logprobs=_after(np.zeros(len(known), np.float32), self.logprobs[a:b]),
            entropy=_after(np.full(len(known), np.nan, np.float32), self.entropy[a:b]),
            turn_index=_after(
                np.zeros(len(known), np.int16), self.index[a:b] - np.int16(first) if first else self.index[a:b]
            ),
            span_kind=_after(np.full(len(known), NO_SPAN, np.int8), self.kinds[a:b]),
        )

    def _index(self, a: int, b: int, first: int) -> Small:
        """Places counted from `first` on; no copy where they are so already."""
        return self.index[a:b] - np.int16(first) if first else self.index[a:b]

    def _context(self, segment: PackedSegment, before: int, turn: int) -> Ints:
        """The tokens of the segment before this turn's own prompt ids; empty for a first turn."""
        offset, known = segment.offsets[turn], np.empty(0, np.int32)
        while turn and len(known) < offset:
            turn -= 1
            begins, end = segment.offsets[turn], offset - len(known)
            if begins < end:
                known = np.concatenate((self.ids[self.starts[before + turn] :][: end - begins], known))
        return known


def _end_to_end(parts: Iterable[Sequence[int]]) -> list[int]:
    return list(chain.from_iterable(parts))


def _numbered(seqs: Sequence[Sequence[int]]) -> Places:
    """Steps of many segments as numbers that differ from segment to segment, ascending."""
    return np.array(_end_to_end(seqs), np.int64) + np.repeat(np.arange(len(seqs)) << 40, [len(one) for one in seqs])


def _after(known: npt.NDArray[Any], new: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.concatenate((known, new)) if len(known) else new


def _ids(packed: bytes) -> Ints:
    """24 bits an id as int32: four bytes are read at every third, and the byte of the next id is dropped."""
    overlapping = np.ndarray(len(packed) // 3, "<i4", packed + b"\0", strides=(3,))
    return overlapping & np.int32(2**24 - 1)


def _bits(packed: bytes, counts: Places) -> Bits:
    """The mask of all completion ids; turns begin with bytes of their own."""
    bits = np.unpackbits(np.frombuffer(packed, np.uint8), bitorder="little").astype(np.bool_)
    starts = np.concatenate(([0], np.cumsum((counts + 7) // 8 * 8)))[:-1]
    firsts = np.concatenate(([0], np.cumsum(counts)))[:-1]
    return bits[np.arange(counts.sum()) + np.repeat(starts - firsts, counts)]


def _same(one: Any, other: Any) -> bool:
    if not hasattr(one, "dtype"):
        return one == other
    return hasattr(other, "dtype") and one.dtype == other.dtype and _alike(one, other)


def _alike(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
