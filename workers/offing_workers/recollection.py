"""What a claim remembers of its own run, so that a node that looks back does not ask Postgres each time.

Only the owner appends, but for people's messages and wishes; those show as a gap in the sequence, after which they are
read again. Bounded: older steps are read from Postgres.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from uuid import UUID

from offing.core.evidence import EvidenceBook
from offing.core.provenance import label_in
from offing.core.step import Step, StepKind
from offing.storage import steps
from offing.storage.pool import Database

MOST = 256
"""Steps that are kept."""

OBSERVATIONS = 10_000
"""The latest ones, whose passages are evidence."""


class Recollection:
    """Steps of one run as one claim knows them. `last_seq`: the run's last step when the claim began.

    `at_exit`: what the claim appends is known here alone until its end, so none of it is dropped.
    """

    def __init__(
        self, database: Database, tenant: UUID, run: UUID, *, last_seq: int, fresh: bool, at_exit: bool = False
    ) -> None:
        self._database, self._tenant, self._run, self._fresh = database, tenant, run, fresh
        self.last_seq = last_seq
        """The last step that this claim knows of."""
        self._steps: OrderedDict[int, Step] = OrderedDict()
        self._kinds: dict[StepKind, deque[Step]] = {}
        self._messages: list[Step] | None = [] if fresh else None
        self._gaps = 0
        """How often somebody else's step was found among this claim's."""
        self._at_exit = at_exit
        self._evidence: EvidenceBook | None = EvidenceBook() if fresh else None
        self._reading_evidence = asyncio.Lock()
        self._readers: dict[int, list[Step]] = {}
        """What is noted while somebody reads, by reader."""

    def note(self, new: Sequence[Step]) -> None:
        """Remember what this claim has appended."""
        for step in new:
            if step.seq != self.last_seq + 1:
                self._messages, self._gaps = None, self._gaps + 1
            self.last_seq = max(self.last_seq, step.seq)
            self._steps[step.seq] = step
            known = self._kinds.get(step.kind)
            if known is not None and not (known and known[-1].seq >= step.seq):  # else a reader has found it before
                known.append(step)
            if self._evidence is not None:
                _retrieved(self._evidence, step)
            for noted in self._readers.values():
                noted.append(step)
        while len(self._steps) > MOST and not self._at_exit:
            self._steps.popitem(last=False)

    def own(self, kind: StepKind) -> list[Step]:
        """This claim's steps of a kind that nobody else can know yet. None but under durability `exit`."""
        return [step for step in self._steps.values() if step.kind is kind] if self._at_exit else []

    async def by_seq(self, seqs: Sequence[int]) -> tuple[Step, ...]:
        """Steps in the order asked for."""
        missing = [seq for seq in seqs if seq not in self._steps]
        known = dict(self._steps)
        if missing:
            async with self._database.transaction(self._tenant) as connection:
                known |= {step.seq: step for step in await steps.by_seq(connection, self._run, missing)}
        return tuple(known[seq] for seq in seqs if seq in known)

    async def last_of(self, kind: StepKind, most: int) -> tuple[Step, ...]:
        """The last steps of a kind, oldest first."""
        kept = self._kinds.get(kind)
        if kept is None or (kept.maxlen or 0) < most:
            with self._beside() as noted:
                found = {step.seq: step for step in await self._read(kind, most)}
            found |= {step.seq: step for step in noted if step.kind is kind}
            kept = self._kinds[kind] = deque((found[seq] for seq in sorted(found)), maxlen=most)
        return tuple(sorted(kept, key=lambda step: step.seq))[-most:] if most > 0 else ()

    async def messages(self, after: int) -> tuple[Step, ...]:
        """What people wrote, as of this claim's last append."""
        found = self._messages
        while found is None:
            gaps = self._gaps
            async with self._database.transaction(self._tenant) as connection:
                read = await steps.messages(connection, self._run, 0)
            if gaps == self._gaps:
                found = self._messages = read
        return tuple(step for step in found if step.seq > after)

    async def evidence(self) -> EvidenceBook:
        """Everything retrieved so far, in the order of the steps that record it, and what is appended from now on."""
        async with self._reading_evidence:
            if self._evidence is None:
                book = EvidenceBook()
                with self._beside() as noted:
                    async with self._database.transaction(self._tenant) as connection:
                        stored = await steps.last_of_kind(connection, self._run, StepKind.TOOL, OBSERVATIONS)
                for step in (*stored, *self.own(StepKind.TOOL), *noted):
                    _retrieved(book, step)
                self._evidence = book
            return self._evidence

    @contextmanager
    def _beside(self) -> Generator[list[Step]]:
        """What other branches append while the block reads."""
        noted = list[Step]()
        self._readers[id(noted)] = noted
        try:
            yield noted
        finally:
            del self._readers[id(noted)]

    async def _read(self, kind: StepKind, most: int) -> Sequence[Step]:
        if self._fresh and (len(self._steps) < MOST or self._at_exit):
            return [step for step in self._steps.values() if step.kind is kind][-most:]
        async with self._database.transaction(self._tenant) as connection:
            stored = await steps.last_of_kind(connection, self._run, kind, most)
        return [*stored, *self.own(kind)][-most:]


def _retrieved(book: EvidenceBook, step: Step) -> None:
    """Take up the passages of an observation."""
    if step.kind is StepKind.TOOL:
        book.add(step.payload["content"], label_in(step.payload))
