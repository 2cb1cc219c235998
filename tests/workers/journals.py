"""A journal over Postgres as an epoch of a claim has it, for tests that append without a graph."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, cast
from uuid import UUID

from offing.core.run import Budget, Fence, Spent, StopReason
from offing.core.step import CallKey, Step, StepDraft
from offing.kernel.budget import CallMeter, RunBudget
from offing.kernel.journal import Journal
from offing.kernel.recorded_calls import CallsSinceCheckpoint
from offing.kernel.step_cache import StepCache
from offing.kernel.store import Entry, Hook
from offing.kernel.usage import UsageLedger
from offing.storage import runs
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Connection, Database
from offing.storage.runs import RunRow
from offing_workers.run_store import Checkpoints, PostgresRunStore, Wakes
from offing_workers.saver import FencedSaver
from offing_workers.showing import RunSink, Viewers
from tests.storage.builders import TERM, claimed


class Audience:
    """Watches nothing."""

    async def steps(self, tenant: UUID, run: UUID, steps: Sequence[Step], /) -> None: ...

    async def doing(self, tenant: UUID, run: UUID, text: str | None, since: datetime | None = None) -> None: ...


class HookedStore(PostgresRunStore):
    """Runs `inside` at the end of each transaction that appends."""

    inside: Hook | None = None

    async def _store_records(self, connection: Connection, entries: Sequence[Entry], new: Sequence[Step]) -> None:
        await super()._store_records(connection, entries, new)
        if self.inside is not None:
            await self.inside(connection, new)


class Free:
    """Nobody wants anything of the run."""

    def forced_stop(self) -> StopReason | None:
        return None

    def turn_begun(self) -> None: ...


@dataclass
class AJournal:
    """A journal and what it stands on."""

    journal: Journal
    store: HookedStore
    cache: StepCache
    fence: Fence

    @property
    def usage(self) -> UsageLedger:
        return self.journal.usage

    @property
    def spent(self) -> Spent:
        return self.usage.spent

    async def append(self, *drafts: StepDraft, inside: Hook | None = None) -> list[Step]:
        self.store.inside = inside
        return await self.journal.append(*map(Entry, drafts))

    async def append_last(self, *drafts: StepDraft, hook: Hook) -> None:
        self.store.inside = None
        await self.journal.append_last(*map(Entry, drafts), hook=hook)

    def charge(self, key: CallKey, tokens: int, usd: Decimal) -> None:
        self.usage.add(key, tokens, usd)

    def budget(self, limits: Budget) -> RunBudget:
        return RunBudget(limits, self.usage, self.store, Free(), self.journal.check_open)


def meter(budget: RunBudget, name: str) -> CallMeter:
    return budget.meter(CallKey(1, name, 0))


async def a_journal(database: Database, audience: Viewers | None = None) -> AJournal:
    """Of a run that has just been claimed."""
    fence = (await claimed(database, LOCAL_TENANT)).fence
    return await journal_of(database, FencedSaver(database, fence, turn_key="turn"), fence, audience)


async def journal_of(database: Database, saver: Checkpoints, fence: Fence, audience: Viewers | None = None) -> AJournal:
    async with database.transaction(fence.tenant) as connection:
        row = await runs.by_id(connection, fence.run)
    return journal_over(database, row, saver, fence, audience)


def journal_over(
    database: Database, row: RunRow, saver: Checkpoints, fence: Fence, audience: Viewers | None = None
) -> AJournal:
    nobody: Any = None
    store = HookedStore(database, row, fence, TERM, saver, {}, cast(Wakes, nobody))
    cache = StepCache(store, last_seq=1, fresh=True)
    sink = RunSink(audience or Audience(), fence.tenant, fence.run)
    ledger = UsageLedger(Spent(), time.monotonic)
    journal = Journal(store, sink, cache, ledger, CallsSinceCheckpoint({}), fence=fence.number)
    return AJournal(journal, store, cache, fence)
