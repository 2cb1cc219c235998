"""The call journal of one claim: results that are on record, and appends to it.

Survives an absence of the store. What is to be written was often paid for, so it is tried until it is written, the run
is somebody else's, or the slice is cancelled; before each further try the journal looks whether the one before was
committed. With `at_end` appends stay in memory until the slice ends: nobody else writes to such a run while it is
claimed, so their places are foreseen, and proved when they are written.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Protocol

from offing.core.errors import AlreadyRecorded, Fenced, OffingError, Unavailable
from offing.core.step import CallKey, Step, StepDraft, place_step
from offing.core.tool import Effect
from offing.finishing import finished
from offing.kernel.call_key import Call
from offing.kernel.recorded_calls import RecordedCalls
from offing.kernel.step_cache import StepCache
from offing.kernel.store import Entry, Hook, JournalStore, LiveSink, StepStore
from offing.kernel.usage import NOTHING, Charge, UsageLedger
from offing.telemetry.redaction import without_secrets

RETRY_SECONDS = 0.1
"""Time between tries while the store is unreachable."""


class RecordStore(JournalStore, StepStore, Protocol):
    """What a journal needs of its store."""


@dataclass(frozen=True, slots=True)
class _Append:
    """An append under way. The first `buffered` entries were left for it by others."""

    entries: tuple[Entry, ...]
    buffered: int
    charge: Charge

    @property
    def keys(self) -> set[CallKey]:
        return {e.draft.key for e in self.entries if e.draft.key is not None}


@dataclass(frozen=True, slots=True)
class _Foreseen:
    """An append that is written at the end of the slice."""

    entries: tuple[Entry, ...]
    steps: tuple[Step, ...]


class Journal:
    """Reads recorded results and appends new ones, for one epoch of a claim.

    `recorded`: the calls that are read back. `fence`: number of the claim.
    """

    def __init__(
        self,
        store: RecordStore,
        sink: LiveSink,
        cache: StepCache,
        usage: UsageLedger,
        recorded: RecordedCalls,
        *,
        fence: int,
        at_end: bool = False,
    ) -> None:
        self._store, self._sink, self._cache, self._fence, self._at_end = store, sink, cache, fence, at_end
        self.usage = usage
        self.recorded = recorded
        self._buffered: list[Entry] = []
        self._foreseen: list[_Foreseen] = []
        self._calls_over, self._aborted = False, False
        self._doubtful: _Append | None = None
        """An append that was cut off before it was known whether it had been committed."""
        self._writes = 0
        self._stored_seq = cache.last_seq
        """The run's last step that is known to be stored."""
        self._unshown: list[Step] = []
        self._writing = asyncio.Lock()
        """One at a time: a checkpoint goes with any of them, and what was buffered before must not come later."""

    @property
    def has_written(self) -> bool:
        """Whether something of this claim is stored."""
        return self._writes > 0

    def take(self, call: Call, expected: frozenset[str]) -> Step | None:
        """Return what is on record for a call, once. Raises ReplayDiverged for a step of another kind."""
        self.check_open()
        step = self.recorded.take(call, expected)
        if step is not None:
            self._cache.reveal(step)
        return step

    def check_new(self, call: Call) -> None:
        """A call that is not on record is about to be made. Raises where it must not be."""
        self.recorded.check_new(call)

    async def declare_effect(self, call: Call, tool: str, args: Mapping[str, Any], effect: Effect) -> bool:
        """Declare the side effect of a call. Return `False` if it was declared before a loss.

        Raises NonDeterminismError where other calls are on record that the node did not ask for again: what is asked
        now would have its effect beside theirs.
        """
        if self.recorded.is_declared(call):
            return False
        if not self.recorded.is_exhausted:
            await self.recorded.check_effect(call)
        return await self._store.declare_intent(call.key, tool, args, effect)

    async def check_child(self, call: Call) -> None:
        """A child run is about to be created. Raises NonDeterminismError as `declare_effect` does."""
        if not self.recorded.is_exhausted and not self.recorded.is_declared(call):
            await self.recorded.check_effect(call)

    def note_anew(self, call: Call, draft: StepDraft, usd: Decimal = NOTHING) -> StepDraft:
        """Say in a step that its call was made anew, because the node did not ask for the recorded one again."""
        seqs = () if self.recorded.is_exhausted else self.recorded.passed_over(call)
        if not seqs:
            return draft
        anew = {"instead_of": list(seqs), "tokens": draft.tokens, "usd": str(usd), "ms": draft.ms}
        said = f"made anew: step {', '.join(map(str, seqs))} asked for something else"
        detail = f"{draft.detail} \u00b7 {said}" if draft.detail else said
        return replace(draft, payload={**draft.payload, "anew": anew}, detail=detail)

    def buffer(self, draft: StepDraft) -> None:
        """Append with the next append, in its transaction. Lost with it, the same node makes it again."""
        self.check_open()
        self._buffered.append(_clean(Entry(draft)))

    async def flush(self) -> None:
        """Append what is buffered."""
        if self._buffered:
            await self.append()

    async def append(self, *entries: Entry) -> list[Step]:
        """Append, show, and return the steps. Raises Fenced when the run is no longer ours, or calls are over."""
        return await self._append(self.check_open, entries)

    async def append_last(self, *entries: Entry, hook: Hook) -> None:
        """Append for the last time, with everything that waits, in one transaction that ends with `hook`."""
        if self._buffered:
            await self._append(self._check_epoch, ())
        if not self._at_end:
            await self._append(self._check_epoch, entries, hook)
            return
        await self._append(self._check_epoch, entries)
        foreseen, self._foreseen = self._foreseen, []
        expected = [step.seq for one in foreseen for step in one.steps]

        async def checked(handle: object, new: Sequence[Step]) -> None:
            if [s.seq for s in new] != expected:
                raise OffingError("Somebody else wrote to the run while it was claimed.")
            await hook(handle, new[len(new) - len(entries) :])

        try:
            await self._charged(tuple(e for one in foreseen for e in one.entries), 0, checked)
        finally:
            await self._show()

    def check_open(self) -> None:
        """Raises Fenced when the graph's calls are over: a branch that has outlived its graph does nothing any more."""
        if self._calls_over:
            raise Fenced("What called is no longer part of its run.")

    def end_calls(self) -> None:
        """The graph has stopped. Only `append_last` may still write, and all that is on record is seen."""
        self._calls_over = True
        self._cache.reveal_all()

    def abort(self) -> None:
        """The epoch is over. Nothing may be written any more."""
        self._calls_over = self._aborted = True

    def _check_epoch(self) -> None:
        if self._aborted:
            raise Fenced("This epoch of the claim is over.")

    async def _append(
        self, check: Callable[[], None], entries: Sequence[Entry], hook: Hook | None = None
    ) -> list[Step]:
        try:
            async with self._writing:
                check()
                await self._resolve_doubt()
                buffered, self._buffered = tuple(self._buffered), []
                wanted = (*buffered, *map(_clean, entries))
                if self._at_end:
                    new = self._foresee(wanted)
                else:
                    new = await self._charged(wanted, len(buffered), _after(len(buffered), hook))
            return new[len(buffered) :]
        finally:  # cancelled at its commit, an append is stored all the same
            await self._show()

    def _foresee(self, entries: tuple[Entry, ...]) -> list[Step]:
        """Keep an append for the end of the slice, and return the steps that it will be."""
        first, at = self._cache.last_seq + 1, datetime.now(UTC)
        new = [place_step(e.draft, first + nth, at, self._fence) for nth, e in enumerate(entries)]
        self._foreseen.append(_Foreseen(entries, tuple(new)))
        self._cache.add(new)
        return new

    async def _charged(self, entries: tuple[Entry, ...], buffered: int, hook: Hook | None) -> list[Step]:
        """Write the entries with what their calls used."""
        keys = {e.draft.key for e in entries if e.draft.key is not None}
        append = _Append(entries, buffered, self.usage.take(keys, everything=self._calls_over))
        writes = self._writes
        try:
            return await self._write_until_written(append, hook)
        except BaseException as error:
            if self._writes == writes:  # cancelled at its commit, an append is stored all the same
                if isinstance(error, asyncio.CancelledError):
                    self._doubtful = append
                else:
                    self._give_back(append)
            raise

    def _give_back(self, append: _Append) -> None:
        """What a failed append took along goes with a later one."""
        self.usage.give_back(append.charge)
        self._buffered[:0] = append.entries[: append.buffered]

    async def _resolve_doubt(self) -> None:
        """Find out whether an append was committed whose caller was cancelled before that was known."""
        if self._doubtful is not None:
            found = await self._find(self._doubtful.entries)
            doubtful, self._doubtful = self._doubtful, None
            if found is None:
                self._give_back(doubtful)

    async def _write_until_written(self, append: _Append, hook: Hook | None) -> list[Step]:
        while True:
            try:
                return await finished(self._write(append, hook))
            except (AlreadyRecorded, Fenced, Unavailable) as error:
                # A try may have been under way on the server when it was looked for: the next one then finds the step
                # recorded, or the run released.
                if (found := await self._find(append.entries)) is not None:
                    return found
                if not isinstance(error, Unavailable):
                    raise

    async def _write(self, append: _Append, hook: Hook | None) -> list[Step]:
        new = await self._store.write(append.entries, append.charge.delta, hook)
        self._note_written(new)
        return new

    def _note_written(self, new: Sequence[Step]) -> None:
        """Beside the commit, since the caller may be cancelled there and never hear of it."""
        self._writes += 1
        self._stored_seq = max([self._stored_seq, *(step.seq for step in new)])
        self._unshown += new
        if not self._at_end:  # there they were added when they were foreseen
            self._cache.add(new)

    async def _find(self, entries: tuple[Entry, ...]) -> list[Step] | None:
        """The steps, if a try whose answer was lost had been committed. Asks until the store answers."""
        while True:
            try:
                found = await self._store.find(entries, self._stored_seq)
                break
            except Unavailable:
                await asyncio.sleep(RETRY_SECONDS)
        if found is not None:
            self._note_written(found)
        return found

    async def _show(self) -> None:
        """Tell subscribers of what was committed."""
        unshown, self._unshown = self._unshown, []
        if unshown:
            await finished(self._sink.steps(unshown))


def _clean(entry: Entry) -> Entry:
    """What is recorded, and what the graph reads back, never holds a secret of this process."""
    draft = entry.draft
    title, detail, payload = without_secrets([draft.title, draft.detail, draft.payload])
    return replace(entry, draft=replace(draft, title=title, detail=detail, payload=payload))


def _after(buffered: int, hook: Hook | None) -> Hook | None:
    """The hook, given only the steps that its own append is about."""
    if hook is None or not buffered:
        return hook

    async def given(handle: object, new: Sequence[Step]) -> None:
        await hook(handle, new[buffered:])

    return given
