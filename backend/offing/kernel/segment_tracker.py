"""The position of each role call among its run's segments, and the tokens from which a role continues.

Decided here before anything is written, so that it does not matter when that happens. What earlier claims left is read
back once, when it is first needed.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from offing.core.model import Answer, Message, Sampled
from offing.core.role_call import SegmentPosition
from offing.core.trajectory import Fracture, Tail, goes_on, text_goes_on
from offing.kernel.store import SegmentStore


class SegmentTracker:
    """One claim's. `fresh`: the store has nothing to read back."""

    def __init__(self, store: SegmentStore, *, fresh: bool) -> None:
        self._store, self._known = store, fresh
        self._tails: dict[str, Tail] = {}
        self._next = 0
        """Number of the run's next segment."""
        self._reading = asyncio.Lock()

    async def load(self) -> None:
        """Read what earlier claims left, before anything else is asked of this value."""
        if self._known:
            return
        async with self._reading:
            if not self._known:
                self._next, tails = await self._store.segment_tails()
                self._tails = dict(tails)
                self._known = True

    def assign_position(self, role: str, answer: Answer, said: Fracture | None) -> SegmentPosition | None:
        """The place of a role's new turn, which is its latest from now on. None: no text, so no segment.

        `said`: what the graph says of its context. Its word goes; without one, the tokens decide, or else the text.
        """
        if not answer.messages or not (answer.text or answer.trace):
            return None
        tail, ids = self._tails.get(role), answer.trace.prompt_ids if answer.trace else None
        if tail is None:
            place = self._opened(Fracture.ROOT)
        elif why := said or goes_on(tail, answer.messages, ids):
            place = self._opened(why, tail.segment, _shared(tail.ids, ids))
        else:
            place = _next_in(tail, answer.messages)
        self._tails[role] = _tail(place, answer)
        return place

    def assign_rejected(self, role: str, sampled: Sampled) -> SegmentPosition:
        """The place of a completion that no role could use: a segment of its own, from which nothing goes on."""
        tail, ids = self._tails.get(role), sampled.trace.prompt_ids
        if tail is None:
            return self._opened(Fracture.REJECTED)
        return self._opened(Fracture.REJECTED, tail.segment, _shared(tail.ids, ids))

    def placed(self, role: str, place: SegmentPosition | None, seq: int) -> None:
        """The turn at `place` has become step `seq`."""
        tail = self._tails.get(role)
        if place and tail and (tail.segment, tail.place) == (place.segment, place.place):
            self._tails[role] = replace(tail, seq=seq)

    async def recall(self, said: Sequence[Message]) -> tuple[int, ...] | None:
        """Prompt and completion ids of the latest turn of a role, if it was these messages, the last its completion."""
        await self.load()
        *prompt, completion = said
        for tail in self._tails.values():
            if tail.seq == completion.turn and tail.ids is not None:
                same = len(prompt) == len(tail.messages) and text_goes_on(tail, said)
                return tail.ids if same else None
        return None

    def latest(self) -> list[int]:
        """Seqs of each role's latest turn."""
        return sorted(tail.seq for tail in self._tails.values() if tail.seq)

    def _opened(self, why: Fracture, parent: int | None = None, shared: int | None = None) -> SegmentPosition:
        place = SegmentPosition(self._next, 0, why, parent, shared)
        self._next += 1
        return place


def _next_in(tail: Tail, messages: Sequence[Message]) -> SegmentPosition:
    kept = len(tail.messages) + 1 if text_goes_on(tail, messages) else 0
    return SegmentPosition(tail.segment, tail.place + 1, kept_messages=kept, kept_tokens=len(tail.ids or ()))


def _tail(place: SegmentPosition, answer: Answer) -> Tail:
    trace = answer.trace
    ids = trace.prompt_ids + trace.completion_ids if trace else None
    return Tail(place.segment, place.place, 0, answer.messages, answer.text, ids)


def _shared(old: tuple[int, ...] | None, new: tuple[int, ...] | None) -> int | None:
    """Tokens that both begin with. None: not known."""
    if old is None or new is None:
        return None
    return next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
