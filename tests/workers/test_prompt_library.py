"""The loop without weights, whole: rated runs over a folder, a candidate, its gate, and the next run that uses it.

The model is a stand-in behind the provider's wire: its planner goes wrong unless its prompt holds the note it needs.
"""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from offing.core.errors import InvalidInput
from offing.core.model import EngineChoice, parse_engine
from offing.core.run import Budget
from offing.core.step import StepKind
from offing.services import promotion, ratings, tasks
from offing.services.graphs import installed
from offing.services.library import ingest_folder
from offing.services.promotion import Frozen
from offing.services.rollouts import ScorerSpec
from offing.services.runs import RunRequest
from offing.services.tasks import TaskSpec
from offing.services.training_gate import Rules, Verdict
from offing.storage import stretches, views
from offing.storage.runs import RunRow
from offing_trainer.prompts.learning import Learned, Wanted, learn
from offing_workers.collection import TenantMeter
from offing_workers.replay import replayed
from tests.wire.replies import Completion, Reply
from tests.wire.server import Received, WireServer
from tests.workers.collecting import Collector
from tests.workers.conftest import Platform, StartWorker
from tests.workers.processes import ALL_GRAPHS
from tests.workers.test_collecting_workers import settled_all

TEXT = "John Smeaton built the third Eddystone tower between 1756 and 1759."

NOTE = "Search the library before anything else."

WRONG = {"justification": "sums", "context": "", "sub_goal": "compute 1 + 1", "tool": "calculate"}
RIGHT = {"justification": "look", "context": "", "sub_goal": "Who built the third tower?", "tool": "search_library"}


@dataclass
class StandIn:
    """Answers planner and distiller by what they are shown."""

    lucky: bool = False
    """Plans well without being told."""

    def __call__(self, request: Received) -> Reply:
        said = "\n".join(message["content"] for message in request.body["messages"])
        if "You keep a short list of experiences" in said:
            assert "a person corrected" in said.lower()
            return _says({"reason": "One searched.", "edits": [{"op": "add", "id": "", "text": NOTE}]})
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

    def planner(self, library: str = "") -> EngineChoice:
        return EngineChoice(
            engine="litellm", model="openai/stand-in", api_base=self.server.url, options={"form": "text"},
            library=library,
        )  # fmt: skip

    async def ask(self, library: str = "", *, lucky: bool = False) -> RunRow:
        self.stand_in.lucky = lucky
        engines = {"planner": self.planner(library)}
        request = RunRequest("Who built the third tower?", budget=Budget(turns=2), engines=engines)
        ended = await self.platform.ended((await self.platform.submit(request)).id)
        self.stand_in.lucky = False
        return ended

    async def rate(self, run: RunRow, value: float, correction: str = "") -> None:
        await ratings.rate(
            self.platform.database, self.platform.tenant, run.id, person="me", claim=None, value=value,
            correction=correction,
        )  # fmt: skip

    async def learn(self) -> Learned:
        database, tenant = self.platform.database, self.platform.tenant
        wanted = Wanted("lessons", self.planner())
        return await learn(database, tenant, wanted, self.folder, TenantMeter(database, tenant))

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
    start_worker(OFFING_SWEEP_SECONDS="0.3")
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "tower.md").write_text(f"# Eddystone\n\n{TEXT}\n")
    await ingest_folder(platform.database, platform.tenant, documents)
    async with platform.database.transaction(platform.tenant) as connection:
        await views.change_opt_in(connection, platform.tenant, True)
    stand_in = StandIn()
    async with WireServer(stand_in) as server:
        yield Stage(platform, collector, server, stand_in, tmp_path / "prompts")


async def test_what_people_said_about_runs_is_in_the_prompt_of_the_next_one_once_it_measured_better(
    stage: Stage,
) -> None:
    bad, good = await stage.ask(), await stage.ask(lucky=True)
    await stage.rate(bad, -1, "It should have searched first.")
    await stage.rate(good, 1)

    learned = await stage.learn()
    assert learned.version is not None
    assert (learned.version.name, learned.version.version, learned.version.state) == ("lessons", 2, "candidate")
    assert [(e.text, set(e.runs)) for e in learned.library.experiences] == [(NOTE, {str(bad.id), str(good.id)})]
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


async def test_a_library_that_nobody_would_read_is_refused_when_the_run_is_made(stage: Stage) -> None:
    await stage.ask()
    with pytest.raises(InvalidInput, match=r"engines.planner.library: .*extractive reads no prompt library"):
        await stage.platform.submit(RunRequest("Who?", engines={"planner": parse_engine("extractive;library=a@1")}))
    with pytest.raises(InvalidInput, match="lessons has no active version"):
        await stage.ask("lessons")
