"""Tracks the segment position of each role call, and the tokens from which a role continues.

Positions are assigned before anything is written, so they do not depend on the order of writes. The
segments of earlier claims are read once, when they are first needed.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from offing.core.model import EngineResponse, Message, SampledCompletion
from offing.core.role_call import SegmentPosition
from offing.core.trajectory import BoundaryReason, SegmentTail, find_boundary, is_text_continuation
from offing.kernel.run_store import SegmentStore


class SegmentTracker:
    """The segments of one claim. With `is_first_claim`, the store has nothing to read back."""

    def __init__(self, store: SegmentStore, *, is_first_claim: bool) -> None:
        self._store, self._is_loaded = store, is_first_claim
        self._tails: dict[str, SegmentTail] = {}
        self._next_segment = 0
        """Number of the run's next segment."""
        self._load_lock = asyncio.Lock()

    async def load(self) -> None:
        """Read the segments of earlier claims. Await it before any other method."""
        if self._is_loaded:
            return
        async with self._load_lock:
            if not self._is_loaded:
                self._next_segment, tails = await self._store.get_segment_tails()
                self._tails = dict(tails)
                self._is_loaded = True

    def assign_position(
        self, role: str, response: EngineResponse, boundary: BoundaryReason | None
    ) -> SegmentPosition | None:
        """Return the segment position of a new role call, which becomes the latest of its role.

        `None` means that the call has no text, so it belongs to no segment. `boundary` is the reason that
        the graph gives for a new segment. Without one, the tokens decide, or the text if there are no
        tokens.
        """
        if not response.messages or not (response.text or response.trace):
            return None
        tail, ids = self._tails.get(role), response.trace.prompt_ids if response.trace else None
        if tail is None:
            position = self._open_segment(BoundaryReason.ROOT)
        elif why := boundary or find_boundary(tail, response.messages, ids):
            position = self._open_segment(why, tail.segment, _count_shared_tokens(tail.token_ids, ids))
        else:
            position = _next_position(tail, response.messages)
        self._tails[role] = _build_tail(position, response)
        return position

    def assign_rejected(self, role: str, sampled: SampledCompletion) -> SegmentPosition:
        """Return the segment position of a rejected completion: a separate segment that is never continued."""
        tail, ids = self._tails.get(role), sampled.trace.prompt_ids
        if tail is None:
            return self._open_segment(BoundaryReason.REJECTED)
        return self._open_segment(BoundaryReason.REJECTED, tail.segment, _count_shared_tokens(tail.token_ids, ids))

    def set_tail_seq(self, role: str, position: SegmentPosition | None, seq: int) -> None:
        """Set the step of the role call at `position`."""
        tail = self._tails.get(role)
        if position and tail and (tail.segment, tail.position) == (position.segment_idx, position.position):
            self._tails[role] = replace(tail, seq=seq)

    async def find_prefix(self, messages: Sequence[Message]) -> tuple[int, ...] | None:
        """Return the token ids of the role call whose prompt and completion are these messages.

        The last message is the completion. `None` means that no latest role call matches.
        """
        await self.load()
        *prompt, completion = messages
        for tail in self._tails.values():
            if tail.seq == completion.turn and tail.token_ids is not None:
                same = len(prompt) == len(tail.messages) and is_text_continuation(tail, messages)
                return tail.token_ids if same else None
        return None

    def list_latest_seqs(self) -> list[int]:
        """Return the step of each role's latest call."""
        return sorted(tail.seq for tail in self._tails.values() if tail.seq)

    def _open_segment(
        self, reason: BoundaryReason, parent: int | None = None, shared: int | None = None
    ) -> SegmentPosition:
        position = SegmentPosition(self._next_segment, 0, reason, parent, shared)
        self._next_segment += 1
        return position


def _next_position(tail: SegmentTail, messages: Sequence[Message]) -> SegmentPosition:
    message_count = len(tail.messages) + 1 if is_text_continuation(tail, messages) else 0
    return SegmentPosition(
        tail.segment, tail.position + 1, kept_messages=message_count, kept_tokens=len(tail.token_ids or ())
    )


def _build_tail(position: SegmentPosition, response: EngineResponse) -> SegmentTail:
    trace = response.trace
    ids = trace.prompt_ids + trace.completion_ids if trace else None
    return SegmentTail(position.segment_idx, position.position, 0, response.messages, response.text, ids)


def _count_shared_tokens(old: tuple[int, ...] | None, new: tuple[int, ...] | None) -> int | None:
    """Return the length of the common prefix in tokens. `None` means that it is unknown."""
    if old is None or new is None:
        return None
    return next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
