"""A policy with a real tokenizer and chat template, made here from nothing, in every prompt format of every graph:
collected, trained, evaluated and served, with log-probabilities that plain transformers computes again.

It shows that the plumbing holds for such a tokenizer. What the policy writes means nothing.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from offing.core.model import EngineConfig
from offing.core.run import Budget
from offing.models.credentials import EngineEndpoint
from offing.models.policy_folder import hash_policy
from offing.models.prompt_formats import JSON
from offing.sdk import Graph, Role
from offing.services import policies, promotion, tasks, training_jobs
from offing.services.graphs import open_registry
from offing.services.policies import PolicyRegistration
from offing.services.promotion import EvaluationSetup
from offing.services.rollouts import BatchRequest
from offing.storage import segments
from offing.storage.policy_versions import PolicyVersionRow
from offing.storage.segments import StoredRoleCall
from offing.tools.environment import TaskSample, extend_role
from offing_trainer.job.engine_deployment import ManagedEngine
from offing_trainer.job.job_runner import JobContext
from offing_trainer.job.pipeline_trainer import open_trainer
from offing_trainer.job.process import run_one_job
from offing_trainer.job.rollout_collector import RolloutCollector
from tests.engine.chat_policy import create_chat_policy
from tests.engine.engine_server import serving
from tests.workers.conftest import Platform, StartWorker
from tests.workers.rollout_batches import Sql

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]

MAX_TOKENS = 24
"""Few, because a policy with random weights seldom ends a completion."""

SHIPPED = ("agentflow", "hiper", "iterresearch", "memact", "supo", "router", "research_team")

SHARED = {"router": ("router",), "research_team": ("lead",)}
"""The roles of a graph that are its own. The others are those of `agentflow`."""

TRAINING: dict[str, Any] = {
    "algorithm": "flow-grpo",
    "max_steps": 1,
    "data": {"groups_per_step": 1, "min_informative_groups": 0},
    "pipeline": {
        "view": {"name": "policy-turns", "include_rejected": True},
        "regularizers": [{"name": "entropy", "coefficient": 0.01}],
    },
    "learner": {"learning_rate": 1e-2, "cpu_threads": 1, "device": "cpu"},
}


@dataclass(frozen=True)
class Case:
    """A role that the policy answers in a prompt format."""

    graph: str
    role: str
    prompt_format: str

    @property
    def name(self) -> str:
        """Of the policy that is trained."""
        return f"{self.graph}-{self.role}-{self.prompt_format}".replace("_", "-")


def list_cases(graphs: dict[str, Graph]) -> list[Case]:
    return [
        Case(graph, role.name, prompt_format)
        for graph in SHIPPED
        for role in graphs[graph].roles
        if role.name in SHARED.get(graph, (role.name,))
        for prompt_format in (JSON, *(one.name for one in extend_role(role).prompt_formats))
    ]


def other_engine(role: Role[Any, Any]) -> EngineConfig:
    """A rule of the world that plays the role, or its function without a model."""
    rules = extend_role(role).rules
    rule = next((name for name in ("world", "oracle") if name in rules), None)
    return EngineConfig(engine="extractive") if rule is None else EngineConfig(engine="rules", model=rule)


def engines_of(graph: Graph, case: Case, policy: str) -> dict[str, EngineConfig]:
    ours = EngineConfig(
        engine="policy",
        model=policy,
        prompt_format=case.prompt_format,
        max_tokens=MAX_TOKENS,
        options={"max_corrections": 1},
    )
    return {role.name: other_engine(role) for role in graph.roles} | {case.role: ours}


class Bench:
    """A stack with an engine whose first version is `real@1`."""

    def __init__(self, platform: Platform, folder: Path, url: str) -> None:
        self.platform, self.database, self.tenant, self.folder = platform, platform.database, platform.tenant, folder
        self.graphs = dict(open_registry())
        self.collector = RolloutCollector(
            self.database, platform.notifier, self.graphs, ManagedEngine(EngineEndpoint(url))
        )

    async def register(self, folder: Path) -> PolicyVersionRow:
        registration = PolicyRegistration(name="real", kind="full", uri=str(folder), hashes=hash_policy(folder, None))
        return (await policies.register_version(self.database, self.tenant, registration))[0]

    async def collect(self, case: Case, task_ids: Sequence[UUID], policy: PolicyVersionRow) -> UUID:
        request = BatchRequest(
            case.graph,
            task_ids,
            2,
            engines_of(self.graphs[case.graph], case, policy.label),
            budget=Budget(max_turns=3),
            name=case.name,
        )
        return (await self.collector.run_batch(self.tenant, request, policy=policy)).batch.id

    async def train(self, case: Case, batch_id: UUID, policy: PolicyVersionRow) -> PolicyVersionRow:
        data = TRAINING["data"] | {"rollout_batches": [str(batch_id)], "roles": [case.role]}
        tables = TRAINING | {"policy": policy.label, "name": case.name, "data": data}
        job = await training_jobs.create_job(self.database, self.tenant, tables)
        context = JobContext(self.database, self.folder.parent, self.folder, open_trainer)
        done = await run_one_job(context, job.id)
        assert done is not None
        assert (done.state, done.error) == ("done", ""), case
        assert done.produced_version_id is not None
        return await policies.get_version(self.database, self.tenant, done.produced_version_id)

    async def evaluate(self, case: Case, task_ids: Sequence[UUID], version: PolicyVersionRow) -> None:
        await self.collector.deploy_version(self.tenant, version)
        engines = engines_of(self.graphs[case.graph], case, version.label)
        setup = EvaluationSetup(
            "unseen",
            task_ids,
            case.graph,
            case.role,
            greedy=False,
            prompt_format=case.prompt_format,
            max_tokens=MAX_TOKENS,
            budget=Budget(max_turns=3),
            engines={role: engine for role, engine in engines.items() if role != case.role},
        )
        created = await promotion.start_evaluation(
            self.database, self.platform.notifier, self.tenant, version.label, setup, graphs=self.graphs
        )
        await self.collector.wait_for_batch(self.tenant, created.batch.id, version)
        await promotion.store_evaluation(self.database, self.tenant, version.label, created.batch.id, setup)

    async def read_calls(self, run_ids: Sequence[UUID]) -> list[StoredRoleCall]:
        async with self.database.transaction(self.tenant) as connection:
            return [call for run in run_ids for call in await segments.read_role_calls(connection, run)]


def measure_difference(folder: Path, calls: Sequence[StoredRoleCall]) -> float:
    """The largest difference of a stored log-probability from that which transformers computes."""
    import torch
    from transformers import AutoModelForCausalLM

    model: Any = AutoModelForCausalLM.from_pretrained(folder)
    worst = 0.0
    for call in calls:
        tokens = call.tokens
        assert tokens is not None
        ids = torch.tensor([list(tokens.segment_ids[: tokens.end])])
        with torch.inference_mode():
            logprobs = model(ids).logits[0].log_softmax(-1)
        again = [float(logprobs[at - 1, int(ids[0, at])]) for at in range(tokens.start, tokens.end)]
        worst = max([worst, *(abs(old - new) for old, new in zip(tokens.logprobs, again, strict=True))])
    return worst


def read_texts() -> Iterator[str]:
    for path in sorted((ROOT / "docs").glob("*.md")):
        yield path.read_text("utf-8")


async def test_a_policy_with_a_real_tokenizer_is_collected_trained_evaluated_and_served_in_every_prompt_format(
    platform: Platform, start_worker: StartWorker, tmp_path: Path, sql: Sql
) -> None:
    import time
    t = time.time()
    folder = tmp_path / "policies"
    folder.mkdir()
    create_chat_policy(folder / "start", list(read_texts()))
    print("made", time.time() - t)
    with serving({}, "--policy-dir", str(folder)) as engine:
        start_worker(OFFING_ENGINE_URL=engine.url)
        bench = Bench(platform, folder, engine.url)
        start = await bench.register(folder / "start")
        await bench.collector.deploy_version(bench.tenant, start)
        sample = TaskSample("train-1@50", 2, (1, 2), ("lookup",))
        trained_on, evaluated_on = (
            [one] for one in await tasks.store_sampled_tasks(bench.database, bench.tenant, sample)
        )
        cases = list_cases(bench.graphs)
        print("begin", len(cases), time.time() - t)
        batches = await asyncio.gather(*(bench.collect(case, trained_on, start) for case in cases))
        print("collected", time.time() - t)
        versions: list[PolicyVersionRow] = []
        for case, batch in zip(cases, batches, strict=True):
            print(case, sql("select r.status, r.stop_reason, (select count(*) from app.role_call c where c.run_id=r.id and c.policy <> ''), (select count(*) from app.role_call c where c.run_id=r.id and c.policy <> '' and c.trainable='rl'), r.error from app.run r join app.rollout o on o.run_id = r.id join app.rollout_group g on g.id = o.group_id where g.batch_id = %s", batch))
            versions.append(await bench.train(case, batch, start))
        print("trained", time.time() - t)
        for case, version in zip(cases, versions, strict=True):
            await bench.evaluate(case, evaluated_on, version)
        print("evaluated", time.time() - t)
