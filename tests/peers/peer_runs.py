"""Runs of other people's graphs that are advanced in this process, with a provider beside them: asked, answered by a
person where they ask, lost and claimed again.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import UUID

from offing.core.errors import InvalidInput
from offing.core.input_request import InputResponse
from offing.core.model import EngineConfig
from offing.core.run import Budget, RunStatus
from offing.core.step import Step, StepKind
from offing.services.graphs import open_registry
from offing.services.input_requests import list_input_requests, submit_response
from offing.services.runs import RunRequest, submit_run
from offing.storage import reports, runs, segments, steps
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.runs import RunRow
from offing.storage.segments import StoredRoleCall
from tests.model_provider.server import WireServer
from tests.peers.peer_case import APART, Peer, provider
from tests.workers.interrupted_runs import Bench, Disturbed, Quiet, When

MAX_SLICES = 40
"""After which a run that has not ended goes nowhere."""


def request_of(peer: Peer, url: str, question: str, *, thread_id: UUID | None = None, turns: int = 60) -> RunRequest:
    """A question to a peer, whose models are those of the provider at `url`."""
    engines = {
        role: EngineConfig(engine="litellm", model=f"openai/{peer.name}{APART}{role}", api_base=url)
        for role in peer.roles
    }
    return RunRequest(question, peer.name, engines=engines, budget=Budget(max_turns=turns), thread_id=thread_id)


@dataclass
class PeerRuns:
    """One peer on a bench. `server` is its provider."""

    bench: Bench
    peer: Peer
    server: WireServer
    notes: list[str] = field(default_factory=list[str])

    async def begin(self, question: str = "", thread_id: UUID | None = None, turns: int = 60) -> UUID:
        request = request_of(
            self.peer, self.server.url, question or self.peer.question, thread_id=thread_id, turns=turns
        )
        created = await submit_run(
            self.bench.database, Quiet(), LOCAL_TENANT, request, graphs=open_registry(self.bench.graphs)
        )
        return created.run.id

    async def ask(
        self, question: str = "", thread_id: UUID | None = None, replies: Sequence[str] | None = None
    ) -> RunRow:
        """A run, undisturbed, to its end."""
        run = await self.begin(question, thread_id)
        return await self.to_its_end(run, replies)

    async def to_its_end(self, run_id: UUID, replies: Sequence[str] | None = None) -> RunRow:
        """Advance the run until it has ended, on the next worker of each slice; a person answers what it asks."""
        for _ in range(MAX_SLICES):
            row = await self.row(run_id)
            if row.is_terminal:
                return row
            if row.status is RunStatus.RUNNING:
                self.bench.lose(run_id)
            if row.status is RunStatus.WAITING:
                await self.reply(run_id, self.peer.replies if replies is None else replies)
            await self.bench.advance(self.bench.database, run_id)
        raise AssertionError(f"the run does not end: {[(s.kind, s.title) for s in await self.steps(run_id)]}")

    async def disturbed(self, at: int, when: When) -> RunRow:
        """A run whose worker dies at its nth transaction, and which others take to its end."""
        run = await self.begin()
        async with Disturbed(self.bench.app_url, maximum=4) as database:
            database.at, database.when, database.what = at, when, "killed"
            await self.bench.work(database, run)
        return await self.to_its_end(run)

    async def transactions(self) -> int:
        """How many the first slice of an undisturbed run takes."""
        run = await self.begin()
        async with Disturbed(self.bench.app_url, maximum=4) as database:
            await self.bench.work(database, run)
            return database.begun

    async def reply(self, run_id: UUID, replies: Sequence[str]) -> None:
        """What a person says to each thing that the run asks now, in the order of all that it has asked."""
        database = self.bench.database
        for nth, one in enumerate(await list_input_requests(database, LOCAL_TENANT, run_id)):
            if one.pending:
                prompt = one.request.input_prompt.prompt
                at = next((n for n, word in enumerate(self.peer.heeds) if word in prompt), nth)
                await self._answer(run_id, one.request.seq, replies[min(at, len(replies) - 1) :])

    async def _answer(self, run_id: UUID, number: int, replies: Sequence[str]) -> None:
        """Return the result of the first reply that is accepted. After a rejection, the next reply is sent."""
        for reply in replies:
            try:
                await submit_response(
                    self.bench.database,
                    Quiet(),
                    LOCAL_TENANT,
                    run_id,
                    number,
                    InputResponse(text=reply),
                    responded_by="somebody",
                )
            except InvalidInput as problem:
                self.notes.append(str(problem))
                continue
            return
        raise AssertionError(f"no reply fits: {self.notes}")

    async def row(self, run_id: UUID) -> RunRow:
        async with self.bench.database.transaction(LOCAL_TENANT) as connection:
            return await runs.get_run(connection, run_id)

    async def steps(self, run_id: UUID) -> list[Step]:
        async with self.bench.database.transaction(LOCAL_TENANT) as connection:
            return await steps.list_steps_after(connection, run_id, 0, 100_000)

    async def turns(self, run_id: UUID) -> list[StoredRoleCall]:
        async with self.bench.database.transaction(LOCAL_TENANT) as connection:
            return await segments.read_role_calls(connection, run_id)

    async def read_answer(self, run_id: UUID) -> str:
        """The answer of its report."""
        async with self.bench.database.transaction(LOCAL_TENANT) as connection:
            report = await reports.find_latest_report(connection, run_id)
        return report.answer.text if report and report.answer else ""


@asynccontextmanager
async def open_peer_runs(bench: Bench, peer: Peer) -> AsyncGenerator[PeerRuns]:
    """The peer with a provider of its own. The same script answers whatever is asked twice."""
    bench.graphs = peer.place
    async with WireServer(provider({peer.name: peer})) as server:
        yield PeerRuns(bench, peer, server)


def model_calls(results: Sequence[Step]) -> list[Step]:
    return [step for step in results if step.kind is StepKind.ROLE_CALL]


def tools_used(results: Sequence[Step]) -> list[str]:
    """Names of the tools whose calls are steps, but for those that failed."""
    return sorted(str(step.payload["tool"]) for step in results if step.kind is StepKind.TOOL_RESULT and step.ok)


def by_name(*peers: Peer) -> Mapping[str, Peer]:
    return {peer.name: peer for peer in peers}
