"""A segment's tokens as the store gives them out: bytes end to end, with the lengths that take them apart.

The only home of that shape. Needs no numpy; `core.rows` makes rows of it.
"""

from dataclasses import dataclass, fields

from offing.core.episode import SegmentHead


@dataclass(frozen=True, slots=True)
class Turns:
    """What each turn of a row, or of a segment, brings; one entry a turn in every tuple."""

    seq: tuple[int, ...]
    """Its step's; rewards and checkpoints are found by it."""
    number: tuple[int, ...]
    """Turn of the graph's loop, from 1. 0: outside the loop."""
    temperature: tuple[float | None, ...]
    """As sent. None: not said."""
    top_p: tuple[float | None, ...]
    policy: tuple[str, ...]
    """NAME@VERSION that sampled it."""
    weights_sha256: tuple[str, ...]
    engine_build: tuple[str, ...]
    finish: tuple[str, ...]
    done: tuple[bool, ...]
    checkpoint_id: tuple[str | None, ...]
    state_key: tuple[str, ...]
    action_key: tuple[str, ...]
    quarantine: tuple[str, ...]
    """Why the record is in doubt. Empty: it is not."""

    def __len__(self) -> int:
        return len(self.seq)

    def part(self, first: int, end: int) -> "Turns":
        if (first, end) == (0, len(self)):
            return self
        return Turns(*(getattr(self, f.name)[first:end] for f in fields(self)))


@dataclass(frozen=True, slots=True)
class Spans:
    """Stretches of a segment's completions whose tokens are known; one entry a span in every tuple."""

    seq: tuple[int, ...] = ()
    """Of the turn, ascending."""
    kind: tuple[str, ...] = ()
    start: tuple[int, ...] = ()
    """Completion id."""
    end: tuple[int, ...] = ()
    """Excluded."""


@dataclass(frozen=True, slots=True)
class PackedSegment:
    """A segment's turns that have ids, in their order: their tokens as little-endian bytes, turn after turn."""

    head: SegmentHead
    turns: Turns
    trainable: tuple[str, ...]
    """rl, sft or none."""
    tokenizer_sha256: tuple[str, ...]
    template_sha256: tuple[str, ...]
    offsets: tuple[int, ...]
    """Tokens of the segment before each turn's own."""
    prompt_counts: tuple[int, ...]
    completion_counts: tuple[int, ...]
    entropy_counts: tuple[int, ...]
    """0: the turn has none."""
    ids: bytes
    """24 bits an id, unsigned: each turn's prompt ids, then its completion ids."""
    logprobs: bytes
    """float32, of completion ids."""
    entropy: bytes
    """float16, of the completion ids of the turns that have it."""
    mask: bytes
    """A bit a completion id, lowest first; each turn begins with a byte of its own."""
    spans: Spans = Spans()
