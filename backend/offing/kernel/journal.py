"""The call journal of one claim: reads recorded results and appends new ones.

An append survives an outage of the store. Calls may have cost money, so an append is retried until
it is written, another worker owns the run, or the slice is cancelled. Before each retry, the
journal checks whether the previous attempt was committed. With `writes_at_exit`, appends stay in
memory until the slice ends. No other process writes to such a run while it is claimed, so the sequence
numbers are assigned in advance and verified when the steps are written.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Protocol

from offing.cancellation import run_to_completion
from offing.core.errors import AlreadyRecordedError, LeaseLostError, OffingError, Unavailable
from offing.core.step import CallKey, Step, StepDraft, step_from_draft
from offing.core.tool import SideEffect
from offing.kernel.call_key import NodeCall
from offing.kernel.recorded_calls import RecordedCalls
from offing.kernel.run_store import JournalEntry, JournalStore, LiveSink, StepReader, StepStore, TransactionHook
from offing.kernel.step_cache import StepCache
from offing.kernel.usage import ZERO_USD, Charge, UsageLedger
from offing.telemetry.redaction import remove_secrets

RETRY_SECONDS = 0.1
"""Seconds between retries while the store is unreachable."""


class JournalBackend(JournalStore, StepStore, Protocol):
    """The part of the run store that a journal uses."""


@dataclass(frozen=True, slots=True)
class _PendingAppend:
    """An append in progress. The first `buffered_count` entries were buffered for it."""

    entries: tuple[JournalEntry, ...]
    buffered_count: int
    charge: Charge

    @property
    def keys(self) -> set[CallKey]:
        return {e.draft.call_key for e in self.entries if e.draft.call_key is not None}


@dataclass(frozen=True, slots=True)
class _DeferredAppend:
    """An append that is written at the end of the slice."""

    entries: tuple[JournalEntry, ...]
    steps: tuple[Step, ...]


class Journal:
    """Reads recorded results and appends new ones, for one epoch of a claim.

    `recorded_calls` are the calls to read back. `fence` is the fencing token of the claim.
    """

    def __init__(
        self,
        store: JournalBackend,
        sink: LiveSink,
        cache: StepCache,
        usage_ledger: UsageLedger,
        recorded_calls: RecordedCalls,
        *,
        fence: int,
        writes_at_exit: bool = False,
    ) -> None:
        self._store, self._sink, self._cache, self._fence, self._writes_at_exit = (
            store,
            sink,
            cache,
            fence,
            writes_at_exit,
        )
        self.usage_ledger = usage_ledger
        self.recorded_calls = recorded_calls
        self._buffered: list[JournalEntry] = []
        self._deferred: list[_DeferredAppend] = []
        self._calls_over, self._aborted = False, False
        self._uncertain: _PendingAppend | None = None
        """A cancelled append of which it is not known whether it was committed."""
        self._writes = 0
        self._stored_seq = cache.last_seq
        """The last step of the run that is known to be stored."""
        self._unpublished: list[Step] = []
        self._write_lock = asyncio.Lock()
        """Serializes appends. Each may write checkpoints, and buffered entries must come first."""

    @property
    def writes_at_exit(self) -> bool:
        """Whether appends stay in memory until the slice ends."""
        return self._writes_at_exit

    def take_recorded(self, call: NodeCall, expected: frozenset[str]) -> Step | None:
        """Return the recorded step of a call, once. Raises NonDeterminismError for a step of another kind."""
        self.check_open()
        step = self.recorded_calls.take_step(call, expected)
        if step is not None:
            self._cache.reveal_step(step)
        return step

    def check_new(self, call: NodeCall) -> None:
        """Check a call that is not recorded and is about to be made. Raises if it must not be made."""
        self.recorded_calls.check_new(call)

    async def declare_side_effect(
        self, call: NodeCall, tool: str, args: Mapping[str, Any], side_effect: SideEffect
    ) -> bool:
        """Declare the side effect of a call. Return `False` if it was declared before a crash.

        Raises NonDeterminismError if the node left other recorded calls unread. The side effect of the new
        call would come in addition to theirs.
        """
        if self.recorded_calls.is_declared(call):
            return False
        if not self.recorded_calls.is_exhausted:
            await self.recorded_calls.check_side_effect(call)
        return await self._store.declare_intent(call.key, tool, args, side_effect)

    async def check_child_run(self, call: NodeCall) -> None:
        """Check a child run that is about to be created.

        Raises NonDeterminismError in the same cases as `declare_side_effect`.
        """
        if not self.recorded_calls.is_exhausted and not self.recorded_calls.is_declared(call):
            await self.recorded_calls.check_side_effect(call)

    def mark_reexecuted(self, call: NodeCall, draft: StepDraft, cost_usd: Decimal = ZERO_USD) -> StepDraft:
        """Note in a step that its call was made again because the node did not request the recorded one."""
        seqs = () if self.recorded_calls.is_exhausted else self.recorded_calls.take_skipped_seqs(call)
        if not seqs:
            return draft
        anew = {"instead_of": list(seqs), "tokens": draft.tokens, "cost_usd": str(cost_usd), "ms": draft.ms}
        message = f"repeated, because step {', '.join(map(str, seqs))} recorded a different request"
        detail = f"{draft.detail} \u00b7 {message}" if draft.detail else message
        return replace(draft, payload={**draft.payload, "anew": anew}, detail=detail)

    def buffer(self, draft: StepDraft) -> None:
        """Append a step with the next append, in the same transaction.

        If the worker crashes before, the same node makes the step again.
        """
        self.check_open()
        self._buffered.append(_remove_secrets_from_entry(JournalEntry(draft)))

    async def flush(self) -> None:
        """Append the buffered entries."""
        if self._buffered:
            await self.append()

    async def append(self, *entries: JournalEntry) -> list[Step]:
        """Append entries, publish them, and return the steps.

        Raises LeaseLostError if another worker owns the run or the calls of the graph have ended.
        """
        return await self._append(self.check_open, entries)

    async def add_stored(self, stored: Sequence[Step]) -> None:
        """Add and publish steps of this claim that the transaction that opened its epoch has stored."""
        self._record_written(stored)
        await self._publish_steps()

    async def append_last(self, *entries: JournalEntry, hook: TransactionHook) -> None:
        """Append for the last time, with all deferred appends, in one transaction that ends with `hook`."""
        if self._buffered:
            await self._append(self._check_epoch, ())
        if not self._writes_at_exit:
            await self._append(self._check_epoch, entries, hook)
            return
        await self._append(self._check_epoch, entries)
        foreseen, self._deferred = self._deferred, []
        expected = [step.seq for one in foreseen for step in one.steps]

        async def checked(handle: object, read_steps: StepReader) -> None:
            if [s.seq for s in await read_steps()] != expected:
                raise OffingError("Another writer changed the run while it was claimed.")
            await hook(handle, read_steps)

        try:
            await self._write_charged(tuple(e for one in foreseen for e in one.entries), 0, checked)
        finally:
            await self._publish_steps()

    def check_open(self) -> None:
        """Raise LeaseLostError if the calls of the graph have ended.

        A branch that outlives its graph must not act any more.
        """
        if self._calls_over:
            raise LeaseLostError("The calling code is no longer part of a run.")

    def end_calls(self) -> None:
        """End the calls of the graph, because it has stopped.

        Afterwards, only `append_last` may write, and all recorded steps are visible.
        """
        self._calls_over = True
        self._cache.reveal_all()

    def abort(self) -> None:
        """End the epoch. Afterwards, nothing can be written."""
        self._calls_over = self._aborted = True

    def _check_epoch(self) -> None:
        if self._aborted:
            raise LeaseLostError("This epoch of the claim has ended.")

    async def _append(
        self, check: Callable[[], None], entries: Sequence[JournalEntry], hook: TransactionHook | None = None
    ) -> list[Step]:
        try:
            async with self._write_lock:
                check()
                await self._resolve_uncertain_append()
                buffered, self._buffered = tuple(self._buffered), []
                new_entries = (*buffered, *map(_remove_secrets_from_entry, entries))
                if self._writes_at_exit:
                    new = self._defer_append(new_entries)
                else:
                    new = await self._write_charged(new_entries, len(buffered), hook)
            return new[len(buffered) :]
        finally:  # an append that is cancelled during its commit may still be stored
            await self._publish_steps()

    def _defer_append(self, entries: tuple[JournalEntry, ...]) -> list[Step]:
        """Defer an append to the end of the slice, and return its future steps."""
        first, at = self._cache.last_seq + 1, datetime.now(UTC)
        new = [step_from_draft(e.draft, first + nth, at, self._fence) for nth, e in enumerate(entries)]
        self._deferred.append(_DeferredAppend(entries, tuple(new)))
        self._cache.add_steps(new)
        return new

    async def _write_charged(
        self, entries: tuple[JournalEntry, ...], buffered_count: int, hook: TransactionHook | None
    ) -> list[Step]:
        """Write entries together with the usage of their calls."""
        keys = {e.draft.call_key for e in entries if e.draft.call_key is not None}
        append = _PendingAppend(
            entries, buffered_count, self.usage_ledger.take_charge(keys, include_open_calls=self._calls_over)
        )
        writes = self._writes
        try:
            return await self._write_with_retry(append, hook)
        except BaseException as error:
            if self._writes == writes:  # an append that is cancelled during its commit may still be stored
                if isinstance(error, asyncio.CancelledError):
                    self._uncertain = append
                else:
                    self._restore_append(append)
            raise

    def _restore_append(self, append: _PendingAppend) -> None:
        """Return the usage and the buffered entries of a failed append. A later append takes them."""
        self.usage_ledger.restore_charge(append.charge)
        self._buffered[:0] = append.entries[: append.buffered_count]

    async def _resolve_uncertain_append(self) -> None:
        """Find out whether an append whose caller was cancelled was committed."""
        if self._uncertain is not None:
            committed = await self._find_committed(self._uncertain.entries)
            doubtful, self._uncertain = self._uncertain, None
            if committed is None:
                self._restore_append(doubtful)

    async def _write_with_retry(self, append: _PendingAppend, hook: TransactionHook | None) -> list[Step]:
        while True:
            try:
                return await run_to_completion(self._write(append, hook))
            except (AlreadyRecordedError, LeaseLostError, Unavailable) as error:
                # An attempt may still run on the server while it is looked up. Then the next attempt finds the step
                # recorded, or the run released.
                if (committed := await self._find_committed(append.entries)) is not None:
                    return committed
                if not isinstance(error, Unavailable):
                    raise

    async def _write(self, append: _PendingAppend, hook: TransactionHook | None) -> list[Step]:
        new = await self._store.append_entries(append.entries, append.charge.total_delta, hook)
        self._record_written(new)
        return new

    def _record_written(self, new: Sequence[Step]) -> None:
        """Note a commit immediately, because the caller may be cancelled before it gets the result."""
        self._writes += 1
        self._stored_seq = max([self._stored_seq, *(step.seq for step in new)])
        self._unpublished += new
        if not self._writes_at_exit:  # in that mode they were added when they were deferred
            self._cache.add_steps(new)

    async def _find_committed(self, entries: tuple[JournalEntry, ...]) -> list[Step] | None:
        """Return the steps if an attempt without a response was committed. Retry until the store responds."""
        while True:
            try:
                stored = await self._store.find_entries(entries, self._stored_seq)
                break
            except Unavailable:
                await asyncio.sleep(RETRY_SECONDS)
        if stored is not None:
            self._record_written(stored)
        return stored

    async def _publish_steps(self) -> None:
        """Publish committed steps to subscribers."""
        unshown, self._unpublished = self._unpublished, []
        if unshown:
            await run_to_completion(self._sink.publish_steps(unshown))


def _remove_secrets_from_entry(entry: JournalEntry) -> JournalEntry:
    """Remove secrets of this process from an entry, before it is recorded or read by the graph."""
    draft = entry.draft
    title, detail, payload = remove_secrets([draft.title, draft.detail, draft.payload])
    return replace(entry, draft=replace(draft, title=title, detail=detail, payload=payload))
