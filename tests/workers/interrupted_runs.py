"""A run that is advanced in this process while its transactions are disturbed, and what is wrong with it afterwards."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import psycopg
import pytest

import offing.kernel.journal
import offing_workers.slice
from offing.core.answer_draft import DraftEnd, DraftPart
from offing.core.errors import Unavailable
from offing.core.model import EngineConfig
from offing.core.run import Budget
from offing.core.step import Step
from offing.services.graphs import open_registry
from offing.services.runs import RunRequest, submit_run
from offing.storage import claims
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Connection, Database
from offing_workers.claimed_run import ClaimedRun
from offing_workers.slice import Slice, SliceLimits
from tests.chaos import checker
from tests.chaos.private_stack import facts
from tests.chaos.trial import QUESTION
from tests.workers.processes import ALL_GRAPHS

TERM = 30.0

When = Literal["before", "undone", "after"]
"""Before a transaction begins; behind its last statement, so that it is rolled back; or once it was committed, so that
only the answer is lost."""

What = Literal["away", "killed"]

WAYS: list[tuple[When, What]] = [
    ("before", "away"),
    ("undone", "away"),
    ("after", "away"),
    ("before", "killed"),
    ("after", "killed"),
]
"""Killed before a commit is killed before the transaction."""

TURNS = 3

SLOW = 0.1


class Died(BaseException):
    """The worker is gone; nothing of it runs on."""


class Disturbed(Database):
    """Counts its transactions; at one of them Postgres goes away, or the worker dies."""

    begun = 0
    at: int | None = None
    slow_at: int | None = None
    """A transaction that takes so long that others overtake it."""
    when: When = "before"
    what: What = "away"
    dead = False
    under_way = 0

    def __init__(self, url: str, *, maximum: int) -> None:
        super().__init__(url, max_connections=maximum)
        self.still = asyncio.Event()
        """None of its transactions is under way."""
        self.still.set()

    async def __aexit__(self, *error: object) -> None:
        await self.still.wait()  # a dead worker's connections are gone before anybody finds it dead
        await super().__aexit__(*error)

    @asynccontextmanager
    async def transaction(self, tenant_id: UUID, *, pipelined: bool = False) -> AsyncGenerator[Connection]:
        self.under_way += 1
        self.still.clear()
        try:
            async with self._disturbed(tenant_id, pipelined) as connection:
                yield connection
        finally:
            self.under_way -= 1
            if not self.under_way:
                self.still.set()

    @asynccontextmanager
    async def _disturbed(self, tenant_id: UUID, pipelined: bool) -> AsyncGenerator[Connection]:
        self.begun += 1
        strikes = self.begun == self.at
        if self.dead or (strikes and self.when == "before"):
            self._strike()
        if self.begun == self.slow_at:
            await asyncio.sleep(SLOW)
        async with super().transaction(tenant_id, pipelined=pipelined) as connection:
            yield connection
            if strikes and self.when == "undone":
                self._strike()
        if strikes and self.when == "after":
            self._strike()

    def _strike(self) -> None:
        self.dead = self.what == "killed"
        raise Died if self.dead else Unavailable("on purpose")


class Nobody:
    """Watches, and wakes."""

    async def publish_steps(self, tenant_id: UUID, run_id: UUID, steps: Sequence[Step], /) -> None: ...

    async def publish_action(
        self, tenant_id: UUID, run_id: UUID, text: str | None, started_at: datetime | None = None
    ) -> None: ...

    async def publish_draft(self, tenant_id: UUID, run_id: UUID, part: DraftPart, /) -> bool:
        return True

    async def end_draft(self, tenant_id: UUID, run_id: UUID, end: DraftEnd, /) -> bool:
        return True

    async def dispatch_run(self, run_id: UUID) -> None: ...

    async def dispatch_runs(self, run_ids: Sequence[UUID]) -> None: ...


class RecordedDispatches(Nobody):
    """Hears which runs are to continue."""

    def __init__(self) -> None:
        self.runs = set[UUID]()

    async def dispatch_run(self, run_id: UUID) -> None:
        self.runs.add(run_id)


@dataclass
class Bench:
    """A database on which runs are advanced in this process."""

    owner: psycopg.Connection
    app_url: str
    database: Database
    durability: str = "sync"
    slice_turns: int = 64
    graphs: str = ALL_GRAPHS
    """Where they are, as `installed` takes it."""
    dispatches: RecordedDispatches = field(default_factory=RecordedDispatches)

    def ask(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        cursor = self.owner.execute(query.encode(), parameters)
        return cursor.fetchall() if cursor.description else []

    async def submitted(self, graph: str) -> UUID:
        options = {
            "answers": [{"word": "w{turn}-{nonce}"}],
            "vary": True,
            "usage": {"prompt_tokens": 3, "cost_usd": "0.01"},
        }
        roles, real = open_registry(ALL_GRAPHS)[graph].roles, graph == "agentflow"
        engine = EngineConfig() if real else EngineConfig(engine="scripted", options=options)
        engines = {role.name: engine for role in roles}
        request = RunRequest(
            QUESTION if real else "Count",
            graph,
            budget=Budget(max_turns=TURNS),
            engines=engines,
            durability=self.durability,
        )
        created = await submit_run(self.database, Quiet(), LOCAL_TENANT, request, graphs=open_registry(ALL_GRAPHS))
        return created.run.id

    async def advance(self, database: Database, run_id: UUID) -> None:
        """One slice by a worker of its own; ends with it when it dies."""
        # A term of nothing, since a server that has just started lets every lease live for one more term.
        claim = await claims.claim_run(self.database, run_id, "worker", 0)
        assert claim is not None
        self.ask("update app.run set lease_until = now() + interval '1 hour' where id = %s", run_id)
        limits, graphs = SliceLimits(TERM, self.slice_turns, 60.0), open_registry(self.graphs)
        work = Slice(database, Nobody(), self.dispatches, graphs, claim, ClaimedRun(claim.fence), limits).advance_run()
        await _survived(work)

    async def work(self, database: Disturbed, run_id: UUID) -> None:
        """Slice by slice, as long as somebody is told to continue. Where nobody is, the run waits for a sweep."""
        message = True
        while message and not database.dead:
            self.dispatches.runs.discard(run_id)
            await self.advance(database, run_id)
            message = run_id in self.dispatches.runs

    def lose(self, run_id: UUID) -> None:
        """The dead worker's lease passes."""
        self.ask("update app.run set lease_until = now() - interval '1 hour' where id = %s", run_id)


class Quiet(Nobody):
    async def notify_control(self, run_id: UUID) -> None: ...


async def _survived(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except BaseException as error:
        if not _is_death(error):
            raise


def _is_death(error: BaseException) -> bool:
    return isinstance(error, Died) or "Died" in repr(error)


@pytest.fixture
async def bench(owner_url: str, app_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    monkeypatch.setattr(offing.kernel.journal, "RETRY_SECONDS", 0.005)
    monkeypatch.setattr(offing_workers.slice, "REOPEN_DELAY_SECONDS", 0.005)
    with psycopg.connect(owner_url, autocommit=True) as owner:
        async with Database(app_url, max_connections=4) as database:
            yield Bench(owner, app_url, database)


async def transactions_of(bench: Bench, graph: str) -> int:
    """How many transactions an undisturbed run of it takes."""
    run = await bench.submitted(graph)
    async with Disturbed(bench.app_url, maximum=4) as plain:
        await bench.work(plain, run)
    assert checker.violations(facts(bench.ask, run)) == []
    return plain.begun


async def disturbed(bench: Bench, graph: str, at: int, when: When, what: What, slow: int = 0) -> checker.Rows:
    """What a run leaves that was disturbed at its nth transaction. `slow`: one that others overtook before; 0: none."""
    run = await bench.submitted(graph)
    async with Disturbed(bench.app_url, maximum=4) as database:
        database.at, database.when, database.what, database.slow_at = at, when, what, slow
        await bench.work(database, run)
    for _ in range(3 * TURNS if database.dead else 0):
        if facts(bench.ask, run).run.ended_at is None:
            bench.lose(run)
            await bench.advance(bench.database, run)
    return facts(bench.ask, run)


def shape(rows: checker.Rows) -> list[tuple[str, int]]:
    """The steps of all workers, in the order of their keys."""
    keyed = sorted((s for s in rows.steps if s.key), key=lambda s: s.key or (0, "", 0))
    return [(s.kind, s.turn) for s in keyed]


def words(rows: checker.Rows) -> tuple[list[str], list[str]]:
    """As recorded, and as reported."""
    recorded = [s.payload["output"]["word"] for s in rows.of_kind("plan")]
    reported = [t["text"] for r in rows.reports for part in r.body["sections"] for t in part["sentences"]]
    return sorted(recorded), sorted(reported)


def complaints(bench: Bench, rows: checker.Rows, plain: checker.Rows) -> list[str]:
    results = list(checker.violations(rows))
    if shape(rows) != shape(plain):
        results.append(f"steps {shape(rows)}, undisturbed {shape(plain)}")
    recorded, reported = words(rows)
    if recorded != reported and rows.of_kind("memory"):
        results.append(f"recorded {recorded}, reported {reported}")
    ((set_aside, difference),) = bench.ask(
        "select coalesce(sum(reserved_usd), 0), coalesce(sum(used_usd), 0) - (select sum(cost_usd) from app.run) "
        "from app.daily_spend"
    )
    if set_aside or difference:
        results.append(f"of the tenant's day, {set_aside} is still reserved and {difference} too much is charged")
    return results
