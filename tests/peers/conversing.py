"""Runs of other people's graphs that are advanced in this process, with a provider beside them: asked, answered by a
person where they ask, lost and taken up again.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import UUID

from offing.core.errors import InvalidInput
from offing.core.model import EngineChoice
from offing.core.question import Answer
from offing.core.run import Budget, RunStatus
from offing.core.step import Step, StepKind
from offing.services.graphs import installed
from offing.services.questions import answer, asked
from offing.services.runs import RunRequest, submit
from offing.storage import reports, runs, segments, steps
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.runs import RunRow
from offing.storage.segments import StoredTurn
from tests.peers.playing import APART, Peer, provider
from tests.wire.server import WireServer
from tests.workers.disturbing import Bench, Disturbed, Quiet, When

MOST_SLICES = 40
"""After which a run that has not ended goes nowhere."""


def request_of(peer: Peer, url: str, question: str, *, thread: UUID | None = None, turns: int = 60) -> RunRequest:
    """A question to a peer, whose models are those of the provider at `url`."""
    engines = {
        role: EngineChoice(engine="litellm", model=f"openai/{peer.name}{APART}{role}", api_base=url)
        for role in peer.roles
    }
    return RunRequest(question, peer.name, engines=engines, budget=Budget(turns=turns), thread=thread)


@dataclass
class Conversing:
    """One peer on a bench. `server` is its provider."""

    bench: Bench
    peer: Peer
    server: WireServer
    notes: list[str] = field(default_factory=list[str])

    async def begin(self, question: str = "", thread: UUID | None = None, turns: int = 60) -> UUID:
        request = request_of(self.peer, self.server.url, question or self.peer.question, thread=thread, turns=turns)
        made = await submit(self.bench.database, Quiet(), LOCAL_TENANT, request, graphs=installed(self.bench.graphs))
        return made.run.id

    async def ask(self, question: str = "", thread: UUID | None = None, replies: Sequence[str] | None = None) -> RunRow:
        """A run, undisturbed, to its end."""
        run = await self.begin(question, thread)
        return await self.to_its_end(run, replies)

    async def to_its_end(self, run: UUID, replies: Sequence[str] | None = None) -> RunRow:
        """Advance it until it has ended, by whoever takes it next; a person answers what it asks."""
        for _ in range(MOST_SLICES):
            row = await self.row(run)
            if row.terminal:
                return row
            if row.status is RunStatus.RUNNING:
                self.bench.lose(run)
            if row.status is RunStatus.WAITING:
                await self.reply(run, self.peer.replies if replies is None else replies)
            await self.bench.advance(self.bench.database, run)
        raise AssertionError(f"the run does not end: {[(s.kind, s.title) for s in await self.steps(run)]}")

    async def disturbed(self, at: int, when: When) -> RunRow:
        """A run whose worker dies at its nth transaction, and which others take to its end."""
        run = await self.begin()
        async with Disturbed(self.bench.app_url, most=4) as database:
            database.at, database.when, database.what = at, when, "killed"
            await self.bench.work(database, run)
        return await self.to_its_end(run)

    async def transactions(self) -> int:
        """How many the first slice of an undisturbed run takes."""
        run = await self.begin()
        async with Disturbed(self.bench.app_url, most=4) as database:
            await self.bench.work(database, run)
            return database.begun

    async def reply(self, run: UUID, replies: Sequence[str]) -> None:
        """What a person says to each thing that the run asks now, in the order of all that it has asked."""
        database = self.bench.database
        for nth, one in enumerate(await asked(database, LOCAL_TENANT, run)):
            if one.open:
                prompt = one.question.asking.prompt
                at = next((n for n, word in enumerate(self.peer.heeds) if word in prompt), nth)
                await self._answer(run, one.question.number, replies[min(at, len(replies) - 1) :])

    async def _answer(self, run: UUID, number: int, replies: Sequence[str]) -> None:
        """The first of the replies that is taken; whoever is refused says the next thing."""
        for reply in replies:
            try:
                await answer(self.bench.database, Quiet(), LOCAL_TENANT, run, number, Answer(text=reply), by="somebody")
            except InvalidInput as problem:
                self.notes.append(str(problem))
                continue
            return
        raise AssertionError(f"no reply fits: {self.notes}")

    async def row(self, run: UUID) -> RunRow:
        async with self.bench.database.transaction(LOCAL_TENANT) as connection:
            return await runs.by_id(connection, run)

    async def steps(self, run: UUID) -> list[Step]:
        async with self.bench.database.transaction(LOCAL_TENANT) as connection:
            return await steps.after(connection, run, 0, 100_000)

    async def turns(self, run: UUID) -> list[StoredTurn]:
        async with self.bench.database.transaction(LOCAL_TENANT) as connection:
            return await segments.turns_of(connection, run)

    async def said(self, run: UUID) -> str:
        """The answer of its report."""
        async with self.bench.database.transaction(LOCAL_TENANT) as connection:
            report = await reports.latest(connection, run)
        return report.answer.text if report and report.answer else ""


@asynccontextmanager
async def conversing(bench: Bench, peer: Peer) -> AsyncGenerator[Conversing]:
    """The peer with a provider of its own. The same script answers whatever is asked twice."""
    bench.graphs = peer.place
    async with WireServer(provider({peer.name: peer})) as server:
        yield Conversing(bench, peer, server)


def model_calls(found: Sequence[Step]) -> list[Step]:
    return [step for step in found if step.kind is StepKind.TURN]


def tools_used(found: Sequence[Step]) -> list[str]:
    """Names of the tools whose calls are steps, but for those that failed."""
    return sorted(str(step.payload["tool"]) for step in found if step.kind is StepKind.TOOL and step.ok)


def by_name(*peers: Peer) -> Mapping[str, Peer]:
    return {peer.name: peer for peer in peers}
