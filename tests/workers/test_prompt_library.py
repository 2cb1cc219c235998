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
from offing.core.model import EngineConfig, parse_engine
from offing.core.run import Budget
from offing.core.step import StepKind
from offing.services import policies, promotion, prompt_distillation, ratings, tasks, training_jobs
from offing.services.graphs import open_registry
from offing.services.promotion import EvaluationSetup
from offing.services.promotion_gate import GateResult, GateRules
from offing.services.prompt_distillation import DistillationRequest, GateConfig, PromptLibraryContents
from offing.services.rollouts import ScorerSpec
from offing.services.runs import RunRequest
from offing.services.tasks import TaskSpec
from offing.storage import tenants, trajectory_reads
from offing.storage.runs import RunRow
from offing_workers.replay import replay_run
from tests.documents import ingest_folder
from tests.model_provider.replies import Completion, Hangup, Reply
from tests.model_provider.server import Received, WireServer
from tests.workers.conftest import Platform, StartWorker
from tests.workers.processes import ALL_GRAPHS, Worker
from tests.workers.rollout_batches import Collector, Sql
from tests.workers.test_rollout_workers import wait_until_all_finalized

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
        output = "\n".join(message["content"] for message in request.body["messages"])
        if "You keep a short list of experiences" in output:
            assert "a person corrected" in output.lower()
            self.compared += 1
            if self.kill("compare", self.compared):
                return Hangup()
            text = NOTE if "third tower" in output else OTHER
            return _completion({"reason": "One searched.", "edits": [{"op": "add", "id": "", "text": text}]})
        self.planned += 1
        if self.kill("plan", self.planned):
            return Hangup()
        return _completion(RIGHT if self.lucky or NOTE in output else WRONG)


def _completion(value: object) -> Completion:
    return Completion(text=json.dumps(value))


@dataclass
class DistillationTrial:
    platform: Platform
    collector: Collector
    server: WireServer
    stand_in: StandIn
    folder: Path
    worker: Worker

    def planner(self, library: str = "") -> EngineConfig:
        return EngineConfig(
            engine="litellm", model="openai/stand-in", api_base=self.server.url, options={"output_mode": "text"},
            prompt_library=library,
        )  # fmt: skip

    async def ask(
        self, library: str = "", *, lucky: bool = False, question: str = "Who built the third tower?"
    ) -> RunRow:
        self.stand_in.lucky = lucky
        engines = {"planner": self.planner(library)}
        request = RunRequest(question, budget=Budget(max_turns=2), engines=engines)
        ended = await self.platform.ended((await self.platform.submit(request)).id)
        self.stand_in.lucky = False
        return ended

    async def rate(self, run: RunRow, value: float, correction: str = "") -> None:
        await ratings.rate_report(
            self.platform.database, self.platform.tenant, run.id, person="me", sentence_id=None, value=value,
            correction=correction,
        )  # fmt: skip

    async def learn(self, gate: GateConfig | None = None) -> PromptLibraryContents:
        """As a person asks for it; the worker does it."""
        database, tenant = self.platform.database, self.platform.tenant
        expected = DistillationRequest("lessons", self.planner(), gate=gate)
        job, _ = await prompt_distillation.create_job(database, tenant, expected, open_registry(ALL_GRAPHS))
        give_up = time.monotonic() + 200
        while (job := (await training_jobs.get_job(database, tenant, job.id)).job).state in ("queued", "running"):
            assert time.monotonic() < give_up, job
            await asyncio.sleep(0.05)
        assert job.produced_version_id is not None, (job.state, job.error, job.stop_reason)
        return await prompt_distillation.get_contents(database, tenant, job.produced_version_id)

    async def evaluate(self, library: str) -> None:
        database, tenant = self.platform.database, self.platform.tenant
        specs = [
            TaskSpec.model_validate({"question": question, "answers": ["John Smeaton"]})
            for question in ("Who built the third Eddystone tower?", "Which person built the third tower?")
        ]
        stored = await tasks.store_tasks(database, tenant, "held-out", specs)
        frozen = EvaluationSetup(
            "held-out", stored.task_ids, "agentflow", "planner", rollouts_per_task=2, budget=Budget(max_turns=2),
            engines={"planner": self.planner()}, scorers=[ScorerSpec("token_f1")],
        )  # fmt: skip
        created = await promotion.start_evaluation(
            database, self.platform.notifier, tenant, library, frozen, graphs=open_registry(ALL_GRAPHS)
        )
        await wait_until_all_finalized(self.collector, created.batch.id)
        await promotion.store_evaluation(database, tenant, library, created.batch.id, frozen)

    async def gated(self, library: str) -> GateResult | None:
        _, verdict = await promotion.promote(
            self.platform.database, self.platform.tenant, library, GateRules(confident=False, min_pairs=4)
        )
        return verdict

    @property
    def prompts(self) -> list[str]:
        return ["\n".join(message["content"] for message in body["messages"]) for body in self.server.bodies]

    async def last_prompt(self, run: RunRow) -> str:
        """As it is on record."""
        (plan, *_) = [step for step in await self.platform.steps(run.id) if step.kind is StepKind.PLAN]
        async with self.platform.database.transaction(self.platform.tenant) as connection:
            message = await trajectory_reads.list_role_calls(connection, run.id, ["planner"])
        return next("\n".join(m.text for m in role_call.messages) for role_call in message if role_call.seq == plan.seq)


@pytest.fixture
async def trial(
    platform: Platform, collector: Collector, start_worker: StartWorker, tmp_path: Path
) -> AsyncIterator[DistillationTrial]:
    worker = start_worker(OFFING_SWEEP_INTERVAL_SECONDS="0.3", OFFING_HOME=str(tmp_path))
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "tower.md").write_text(f"# Eddystone\n\n{TEXT}\n")
    await ingest_folder(platform.database, platform.tenant, documents)
    async with platform.database.transaction(platform.tenant) as connection:
        await tenants.set_training_opt_in(connection, platform.tenant, True)
    stand_in = StandIn()
    async with WireServer(stand_in) as server:
        yield DistillationTrial(platform, collector, server, stand_in, tmp_path / "prompts", worker)


async def test_what_people_said_about_runs_is_in_the_prompt_of_the_next_one_once_it_measured_better(
    trial: DistillationTrial,
) -> None:
    bad, good = await trial.ask(), await trial.ask(lucky=True)
    await trial.rate(bad, -1, "It should have searched first.")
    await trial.rate(good, 1)

    distilled = await trial.learn()
    created = distilled.stored.version
    assert (created.label, created.state) == ("lessons@2", "candidate")
    assert created.lineage["prompt_tokens"] > 0
    assert [(e.text, set(e.run_ids)) for e in distilled.stored.library.experiences] == [
        (NOTE, {str(bad.id), str(good.id)})
    ]
    written = json.loads((trial.folder / "lessons@2" / "experiences.json").read_text())
    assert [one["text"] for one in written["experiences"]] == [NOTE]

    still_bare = await trial.ask("lessons")
    assert still_bare.engines["planner"].prompt_library == "lessons@1"
    assert NOTE not in trial.prompts[-1]

    for library in ("lessons@1", "lessons@2"):
        await trial.evaluate(library)
    verdict = await trial.gated("lessons@2")
    assert verdict is not None
    assert verdict.passed
    assert verdict.comparison.candidate > verdict.comparison.active

    taught = await trial.ask("lessons@active")
    assert taught.engines["planner"].prompt_library == "lessons@2"
    rendered = await trial.last_prompt(taught)
    assert NOTE in rendered
    assert "An earlier question: Who built the third tower?" in rendered
    (plan, *_) = [step for step in await trial.platform.steps(taught.id) if step.kind is StepKind.PLAN]
    assert (plan.payload["prompt_library"], plan.payload["output"]["tool"]) == ("lessons@2", "search_library")

    again = await replay_run(trial.platform.database, trial.platform.tenant, taught.id, open_registry(ALL_GRAPHS))
    assert again.is_same, again

    await promotion.roll_back_policy(trial.platform.database, trial.platform.tenant, "lessons")
    back = await trial.ask("lessons")
    assert (back.engines["planner"].prompt_library, NOTE in trial.prompts[-1]) == ("lessons@1", False)


async def test_a_candidate_is_measured_by_its_job_and_passes_the_gate_with_what_was_found(
    trial: DistillationTrial,
) -> None:
    await trial.rate(await trial.ask(), -1, "It should have searched first.")
    await trial.rate(await trial.ask(lucky=True), 1)
    specs = [
        TaskSpec.model_validate({"question": question, "answers": ["John Smeaton"]})
        for question in ("Who built the third Eddystone tower?", "Which person built the third tower?")
    ]
    await tasks.store_tasks(trial.platform.database, trial.platform.tenant, "held-out", specs)
    distilled = await trial.learn(GateConfig("held-out", trial.planner(), rollouts_per_task=4, max_turns=2))
    created = distilled.stored.version
    job = UUID(created.lineage["job"])
    seen, _ = await policies.list_evaluations(trial.platform.database, trial.platform.tenant, None, "lessons", None, 10)
    assert [(one.version, one.dataset, one.rollout_count) for one in seen] == [(2, "held-out", 8), (1, "held-out", 8)]
    events = await training_jobs.list_events(trial.platform.database, trial.platform.tenant, job, None, 100)
    assert [event.kind for event in events] == ["created", "registered", "gate"]
    verdict = await promotion.run_gate(trial.platform.database, trial.platform.tenant, created.label, GateRules())
    assert verdict is not None
    assert (events[-1].detail["passed"], events[-1].detail["comparison"]["pairs"]) == (verdict.passed, 8)


async def test_workers_killed_while_they_compare_and_measure_make_one_candidate_that_counts_nothing_twice(
    trial: DistillationTrial, start_worker: StartWorker, tmp_path: Path, sql: Sql
) -> None:
    await trial.rate(await trial.ask(), -1, "It should have searched first.")
    await trial.rate(await trial.ask(question="When was the tower built?"), -1, "It should have quoted.")
    specs = [TaskSpec.model_validate({"question": "Who built it?", "answers": ["John Smeaton"]})]
    await tasks.store_tasks(trial.platform.database, trial.platform.tenant, "held-out", specs)
    before, killed = trial.stand_in.planned, list[str]()

    def kill(what: str, count: int) -> bool:
        if (what, count) not in (("compare", 2), ("plan", before + 2)):
            return False
        killed.append(what)
        trial.worker.kill()
        trial.worker = start_worker(OFFING_SWEEP_INTERVAL_SECONDS="0.3", OFFING_HOME=str(tmp_path))
        return True

    trial.stand_in.kill = kill
    distilled = await trial.learn(GateConfig("held-out", trial.planner(), rollouts_per_task=2, max_turns=2))
    assert (killed, trial.stand_in.compared) == (["compare", "plan"], 3)
    library = distilled.stored.library
    assert [(one.text, one.groups, len(one.run_ids)) for one in library.experiences] == [(NOTE, 1, 1), (OTHER, 1, 1)]
    assert sql("select reason, count(*) from app.ledger group by reason") == [("used", 2)]
    assert sql("select name, version from app.policy_version order by version") == [("lessons", 1), ("lessons", 2)]
    assert sql("select count(*), count(distinct policy_version_id), count(distinct batch_id) from app.evaluation") == [
        (2, 2, 2)
    ]
    assert sql("select count(*) from app.rollout_batch") == [(2,)]


async def test_a_library_that_nobody_would_read_is_rejected_when_the_run_is_made(trial: DistillationTrial) -> None:
    await trial.ask()
    with pytest.raises(
        InvalidInput, match=r"engines.planner.prompt_library: .*extractive does not use a prompt library"
    ):
        await trial.platform.submit(RunRequest("Who?", engines={"planner": parse_engine("extractive;library=a@1")}))
    with pytest.raises(InvalidInput, match="lessons has no active version"):
        await trial.ask("lessons")
