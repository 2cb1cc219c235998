"""The loop without weights, whole: rated runs over a folder, a candidate, its gate, and the next run that uses it.

The model is a stand-in behind the provider's wire: its planner goes wrong unless its prompt holds the note it needs.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest

from offing.core.errors import InvalidInput
from offing.core.model import EngineChoice, parse_engine
from offing.core.run import Budget
from offing.core.step import StepKind
from offing.services import learning, policies, promotion, ratings, tasks, training
from offing.services.graphs import installed
from offing.services.learning import Contents, Gate, Wanted
from offing.services.promotion import Frozen
from offing.services.rollouts import ScorerSpec
from offing.services.runs import RunRequest
from offing.services.tasks import TaskSpec
from offing.services.training_gate import Rules, Verdict
from offing.storage import stretches, views
from offing.storage.runs import RunRow
from offing_workers.replay import replayed
from tests.documents import ingest_folder
from tests.wire.replies import Completion, Hangup, Reply
from tests.wire.server import Received, WireServer
from tests.workers.collecting import Collector, Sql
from tests.workers.conftest import Platform, StartWorker
from tests.workers.processes import ALL_GRAPHS, Worker
from tests.workers.test_collecting_workers import settled_all

pytestmark = pytest.mark.timeout(400)

TEXT = "John Smeaton built the third Eddystone tower between 1756 and 1759."

NOTE = "Search the library before anything else."

OTHER = "Quote what you found."

WRONG = {"justification": "sums", "context": "", "sub_goal": "compute 1 + 1", "tool": "calculate"}
RIGHT = {"justification": "look", "context": "", "sub_goal": "Who built the third tower?", "tool": "search_library"}


@dataclass
class StandIn:
    """Answers planner and distiller by what they are shown."""

    lucky: bool = False
    """Plans well without being told."""
    compared: int = 0
    planned: int = 0
    kill: Callable[[str, int], bool] = lambda what, count: False
    """Ends the worker that asks, at this comparison or plan. True: it did."""

    def __call__(self, request: Received) -> Reply:
        said = "\n".join(message["content"] for message in request.body["messages"])
        if "You keep a short list of experiences" in said:
            assert "a person corrected" in said.lower()
            self.compared += 1
            if self.kill("compare", self.compared):
                return Hangup()
            text = NOTE if "third tower" in said else OTHER
            return _says({"reason": "One searched.", "edits": [{"op": "add", "id": "", "text": text}]})
        self.planned += 1
        if self.kill("plan", self.planned):
            return Hangup()
        return _says(RIGHT if self.lucky or NOTE in said else WRONG)


def _says(value: object) -> Completion:
    return Completion(text=json.dumps(value))


@dataclass
class Stage:
    platform: Platform
    collector: Collector
    server: WireServer
    stand_in: StandIn
    folder: Path
    worker: Worker

    def planner(self, library: str = "") -> EngineChoice:
        return EngineChoice(
            engine="litellm", model="openai/stand-in", api_base=self.server.url, options={"form": "text"},
            library=library,
        )  # fmt: skip

    async def ask(
        self, library: str = "", *, lucky: bool = False, question: str = "Who built the third tower?"
    ) -> RunRow:
        self.stand_in.lucky = lucky
        engines = {"planner": self.planner(library)}
        request = RunRequest(question, budget=Budget(turns=2), engines=engines)
        ended = await self.platform.ended((await self.platform.submit(request)).id)
        self.stand_in.lucky = False
        return ended

    async def rate(self, run: RunRow, value: float, correction: str = "") -> None:
        await ratings.rate(
            self.platform.database, self.platform.tenant, run.id, person="me", claim=None, value=value,
            correction=correction,
        )  # fmt: skip

    async def learn(self, gate: Gate | None = None) -> Contents:
        """As a person asks for it; the worker does it."""
        database, tenant = self.platform.database, self.platform.tenant
        wanted = Wanted("lessons", self.planner(), gate=gate)
        job, _ = await learning.create(database, tenant, wanted, installed(ALL_GRAPHS))
        give_up = time.monotonic() + 200
        while (job := (await training.one(database, tenant, job.id)).job).state in ("queued", "running"):
            assert time.monotonic() < give_up, job
            await asyncio.sleep(0.05)
        assert job.produced is not None, (job.state, job.error, job.stop_reason)
        return await learning.contents(database, tenant, job.produced)

    async def evaluate(self, library: str) -> None:
        database, tenant = self.platform.database, self.platform.tenant
        specs = [
            TaskSpec.model_validate({"question": question, "answers": ["John Smeaton"]})
            for question in ("Who built the third Eddystone tower?", "Which person built the third tower?")
        ]
        stored = await tasks.store(database, tenant, "held-out", specs)
        frozen = Frozen(
            "held-out", stored.ids, "agentflow", "planner", members=2, budget=Budget(turns=2),
            engines={"planner": self.planner()}, scorers=[ScorerSpec("token_f1")],
        )  # fmt: skip
        made = await promotion.evaluate(
            database, self.platform.hints, tenant, library, frozen, graphs=installed(ALL_GRAPHS)
        )
        await settled_all(self.collector, made.batch.id)
        await promotion.settle_evaluation(database, tenant, library, made.batch.id, frozen)

    async def gated(self, library: str) -> Verdict | None:
        _, verdict = await promotion.promote(
            self.platform.database, self.platform.tenant, library, Rules(least_pairs=4)
        )
        return verdict

    @property
    def prompts(self) -> list[str]:
        return ["\n".join(message["content"] for message in body["messages"]) for body in self.server.bodies]

    async def last_prompt(self, run: RunRow) -> str:
        """As it is on record."""
        (plan, *_) = [step for step in await self.platform.steps(run.id) if step.kind is StepKind.PLAN]
        async with self.platform.database.transaction(self.platform.tenant) as connection:
            told = await stretches.talks(connection, run.id, ["planner"])
        return next("\n".join(m.text for m in talk.messages) for talk in told if talk.seq == plan.seq)


@pytest.fixture
async def stage(
    platform: Platform, collector: Collector, start_worker: StartWorker, tmp_path: Path
) -> AsyncIterator[Stage]:
    worker = start_worker(OFFING_SWEEP_SECONDS="0.3", OFFING_HOME=str(tmp_path))
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "tower.md").write_text(f"# Eddystone\n\n{TEXT}\n")
    await ingest_folder(platform.database, platform.tenant, documents)
    async with platform.database.transaction(platform.tenant) as connection:
        await views.change_opt_in(connection, platform.tenant, True)
    stand_in = StandIn()
    async with WireServer(stand_in) as server:
        yield Stage(platform, collector, server, stand_in, tmp_path / "prompts", worker)


async def test_what_people_said_about_runs_is_in_the_prompt_of_the_next_one_once_it_measured_better(
    stage: Stage,
) -> None:
    bad, good = await stage.ask(), await stage.ask(lucky=True)
    await stage.rate(bad, -1, "It should have searched first.")
    await stage.rate(good, 1)

    learned = await stage.learn()
    made = learned.stored.version
    assert (made.label, made.state) == ("lessons@2", "candidate")
    assert made.lineage["prompt_tokens"] > 0
    assert [(e.text, set(e.runs)) for e in learned.stored.library.experiences] == [(NOTE, {str(bad.id), str(good.id)})]
    written = json.loads((stage.folder / "lessons@2" / "experiences.json").read_text())
    assert [one["text"] for one in written["experiences"]] == [NOTE]

    still_bare = await stage.ask("lessons")
    assert still_bare.engines["planner"].library == "lessons@1"
    assert NOTE not in stage.prompts[-1]

    for library in ("lessons@1", "lessons@2"):
        await stage.evaluate(library)
    verdict = await stage.gated("lessons@2")
    assert verdict is not None
    assert verdict.passed
    assert verdict.paired.candidate > verdict.paired.champion

    taught = await stage.ask("lessons@active")
    assert taught.engines["planner"].library == "lessons@2"
    shown = await stage.last_prompt(taught)
    assert NOTE in shown
    assert "An earlier question: Who built the third tower?" in shown
    (plan, *_) = [step for step in await stage.platform.steps(taught.id) if step.kind is StepKind.PLAN]
    assert (plan.payload["library"], plan.payload["output"]["tool"]) == ("lessons@2", "search_library")

    again = await replayed(stage.platform.database, stage.platform.tenant, taught.id, installed(ALL_GRAPHS))
    assert again.same, again

    await promotion.roll_back(stage.platform.database, stage.platform.tenant, "lessons")
    back = await stage.ask("lessons")
    assert (back.engines["planner"].library, NOTE in stage.prompts[-1]) == ("lessons@1", False)


async def test_a_candidate_is_measured_by_its_job_and_passes_the_gate_with_what_was_found(stage: Stage) -> None:
    await stage.rate(await stage.ask(), -1, "It should have searched first.")
    await stage.rate(await stage.ask(lucky=True), 1)
    specs = [
        TaskSpec.model_validate({"question": question, "answers": ["John Smeaton"]})
        for question in ("Who built the third Eddystone tower?", "Which person built the third tower?")
    ]
    await tasks.store(stage.platform.database, stage.platform.tenant, "held-out", specs)
    learned = await stage.learn(Gate("held-out", stage.planner(), members=4, turns=2))
    made = learned.stored.version
    job = UUID(made.lineage["job"])
    seen, _ = await policies.evaluations(stage.platform.database, stage.platform.tenant, None, "lessons", None, 10)
    assert [(one.version, one.dataset, one.rollouts) for one in seen] == [(2, "held-out", 8), (1, "held-out", 8)]
    events = await training.events(stage.platform.database, stage.platform.tenant, job, None, 100)
    assert [event.kind for event in events] == ["created", "registered", "gate"]
    verdict = await promotion.gate(stage.platform.database, stage.platform.tenant, made.label, Rules())
    assert verdict is not None
    assert (events[-1].detail["passed"], events[-1].detail["pairs"]) == (verdict.passed, 8)


async def test_workers_killed_while_they_compare_and_measure_make_one_candidate_that_counts_nothing_twice(
    stage: Stage, start_worker: StartWorker, tmp_path: Path, sql: Sql
) -> None:
    await stage.rate(await stage.ask(), -1, "It should have searched first.")
    await stage.rate(await stage.ask(question="When was the tower built?"), -1, "It should have quoted.")
    specs = [TaskSpec.model_validate({"question": "Who built it?", "answers": ["John Smeaton"]})]
    await tasks.store(stage.platform.database, stage.platform.tenant, "held-out", specs)
    before, killed = stage.stand_in.planned, list[str]()

    def kill(what: str, count: int) -> bool:
        if (what, count) not in (("compare", 2), ("plan", before + 2)):
            return False
        killed.append(what)
        stage.worker.kill()
        stage.worker = start_worker(OFFING_SWEEP_SECONDS="0.3", OFFING_HOME=str(tmp_path))
        return True

    stage.stand_in.kill = kill
    learned = await stage.learn(Gate("held-out", stage.planner(), members=2, turns=2))
    assert (killed, stage.stand_in.compared) == (["compare", "plan"], 3)
    library = learned.stored.library
    assert [(one.text, one.groups, len(one.runs)) for one in library.experiences] == [(NOTE, 1, 1), (OTHER, 1, 1)]
    assert sql("select reason, count(*) from app.ledger group by reason") == [("kept", 2)]
    assert sql("select name, version from app.policy_version order by version") == [("lessons", 1), ("lessons", 2)]
    assert sql("select count(*), count(distinct policy_version_id), count(distinct batch_id) from app.evaluation") == [
        (2, 2, 2)
    ]
    assert sql("select count(*) from app.batch") == [(2,)]


async def test_a_library_that_nobody_would_read_is_refused_when_the_run_is_made(stage: Stage) -> None:
    await stage.ask()
    with pytest.raises(InvalidInput, match=r"engines.planner.library: .*extractive reads no prompt library"):
        await stage.platform.submit(RunRequest("Who?", engines={"planner": parse_engine("extractive;library=a@1")}))
    with pytest.raises(InvalidInput, match="lessons has no active version"):
        await stage.ask("lessons")
