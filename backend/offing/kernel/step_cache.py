"""Steps of a run that a claim keeps in memory, so that nodes do not query the store for each read.

Only the claim appends steps, except for user messages and control requests. Those appear as a gap
in the sequence, after which messages are read again. The size of the cache is limited. Older steps
are read from the store.

A node that runs again must see the run as it was the first time. So the steps that were recorded
since the checkpoint are hidden until their calls are made again.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager

from offing.core.calculation import find_calculation
from offing.core.evidence import EvidenceIndex
from offing.core.provenance import parse_label
from offing.core.step import Step, StepKind
from offing.core.tool_batch import BatchSorter
from offing.kernel.run_store import StepStore

MAX_CACHED_STEPS = 256
"""Maximum number of cached steps."""

MAX_TOOL_RESULTS = 10_000
"""Maximum number of tool results whose passages become evidence. The latest are used."""


class StepCache:
    """The steps of one run in the memory of one claim.

    `last_seq` is the run's last step when the claim began. With `is_first_claim`, the store has no
    earlier steps. With `writes_at_exit`, the steps of the claim are not stored before its end, so none
    of them is evicted. `hidden` are recorded steps whose calls were not made again.
    """

    def __init__(
        self,
        store: StepStore,
        *,
        last_seq: int,
        is_first_claim: bool,
        writes_at_exit: bool = False,
        hidden: Iterable[int] = (),
    ) -> None:
        self._store, self._is_first_claim, self._writes_at_exit = store, is_first_claim, writes_at_exit
        self._hidden = set(hidden)
        self._has_ended = False
        self._first_hidden = min(self._hidden, default=0)
        self._max_hidden = len(self._hidden)
        self._latest_call = 0
        """The last step of a call that was made or repeated. Steps that others appended later are hidden, too."""
        self.last_seq = last_seq
        """The last step in the cache."""
        self._steps: OrderedDict[int, Step] = OrderedDict()
        self._kinds: dict[StepKind, deque[Step]] = {}
        self._messages: Sequence[Step] | None = [] if is_first_claim else None
        self._gaps = 0
        """Number of steps of others found between the steps of this claim."""
        self._evidence: EvidenceIndex | None = EvidenceIndex() if is_first_claim else None
        self._result_order = BatchSorter()
        """The order in which results become evidence."""
        self._reading_evidence = asyncio.Lock()
        self._readers: dict[int, list[Step]] = {}
        """Steps that were added during a read, by reader."""

    def add_steps(self, new: Sequence[Step]) -> None:
        """Add steps that this claim appended."""
        for step in new:
            if step.seq != self.last_seq + 1 or step.kind is StepKind.USER_MESSAGE:
                self._messages, self._gaps = None, self._gaps + 1
            self.last_seq = max(self.last_seq, step.seq)
            self._steps[step.seq] = step
            if step.call_key is not None and step.seq not in self._hidden:
                self._latest_call = max(self._latest_call, step.seq)
            seqs = self._kinds.get(step.kind)
            # otherwise a reader has added it already
            if seqs is not None and not (seqs and seqs[-1].seq >= step.seq):
                seqs.append(step)
            if self._evidence is not None:
                self._add_evidence(self._evidence, step)
            for noted in self._readers.values():
                noted.append(step)
        while len(self._steps) > MAX_CACHED_STEPS and not self._writes_at_exit:
            self._steps.popitem(last=False)

    def reveal_step(self, step: Step) -> None:
        """Make a recorded step visible, because its call was made again."""
        self._hidden.discard(step.seq)
        self._latest_call = max(self._latest_call, step.seq)

    def reveal_all(self) -> None:
        """Make all steps visible, because the graph has stopped.

        A subgraph whose own checkpoint is later than a call does not repeat it, but the call belongs to the
        run.
        """
        self._hidden.clear()
        self._has_ended = True
        self._add_incomplete_batches()

    def list_unsaved(self, kind: StepKind) -> list[Step]:
        """Return this claim's steps of a kind that are not stored yet."""
        return [step for step in self._steps.values() if step.kind is kind] if self._writes_at_exit else []

    async def get_steps(self, seqs: Sequence[int]) -> tuple[Step, ...]:
        """Return steps in the requested order."""
        missing = [seq for seq in seqs if seq not in self._steps]
        steps = dict(self._steps)
        if missing:
            steps |= {step.seq: step for step in await self._store.get_steps(missing)}
        return tuple(steps[seq] for seq in seqs if seq in steps)

    async def last_steps(self, kind: StepKind, limit: int) -> tuple[Step, ...]:
        """Return the last steps of a kind, oldest first."""
        read_limit, seqs = limit + self._max_hidden, self._kinds.get(kind)
        if seqs is None or (seqs.maxlen or 0) < read_limit:
            with self._collect_added() as added:
                steps = {step.seq: step for step in await self._read_last_steps(kind, read_limit)}
            steps |= {step.seq: step for step in added if step.kind is kind}
            seqs = self._kinds[kind] = deque((steps[seq] for seq in sorted(steps)), maxlen=read_limit)
        visible = (step for step in sorted(seqs, key=lambda step: step.seq) if self._is_visible(step))
        return tuple(visible)[-limit:] if limit > 0 else ()

    async def get_user_messages(self, after_seq: int) -> tuple[Step, ...]:
        """Return user messages after step `after_seq`, as of the last append of this claim."""
        user_messages = self._messages
        while user_messages is None:
            gaps = self._gaps
            read = await self._store.list_user_messages()
            if gaps == self._gaps:
                user_messages = self._messages = read
        return tuple(step for step in user_messages if step.seq > after_seq and self._is_visible(step))

    async def get_evidence(self) -> EvidenceIndex:
        """Return all evidence so far, in the order of its steps. Later appends add to the returned index."""
        async with self._reading_evidence:
            if self._evidence is None:
                book = EvidenceIndex()
                with self._collect_added() as added:
                    stored = await self._store.last_steps(StepKind.TOOL_RESULT, MAX_TOOL_RESULTS)
                for step in (*stored, *self.list_unsaved(StepKind.TOOL_RESULT), *added):
                    self._add_evidence(book, step)
                self._evidence = book
                self._add_incomplete_batches()
            return self._evidence.exclude_steps(self._hidden) if self._hidden else self._evidence

    def _add_evidence(self, evidence: EvidenceIndex, step: Step) -> None:
        """Add what a step retrieved. The results of a batch become evidence together, in the order of its calls."""
        if step.kind is StepKind.TOOL_RESULT:
            for result in self._result_order.add(step):
                _add_passages(evidence, result)

    def _add_incomplete_batches(self) -> None:
        """Add the results of batches that are never completed, because the graph has stopped."""
        if self._has_ended and self._evidence is not None:
            for result in self._result_order.take_rest():
                _add_passages(self._evidence, result)

    def _is_visible(self, step: Step) -> bool:
        if step.call_key is not None or not self._hidden:
            return step.seq not in self._hidden
        return step.seq < self._first_hidden or step.seq < self._latest_call

    @contextmanager
    def _collect_added(self) -> Generator[list[Step]]:
        """Collect the steps that other branches append while the block reads."""
        noted = list[Step]()
        self._readers[id(noted)] = noted
        try:
            yield noted
        finally:
            del self._readers[id(noted)]

    async def _read_last_steps(self, kind: StepKind, limit: int) -> Sequence[Step]:
        if self._is_first_claim and (len(self._steps) < MAX_CACHED_STEPS or self._writes_at_exit):
            return [step for step in self._steps.values() if step.kind is kind][-limit:]
        return [*await self._store.last_steps(kind, limit), *self.list_unsaved(kind)][-limit:]


def _add_passages(evidence: EvidenceIndex, step: Step) -> None:
    evidence.add(step.payload["content"], parse_label(step.payload), step.seq)
    if (result := find_calculation(step.payload)) is not None:
        evidence.add_calculation(result, step.seq)
