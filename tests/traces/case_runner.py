"""A case from its request to its trace, undisturbed or with a worker that is killed on the way."""

import os
import tempfile
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

from offing.services.runs import RunRequest
from tests.model_provider.policy_server import Policies
from tests.model_provider.server import WireServer
from tests.traces import graphs
from tests.traces.cases import Case
from tests.traces.kernel import Kernel, prompt_key
from tests.traces.trace import Left, Trace, read_back, trace_of
from tests.workers.interrupted_runs import Disturbed

MAX_SLICES = 100

When = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class Crash:
    """The worker is killed at its nth transaction: before that begins, or after it was committed."""

    when: When
    at: int


@dataclass(frozen=True, slots=True)
class Played:
    trace: Trace
    transactions: int
    """That were begun until the run had ended or its worker was killed."""
    read_back: list[int]


async def played(kernel: Kernel, case: Case, crash: Crash | None = None) -> Played:
    """Play a case to its end; after a crash, by another worker."""
    case, thread = await _with_trained_policy(kernel, case), await _earlier(kernel, case)
    charged = kernel.charged()
    async with _surroundings(case) as request:
        run = await kernel.submit(replace(request, thread_id=thread), case.graphs)
        transactions = await _Play(kernel, case, run).work(crash)
    tree = [_left(kernel, one) for one in kernel.tree(run)]
    more = [now - before for now, before in zip(kernel.charged(), charged, strict=True)]
    return Played(trace_of(tree, graphs.EFFECTS, more), transactions, read_back(tree))


async def _earlier(kernel: Kernel, case: Case) -> UUID | None:
    """The thread of the run that comes before, once that has ended. None: none does."""
    return kernel.thread(await _ended(kernel, case, case.earlier)) if case.earlier else None


async def _with_trained_policy(kernel: Kernel, case: Case) -> Case:
    """With a policy that writes what its teacher wrote to the same prompts."""
    if case.teacher is None:
        return case
    known = await kernel.read_answers(await _ended(kernel, case, case.teacher))

    def render_answer(body: dict[str, Any]) -> str:
        return known[prompt_key([[m["role"], m["content"]] for m in body["messages"]])]

    return replace(case, says=render_answer)


async def _ended(kernel: Kernel, case: Case, request: RunRequest) -> UUID:
    run = await kernel.submit(request, case.graphs)
    await _Play(kernel, case, run).work(None)
    return run


@asynccontextmanager
async def _surroundings(case: Case) -> AsyncGenerator[RunRequest]:
    """The case's request, with the address of its policy server in it, and what tools did afterwards in EFFECTS."""
    graphs.EFFECTS.clear()
    with _noting():
        if case.says is None:
            yield case.request
        else:
            versions = tuple(choice.model for choice in case.request.engines.values() if choice.engine == "policy")
            async with WireServer(Policies(case.says, versions)) as server:
                yield replace(case.request, engines=_for_provider(case.request, server.url))


@contextmanager
def _noting() -> Generator[None]:
    """What `plain_keeping` writes to a file becomes effects."""
    with tempfile.TemporaryDirectory() as folder:
        noted = Path(folder, "noted")
        os.environ["NOTED"] = str(noted)
        yield
        if noted.exists():
            graphs.EFFECTS.extend(["noted", line, ""] for line in noted.read_text().splitlines())


def _for_provider(request: RunRequest, url: str):
    return {
        role: choice.model_copy(update={"api_base": url}) if choice.engine == "policy" else choice
        for role, choice in request.engines.items()
    }


@dataclass
class _Play:
    kernel: Kernel
    case: Case
    run: UUID
    steered: bool = False

    async def work(self, crash: Crash | None) -> int:
        """Slice by slice until nobody has anything to do; how many transactions there were."""
        graphs.SIGNALS[:] = [self._steer]
        async with Disturbed(self.kernel.app_url, maximum=4) as database:
            if crash is not None:
                database.at, database.when, database.what = crash.at, crash.when, "killed"
            for _ in range(MAX_SLICES):
                if not (await self._steered() or await self._advanced(database) or await self._people()):
                    return database.begun
        raise AssertionError(f"{self.case.name} has not ended after {MAX_SLICES} slices")

    async def _steer(self) -> None:
        if self.case.control is not None and not self.steered:
            self.steered = True
            await self.kernel.steer(self.run, self.case.control)

    async def _steered(self) -> bool:
        """Between slices, from a turn on."""
        status, turns = self.kernel.state(self.run)
        due = self.case.control_after is not None and turns >= self.case.control_after and not self.steered
        if due and status in ("queued", "waiting"):
            await self._steer()
            return True
        return False

    async def _advanced(self, database: Disturbed) -> bool:
        """By the worker that may be killed, or its successor: lost runs first, then those that were asked for first."""
        tree = self.kernel.tree(self.run)
        results = [one for status in ("running", "queued") for one in tree if self.kernel.state(one)[0] == status]
        if not results:
            return False
        using = self.kernel.database if database.dead else database
        await self.kernel.advance(using, results[0], self.case.graphs, self.case.slice_turns)
        if self.kernel.state(results[0])[0] == "running":
            self.kernel.lose(results[0])
        return True

    async def _people(self) -> bool:
        """Answer what is asked first by its words, or resume what was paused."""
        for run in self.kernel.tree(self.run):
            input_requests = await self.kernel.list_requests(run)
            for prompt, number in sorted((prompt, number) for number, prompt, is_open in input_requests if is_open):
                nth = sum(prompt == other and not is_open for _, other, is_open in input_requests)
                await self.kernel.answer(run, number, self.case.answers[prompt][nth])
                return True
        if self.kernel.state(self.run)[0] == "paused":
            await self.kernel.resume(self.run)
            return True
        return False


def _left(kernel: Kernel, run_id: UUID) -> Left:
    rows = kernel.left(run_id)
    hashes = {part for call in rows["role_calls"] for _, parts in call["prompt"] for part in parts}
    return Left(rows, kernel.texts(sorted(hashes)))
