"""A policy with a real tokenizer and chat template, made here from nothing, in every prompt format of every graph:
taught by SFT, collected, trained, evaluated and served, with log-probabilities that plain transformers computes again.

It shows that the plumbing holds for such a tokenizer, no more. The policy has learned the form of the compact formats
and of `words`; in the others, hardly anything that it writes can be parsed.
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

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

ROOT = Path(__file__).parents[2]

MAX_LOGPROB_DIFFERENCE = 1e-4

MAX_TOKENS = 16
"""Of a completion that is not taught. Few, because a policy with random weights seldom ends one."""

MAX_TAUGHT_TOKENS = 40

SHIPPED = ("agentflow", "hiper", "iterresearch", "memact", "supo", "router", "research_team")

SHARED = {"router": ("router",), "research_team": ("lead",)}
"""The roles of a graph that are its own. The others are those of `agentflow`."""

TEACHERS = {
    "compact": ("random", "world"),
    "compact-report": ("random",),
    "words": ("random-words",),
}
"""The rules that show the form of a prompt format, by format: the first that a role has."""

TEACHING: dict[str, Any] = {
    "algorithm": "sft",
    "max_steps": 90,
    "data": {"groups_per_step": 9, "data_passes": 250},
    "pipeline": {"selectors": []},
    "learner": {"learning_rate": 1e-2, "cpu_threads": 1, "device": "cpu", "warmup_steps": 5},
}

SAMPLED_RUNS = """
    select b.name, o.run_id from app.rollout o join app.rollout_group g on g.id = o.group_id
      join app.rollout_batch b on b.id = g.batch_id
     where exists (select from app.role_call c where c.run_id = o.run_id and c.policy = %s)
     order by o.run_id
"""

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

    @property
    def max_tokens(self) -> int:
        return MAX_TAUGHT_TOKENS if self.prompt_format in TEACHERS else MAX_TOKENS

    @property
    def dialect(self) -> str:
        """Which cases begin with the same prompt and the same kind of word, and so are taught together."""
        if self.graph == "hiper":
            return "switches"
        return "reports" if (self.graph, self.prompt_format) == ("iterresearch", "compact-report") else "calls"


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


def sampled(case: Case, policy: PolicyVersionRow) -> EngineConfig:
    options = {"max_corrections": 1 if case.prompt_format in TEACHERS else 0}
    return EngineConfig(
        engine="policy",
        model=policy.label,
        prompt_format=case.prompt_format,
        max_tokens=case.max_tokens,
        options=options,
    )


def teacher(graph: Graph, case: Case) -> EngineConfig | None:
    """The rule that shows the form of the case's completions. `None` for a format that is not taught."""
    (role,) = [role for role in graph.roles if role.name == case.role]
    rules = extend_role(role).rules
    rule = next((name for name in TEACHERS.get(case.prompt_format, ()) if name in rules), None)
    if rule is None:
        return None
    return EngineConfig(engine="rules", model=rule, prompt_format=case.prompt_format)


async def keep_loaded(_version: str) -> bool:
    return True


class Bench:
    """A stack with an engine whose first version is `real@1`."""

    def __init__(self, platform: Platform, folder: Path, url: str) -> None:
        self.platform, self.database, self.tenant, self.folder = platform, platform.database, platform.tenant, folder
        self.graphs = dict(open_registry())
        engine = ManagedEngine(EngineEndpoint(url), is_needed=keep_loaded)
        self.collector = RolloutCollector(self.database, platform.notifier, self.graphs, engine)

    async def register(self, folder: Path) -> PolicyVersionRow:
        registration = PolicyRegistration(name="real", kind="full", uri=str(folder), hashes=hash_policy(folder, None))
        return (await policies.register_version(self.database, self.tenant, registration))[0]

    async def collect(
        self, case: Case, task_ids: Sequence[UUID], engine: EngineConfig, policy: PolicyVersionRow | None = None
    ) -> UUID:
        """A batch of two rollouts a task, in which `engine` plays the role."""
        graph = self.graphs[case.graph]
        engines = {role.name: other_engine(role) for role in graph.roles} | {case.role: engine}
        request = BatchRequest(case.graph, task_ids, 2, engines, budget=Budget(max_turns=3), name=case.name)
        return (await self.collector.run_batch(self.tenant, request, policy=policy)).batch.id

    async def train(
        self, tables: dict[str, Any], name: str, batches: Sequence[UUID], roles: Sequence[str], start: PolicyVersionRow
    ) -> PolicyVersionRow:
        data = tables["data"] | {"rollout_batches": [str(id) for id in batches], "roles": list(roles)}
        job = await training_jobs.create_job(
            self.database, self.tenant, tables | {"policy": start.label, "name": name, "data": data}
        )
        context = JobContext(self.database, self.folder.parent, self.folder, open_trainer)
        done = await run_one_job(context, job.id)
        assert done is not None
        assert (done.state, done.error) == ("done", ""), name
        assert done.produced_version_id is not None
        return await policies.get_version(self.database, self.tenant, done.produced_version_id)

    async def evaluate(self, case: Case, task_ids: Sequence[UUID], version: PolicyVersionRow) -> None:
        await self.collector.deploy_version(self.tenant, version)
        setup = EvaluationSetup(
            "unseen",
            task_ids,
            case.graph,
            case.role,
            greedy=False,
            prompt_format=case.prompt_format,
            max_tokens=case.max_tokens,
            budget=Budget(max_turns=3),
            engines={one.name: other_engine(one) for one in self.graphs[case.graph].roles if one.name != case.role},
        )
        created = await promotion.start_evaluation(
            self.database, self.platform.notifier, self.tenant, version.label, setup, graphs=self.graphs
        )
        await self.collector.wait_for_batch(self.tenant, created.batch.id, version)
        await promotion.store_evaluation(self.database, self.tenant, version.label, created.batch.id, setup)

    async def read_calls(self, version: PolicyVersionRow) -> dict[str, list[StoredRoleCall]]:
        """What a version has sampled, by the name of the batch."""
        async with self.database.transaction(self.tenant) as connection:
            cursor = await connection.execute(SAMPLED_RUNS.encode(), (version.label,))
            runs = await cursor.fetchall()
            calls = [(name, await segments.read_role_calls(connection, run)) for name, run in runs]
        return {
            name: [call for one, of_run in calls for call in of_run if one == name and call.policy == version.label]
            for name, _ in calls
        }


def measure_difference(model: Any, call: StoredRoleCall) -> float:
    """The largest difference of a stored log-probability from that which a model of transformers computes."""
    import torch

    tokens = call.tokens
    assert tokens is not None
    ids = torch.tensor([list(tokens.segment_ids[: tokens.end])])
    with torch.inference_mode():
        logprobs = model(ids).logits[0].log_softmax(-1)
    again = [float(logprobs[at - 1, int(ids[0, at])]) for at in range(tokens.start, tokens.end)]
    return max(abs(old - new) for old, new in zip(tokens.logprobs, again, strict=True))


def open_model(version: PolicyVersionRow) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(version.uri)


def read_texts() -> Iterator[str]:
    for path in sorted((ROOT / "docs").glob("*.md")):
        yield path.read_text("utf-8")


async def test_a_policy_with_a_real_tokenizer_is_collected_trained_evaluated_and_served_in_every_prompt_format(
    platform: Platform, start_worker: StartWorker, tmp_path: Path, sql: Sql
) -> None:
    folder = tmp_path / "policies"
    folder.mkdir()
    create_chat_policy(folder / "start", list(read_texts()))
    with serving({}, "--policy-dir", str(folder)) as engine:
        start_worker(OFFING_ENGINE_URL=engine.url)
        bench = Bench(platform, folder, engine.url)
        cases = list_cases(bench.graphs)
        sample = TaskSample("train-1@50", 4, (1, 2), ("lookup",))
        *task_ids, unseen = await tasks.store_sampled_tasks(bench.database, bench.tenant, sample)
        taught = await teach(bench, cases, task_ids)
        batches = await asyncio.gather(
            *(bench.collect(case, task_ids[:1], sampled(case, taught[case.dialect])) for case in cases)
        )
        trained = [
            await bench.train(TRAINING, case.name, [batch], [case.role], taught[case.dialect])
            for case, batch in zip(cases, batches, strict=True)
        ]
        for case, version in zip(cases, trained, strict=True):
            await bench.evaluate(case, [unseen], version)
    collected: dict[str, list[StoredRoleCall]] = {}
    for dialect, version in taught.items():
        calls = await bench.read_calls(version)
        check_calls(calls, version, {case.name for case in cases if case.dialect == dialect})
        collected |= calls
    for version in trained:
        evaluated = await bench.read_calls(version)
        check_calls(evaluated, version, {f"{version.label} on unseen, sampled"})
    accepted = {name for name, calls in collected.items() if any(call.is_accepted for call in calls)}
    assert accepted >= {case.name for case in cases if case.prompt_format in TEACHERS}
    assert any(call.sampling.get("prefix") for calls in collected.values() for call in calls)
    assert all(v.sha256 != taught[case.dialect].sha256 for case, v in zip(cases, trained, strict=True))
    assert sql("select count(distinct policy_version_id) from app.evaluation") == [(len(cases),)]


async def teach(bench: Bench, cases: Sequence[Case], task_ids: Sequence[UUID]) -> dict[str, PolicyVersionRow]:
    """A version for each dialect, which has learned from random weights to begin as its rules do."""
    start = await bench.register(bench.folder / "start")
    teachers = [(case, rule) for case in cases if (rule := teacher(bench.graphs[case.graph], case))]
    lessons = await asyncio.gather(*(bench.collect(case, task_ids, rule) for case, rule in teachers))
    batches: dict[str, list[UUID]] = {}
    for (case, _), batch in zip(teachers, lessons, strict=True):
        batches.setdefault(case.dialect, []).append(batch)
    roles = sorted({case.role for case, _ in teachers})
    taught = {name: await bench.train(TEACHING, f"real-{name}", of, roles, start) for name, of in batches.items()}
    for version in taught.values():
        await bench.collector.deploy_version(bench.tenant, version)
    return taught


def check_calls(calls_by_batch: dict[str, list[StoredRoleCall]], version: PolicyVersionRow, batches: set[str]) -> None:
    """Each batch has calls of the version, all of them trainable, whose log-probabilities are those of transformers."""
    assert {name for name, calls in calls_by_batch.items() if calls} == batches
    model = open_model(version)
    for name, calls in calls_by_batch.items():
        assert {(call.trainable, call.weights_sha256) for call in calls} == {("rl", version.sha256)}, name
        assert max(measure_difference(model, call) for call in calls) <= MAX_LOGPROB_DIFFERENCE, name
