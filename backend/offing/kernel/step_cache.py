"""Steps of the run that a claim keeps in memory, so that a node that looks back does not ask the store each time.

Only the claim appends, but for people's messages and control requests. Those show as a gap in the sequence, after which
messages are read again. The cache is bounded: older steps are read from the store.

A node that is run again must see the run as it was when it asked first. What is on record since the checkpoint is
therefore hidden until its call is made again.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager

from offing.core.evidence import EvidenceBook
from offing.core.provenance import label_in
from offing.core.step import Step, StepKind
from offing.kernel.store import StepStore

MAX_STEPS = 256
"""Steps that are kept."""

MAX_OBSERVATIONS = 10_000
"""The latest ones, whose passages are evidence."""


class StepCache:
    """Steps of one run as one claim knows them.

    `last_seq`: the run's last step when the claim began. `fresh`: the store has no step that a node may look back to.
    `unsaved`: what the claim appends is known here alone until its end, so none of it is dropped. `hidden`: steps that
    are on record and whose calls were not made again.
    """

    def __init__(
        self, store: StepStore, *, last_seq: int, fresh: bool, unsaved: bool = False, hidden: Iterable[int] = ()
    ) -> None:
        self._store, self._fresh, self._unsaved = store, fresh, unsaved
        self._hidden = set(hidden)
        self._first_hidden = min(self._hidden, default=0)
        self._most_hidden = len(self._hidden)
        self._latest_call = 0
        """The last step of a call that was made, or made again. What others appended after it is not seen either."""
        self.last_seq = last_seq
        """The last step that this claim knows of."""
        self._steps: OrderedDict[int, Step] = OrderedDict()
        self._kinds: dict[StepKind, deque[Step]] = {}
        self._messages: Sequence[Step] | None = [] if fresh else None
        self._gaps = 0
        """How often a step of somebody else was found among this claim's."""
        self._evidence: EvidenceBook | None = EvidenceBook() if fresh else None
        self._reading_evidence = asyncio.Lock()
        self._readers: dict[int, list[Step]] = {}
        """What is added while somebody reads, by reader."""

    def add(self, new: Sequence[Step]) -> None:
        """Add what this claim has appended."""
        for step in new:
            if step.seq != self.last_seq + 1 or step.kind is StepKind.HUMAN:
                self._messages, self._gaps = None, self._gaps + 1
            self.last_seq = max(self.last_seq, step.seq)
            self._steps[step.seq] = step
            if step.key is not None and step.seq not in self._hidden:
                self._latest_call = max(self._latest_call, step.seq)
            known = self._kinds.get(step.kind)
            if known is not None and not (known and known[-1].seq >= step.seq):  # else a reader has found it before
                known.append(step)
            if self._evidence is not None:
                _add_passages(self._evidence, step)
            for noted in self._readers.values():
                noted.append(step)
        while len(self._steps) > MAX_STEPS and not self._unsaved:
            self._steps.popitem(last=False)

    def reveal(self, step: Step) -> None:
        """The call of a recorded step was made again."""
        self._hidden.discard(step.seq)
        self._latest_call = max(self._latest_call, step.seq)

    def reveal_all(self) -> None:
        """The graph has stopped. A call that a graph within it did not make again, as its own checkpoint was behind the
        call, is the run's all the same."""
        self._hidden.clear()

    def list_unsaved(self, kind: StepKind) -> list[Step]:
        """Return this claim's steps of a kind that the store does not have yet."""
        return [step for step in self._steps.values() if step.kind is kind] if self._unsaved else []

    async def by_seq(self, seqs: Sequence[int]) -> tuple[Step, ...]:
        """Return steps in the order asked for."""
        missing = [seq for seq in seqs if seq not in self._steps]
        known = dict(self._steps)
        if missing:
            known |= {step.seq: step for step in await self._store.steps_by_seq(missing)}
        return tuple(known[seq] for seq in seqs if seq in known)

    async def last_of(self, kind: StepKind, limit: int) -> tuple[Step, ...]:
        """Return the last steps of a kind, oldest first."""
        wanted, kept = limit + self._most_hidden, self._kinds.get(kind)
        if kept is None or (kept.maxlen or 0) < wanted:
            with self._added_meanwhile() as added:
                found = {step.seq: step for step in await self._read(kind, wanted)}
            found |= {step.seq: step for step in added if step.kind is kind}
            kept = self._kinds[kind] = deque((found[seq] for seq in sorted(found)), maxlen=wanted)
        visible = (step for step in sorted(kept, key=lambda step: step.seq) if self._is_visible(step))
        return tuple(visible)[-limit:] if limit > 0 else ()

    async def messages(self, after: int) -> tuple[Step, ...]:
        """Return what people wrote after step `after`, as of this claim's last append."""
        found = self._messages
        while found is None:
            gaps = self._gaps
            read = await self._store.user_messages()
            if gaps == self._gaps:
                found = self._messages = read
        return tuple(step for step in found if step.seq > after and self._is_visible(step))

    async def evidence(self) -> EvidenceBook:
        """Return everything retrieved so far, in the order of the steps that record it. Later appends add to it."""
        async with self._reading_evidence:
            if self._evidence is None:
                book = EvidenceBook()
                with self._added_meanwhile() as added:
                    stored = await self._store.last_steps(StepKind.TOOL, MAX_OBSERVATIONS)
                for step in (*stored, *self.list_unsaved(StepKind.TOOL), *added):
                    _add_passages(book, step)
                self._evidence = book
            return self._evidence.without(self._hidden) if self._hidden else self._evidence

    def _is_visible(self, step: Step) -> bool:
        if step.key is not None or not self._hidden:
            return step.seq not in self._hidden
        return step.seq < self._first_hidden or step.seq < self._latest_call

    @contextmanager
    def _added_meanwhile(self) -> Generator[list[Step]]:
        """What other branches append while the block reads."""
        noted = list[Step]()
        self._readers[id(noted)] = noted
        try:
            yield noted
        finally:
            del self._readers[id(noted)]

    async def _read(self, kind: StepKind, limit: int) -> Sequence[Step]:
        if self._fresh and (len(self._steps) < MAX_STEPS or self._unsaved):
            return [step for step in self._steps.values() if step.kind is kind][-limit:]
        return [*await self._store.last_steps(kind, limit), *self.list_unsaved(kind)][-limit:]


def _add_passages(book: EvidenceBook, step: Step) -> None:
    if step.kind is StepKind.TOOL:
        book.add(step.payload["content"], label_in(step.payload), step.seq)
