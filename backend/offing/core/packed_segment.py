"""Packed segments: the tokens of a segment as concatenated bytes, with the lengths to split them.

This module needs no numpy; `core.training_rows` builds training rows from it.
"""

from dataclasses import dataclass, fields

from offing.core.trajectory_records import SegmentInfo


@dataclass(frozen=True, slots=True)
class PackedTurns:
    """Data of the role calls of a training row or a segment. Every tuple has one entry per role call."""

    seq: tuple[int, ...]
    """Step numbers. Rewards and checkpoints are looked up by them."""
    turn: tuple[int, ...]
    """Turns of the graph's loop, from 1. 0 means outside the loop."""
    temperature: tuple[float | None, ...]
    """Temperature as sent. `None` means that none was sent."""
    top_p: tuple[float | None, ...]
    policy: tuple[str, ...]
    """NAME@VERSION of the policy that sampled the completion."""
    weights_sha256: tuple[str, ...]
    engine_build: tuple[str, ...]
    finish_reason: tuple[str, ...]
    is_final: tuple[bool, ...]
    checkpoint_id: tuple[str | None, ...]
    state_key: tuple[str, ...]
    action_key: tuple[str, ...]
    quarantine: tuple[str, ...]
    """Reason for quarantine. Empty means that the role call is not quarantined."""

    def __len__(self) -> int:
        return len(self.seq)

    def subset(self, first: int, end: int) -> "PackedTurns":
        if (first, end) == (0, len(self)):
            return self
        return PackedTurns(*(getattr(self, f.name)[first:end] for f in fields(self)))


@dataclass(frozen=True, slots=True)
class PackedSpans:
    """Labeled ranges of a segment's completions whose tokens are known.

    Every tuple has one entry per span.
    """

    seq: tuple[int, ...] = ()
    """Step numbers of the role calls, ascending."""
    kind: tuple[str, ...] = ()
    start: tuple[int, ...] = ()
    """Index of the first completion id."""
    end: tuple[int, ...] = ()
    """Index after the last completion id."""


@dataclass(frozen=True, slots=True)
class PackedSegment:
    """Role calls of a segment that have token ids, in order.

    Their tokens are concatenated little-endian bytes, one role call after the other.
    """

    segment_info: SegmentInfo
    turns: PackedTurns
    trainable: tuple[str, ...]
    """`rl`, `sft` or `none` per role call."""
    tokenizer_sha256: tuple[str, ...]
    template_sha256: tuple[str, ...]
    offsets: tuple[int, ...]
    """Number of tokens of the segment before those that each role call adds."""
    prompt_counts: tuple[int, ...]
    completion_counts: tuple[int, ...]
    entropy_counts: tuple[int, ...]
    """Number of entropy values per role call. 0 means none."""
    token_ids: bytes
    """Unsigned 24-bit token ids: prompt ids and then completion ids of each role call."""
    logprobs: bytes
    """Logprobs of the completion ids as float32."""
    entropy: bytes
    """Entropy of the completion ids as float16, only for role calls that have it."""
    loss_mask: bytes
    """One bit per completion id, lowest bit first. Each role call begins with a new byte."""
    spans: PackedSpans = PackedSpans()
