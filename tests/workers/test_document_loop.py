"""Loops over documents: a planner made from nothing chooses words to search for, rewarded by evidence or by a judge.

The judge is a stand-in that speaks the real wire of a model provider: it shows that the plumbing holds, no more.
"""

import sys
from collections.abc import AsyncIterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import UUID

import pytest

from offing.core.errors import Conflict
from offing.datasets.dataset import open_dataset
from offing.library.readers import DocumentReaderPool
from offing.models.credentials import EngineEndpoint
from offing.services.datasets import store_dataset
from offing.services.graphs import open_registry
from offing.storage.training_jobs import TrainingJobRow
from offing_trainer.job.engine_deployment import ManagedEngine
from offing_trainer.job.job_runner import JobContext
from offing_trainer.job.pipeline_trainer import open_trainer
from offing_trainer.job.process import run_one_job
from offing_trainer.job.rollout_collector import RolloutCollector
from offing_trainer.loop import LoopContext, run_training_loop
from offing_trainer.loop_config import StartConfig, parse_loop_config
from tests.engine.engine_server import serving
from tests.model_provider import Completion, Received, Reply, WireServer
from tests.workers.conftest import Platform, StartWorker
from tests.workers.rollout_batches import Sql

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]

SUBJECTS = ("harbor", "lighthouse", "granary", "aqueduct", "foundry", "orchard", "quarry", "observatory")
DETAILS = ("Opening hours", "Building material", "First keeper", "Yearly repairs")

WITH_REJECTED = {"name": "policy-turns", "include_rejected": True}

SMALL: dict[str, Any] = {
    "name": "searcher",
    "start": {
        "tokenizer": "bytes",
        "demonstration_count": 16,
        "engine": "rules:random-words",
        "sft": {
            "max_steps": 4,
            "pipeline": {"selectors": []},
            "data": {"groups_per_step": 8, "data_passes": 2},
            "learner": {"learning_rate": 2e-3, "cpu_threads": 1},
        },
    },
    "collect": {
        "role": "planner",
        "prompt_format": "words",
        "engines": {"all": "extractive"},
        "dataset": "demo-train",
        "max_turns": 1,
        "group_size": 2,
        "max_tokens": 8,
        "scorers": {"citation_recall": 0.5, "citation_precision": 0.25, "supported_sentences": 0.25},
    },
    "train": {
        "algorithm": "flow-grpo",
        "max_steps": 2,
        "data": {"groups_per_step": 2, "min_informative_groups": 0},
        "pipeline": {"view": WITH_REJECTED, "regularizers": [{"name": "entropy", "coefficient": 0.01}]},
        "learner": {"learning_rate": 1e-4, "cpu_threads": 1},
    },
    "evaluate": {"dataset": "demo-heldout", "task_count": 8, "margin": 1.0, "not_worse": {"citation_precision": 1.0}},
}


def load_question_writer() -> ModuleType:
    spec = spec_from_file_location("write_document_questions", ROOT / "deploy/write_document_questions.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def write_documents(folder: Path) -> None:
    folder.mkdir()
    for number, subject in enumerate(SUBJECTS):
        sections = [
            f"## {detail}\n\nThe {detail.lower()} of the {subject} were written down in the year {1700 + number * 10} "
            f"by the council, and the {subject} has kept to them ever since that day.\n"
            for detail in DETAILS
        ]
        (folder / f"{subject}.md").write_text(f"# {subject}\n\n" + "\n".join(sections))


@pytest.fixture
async def datasets(platform: Platform, tmp_path: Path) -> None:
    """The questions about the documents, stored."""
    write_documents(tmp_path / "documents")
    load_question_writer().write_questions(tmp_path / "documents", tmp_path / "questions")
    async with DocumentReaderPool(1) as readers:
        for name in ("demo-train", "demo-heldout.jsonl"):
            dataset = open_dataset(tmp_path / "questions" / name)
            await store_dataset(platform.database, platform.tenant, dataset, readers=readers)


class Bench:
    """A loop's surroundings: its context, and the address of the engine."""

    def __init__(self, platform: Platform, folder: Path, engine_url: str) -> None:
        self.lines: list[str] = []
        self.folder, self.engine_url = folder, engine_url
        collector = RolloutCollector(
            platform.database, platform.notifier, open_registry(), ManagedEngine(EngineEndpoint(engine_url))
        )
        jobs = JobContext(platform.database, folder.parent, folder, open_trainer, collect_groups=collector.collect_step)

        async def run(job_id: UUID) -> TrainingJobRow:
            done = await run_one_job(jobs, job_id)
            assert done is not None
            return done

        self.context = LoopContext(platform.tenant, collector, run, folder, make_start, self.lines.append)


@pytest.fixture
async def bench(
    platform: Platform, start_worker: StartWorker, datasets: None, tmp_path: Path, judge: WireServer
) -> AsyncIterator[Bench]:
    folder = tmp_path / "policies"
    folder.mkdir()
    with serving({}, "--policy-dir", str(folder)) as engine:
        start_worker(OFFING_ENGINE_URL=engine.url)
        yield Bench(platform, folder, engine.url)


@pytest.fixture
async def judge() -> AsyncIterator[WireServer]:
    """A stand-in for a judge, which speaks a provider's wire and gives every answer the same score."""
    async with WireServer(give_half) as server:
        yield server


def give_half(_request: Received) -> Reply:
    return Completion('{"score": 0.5, "reason": "a stand-in says so"}')


def make_start(folder: Path, start: StartConfig, seed: int) -> None:
    from offing_engine.random_policy import create_random_policy

    create_random_policy(folder, None, size=start.model_size, seed=seed)


async def test_a_loop_over_documents_is_rewarded_by_evidence_and_shows_what_each_stage_costs(
    bench: Bench, sql: Sql
) -> None:
    result = await run_training_loop(bench.context, parse_loop_config(SMALL))
    assert [(one.mode, len(one.rewards)) for one in result.after] == [("sampled", 8), ("greedy", 8)]
    assert result.promoted == (not result.rejection_reason)
    trained = result.after[0].version.version
    state = sql("select state from app.policy_version where name = 'searcher' and version = %s", trained)
    assert state == [("active" if result.promoted else "candidate",)]
    assert [one.name for one in result.costs] == [
        "start", "evaluation of the start", "training", "evaluation of the result",
    ]  # fmt: skip
    assert [one.rollouts.rollouts for one in result.costs] == [16, 16, 8, 16]
    assert all(one.describe() in bench.lines for one in result.costs)
    scorers = sql("select distinct scorer from app.reward where target = 'run' order by 1")
    assert scorers == [("citation_precision",), ("citation_recall",), ("supported_sentences",)]
    about = sql(
        "select distinct split_part(t.name, '#', 1), t.dataset from app.task t "
        "join app.rollout_group g on g.task_id = t.id"
    )
    trained_on = {name for name, dataset in about if dataset == "demo-train"}
    assert trained_on.isdisjoint(name for name, dataset in about if dataset == "demo-heldout")
    metrics = sql("select metrics from app.evaluation_result")
    assert all({"citation_precision", "cost_usd", "seconds"} <= set(one) for (one,) in metrics)


async def test_a_loop_over_documents_is_rewarded_by_a_judge_within_its_budget(
    bench: Bench, sql: Sql, judge: WireServer
) -> None:
    engine = {"engine": "litellm", "model": "openai/judge", "api_base": judge.url}
    scorers = {"citation_recall": 0.5, "rubric_judge": {"weight": 0.5, "engine": engine, "rubric": "Is it useful?"}}
    collect = SMALL["collect"] | {"scorers": scorers, "judge_budget": {"max_calls": 5}}
    evaluate = SMALL["evaluate"] | {"scorers": {"citation_recall": 1, "citation_precision": 0}}
    tables = SMALL | {"collect": collect, "evaluate": evaluate}
    with pytest.raises(Conflict, match="judges have spent"):
        await run_training_loop(bench.context, parse_loop_config(tables))
    ((stopped, calls),) = sql("select stop_reason, judge_calls from app.rollout_batch where name like '%% step 2'")
    assert (stopped, calls) == ("judge_budget", 1)
    assert sql("select state, error like '%%judges have spent%%' from app.training_job where kind = 'loop'") == [
        ("failed", True)
    ]
    larger = collect | {"judge_budget": {"max_calls": 100}}
    result = await run_training_loop(bench.context, parse_loop_config(tables | {"collect": larger}))
    training_cost = next(one for one in result.costs if one.name == "training")
    assert training_cost.rollouts.judge_calls == 8
    assert "judges: 8 calls" in training_cost.describe()
    assert all("Is it useful?" in str(one.body) for one in judge.requests)
