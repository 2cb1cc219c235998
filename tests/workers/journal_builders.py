"""A journal over Postgres as an epoch of a claim has it, for tests that append without a graph."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, cast
from uuid import UUID

from offing.bus.notifier import RunDispatcher
from offing.core.answer_draft import DraftEnd, DraftPart
from offing.core.run import Budget, FencingToken, RunUsage, StopReason
from offing.core.step import CallKey, Step, StepDraft
from offing.kernel.budget import CallMeter, RunBudget
from offing.kernel.journal import Journal
from offing.kernel.recorded_calls import CallsSinceCheckpoint
from offing.kernel.run_store import JournalEntry, TransactionHook
from offing.kernel.step_cache import StepCache
from offing.kernel.usage import UsageLedger
from offing.storage import runs
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Connection, Database
from offing.storage.runs import RunRow
from offing.storage.steps import SentAppend
from offing_workers.fenced_checkpointer import FencedCheckpointer
from offing_workers.live_publisher import LiveEventPublisher, RunLiveSink
from offing_workers.run_store import CheckpointWriter, PostgresRunStore
from tests.storage.builders import TERM, claimed


class Audience:
    """Watches nothing."""

    async def publish_steps(self, tenant_id: UUID, run_id: UUID, steps: Sequence[Step], /) -> None: ...

    async def publish_action(
        self, tenant_id: UUID, run_id: UUID, text: str | None, started_at: datetime | None = None
    ) -> None: ...

    async def publish_draft(self, tenant_id: UUID, run_id: UUID, part: DraftPart, /) -> bool:
        return True

    async def end_draft(self, tenant_id: UUID, run_id: UUID, end: DraftEnd, /) -> bool:
        return True


class HookedStore(PostgresRunStore):
    """Runs `inside` at the end of each transaction that appends."""

    inside: TransactionHook | None = None

    async def _store_attachments(
        self, connection: Connection, entries: Sequence[JournalEntry], append: SentAppend
    ) -> None:
        await super()._store_attachments(connection, entries, append)
        if self.inside is not None:
            await self.inside(connection, append.read_steps)


class Free:
    """Nobody wants anything of the run."""

    def forced_stop_reason(self) -> StopReason | None:
        return None

    def on_turn_begin(self) -> None: ...


@dataclass
class AJournal:
    """A journal and what it depends on."""

    journal: Journal
    store: HookedStore
    cache: StepCache
    fence: FencingToken

    @property
    def usage(self) -> UsageLedger:
        return self.journal.usage_ledger

    @property
    def spent(self) -> RunUsage:
        return self.usage.total

    async def append(self, *drafts: StepDraft, inside: TransactionHook | None = None) -> list[Step]:
        self.store.inside = inside
        return await self.journal.append(*map(JournalEntry, drafts))

    async def append_last(self, *drafts: StepDraft, hook: TransactionHook) -> None:
        self.store.inside = None
        await self.journal.append_last(*map(JournalEntry, drafts), hook=hook)

    def charge(self, key: CallKey, tokens: int, usd: Decimal) -> None:
        self.usage.add_usage(key, tokens, usd)

    def budget(self, limits: Budget) -> RunBudget:
        return RunBudget(limits, self.usage, self.store, Free(), self.journal.check_open)


def meter(budget: RunBudget, name: str) -> CallMeter:
    return budget.create_meter(CallKey(1, name, 0))


async def a_journal(database: Database, audience: LiveEventPublisher | None = None) -> AJournal:
    """Of a run that has just been claimed."""
    fence = (await claimed(database, LOCAL_TENANT)).fence
    return await journal_of(database, FencedCheckpointer(database, fence, turn_key="turn"), fence, audience)


async def journal_of(
    database: Database, saver: CheckpointWriter, fence: FencingToken, audience: LiveEventPublisher | None = None
) -> AJournal:
    async with database.transaction(fence.tenant_id) as connection:
        row = await runs.get_run(connection, fence.run_id)
    return journal_over(database, row, saver, fence, audience)


def journal_over(
    database: Database,
    row: RunRow,
    saver: CheckpointWriter,
    fence: FencingToken,
    audience: LiveEventPublisher | None = None,
) -> AJournal:
    nobody: Any = None
    store = HookedStore(database, row, fence, TERM, saver, {}, cast(RunDispatcher, nobody))
    cache = StepCache(store, last_seq=1, is_first_claim=True)
    sink = RunLiveSink(audience or Audience(), fence.tenant_id, fence.run_id)
    ledger = UsageLedger(RunUsage(), time.monotonic)
    journal = Journal(store, sink, cache, ledger, CallsSinceCheckpoint({}), fence=fence.number)
    return AJournal(journal, store, cache, fence)
