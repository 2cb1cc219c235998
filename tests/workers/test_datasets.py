"""An imported dataset is ingested, its tasks are run on a worker without a model, and every metric has a value."""

import json
from pathlib import Path

import pytest

from offing.core.errors import InvalidInput
from offing.core.model import EngineConfig
from offing.core.run import Budget
from offing.datasets.dataset import open_dataset
from offing.datasets.dataset_format import DATASET_FORMATS
from offing.datasets.task import TaskSpec
from offing.datasets.writer import import_dataset
from offing.library.readers import DocumentReaderPool
from offing.services import ingestion, rollouts
from offing.services.datasets import store_dataset
from offing.services.graphs import open_registry
from offing.services.ingestion import Upload
from offing.services.rollouts import BatchRequest, ScorerSpec
from offing.storage.rewards import ScoreRow
from tests.workers.conftest import Platform, StartWorker
from tests.workers.processes import ALL_GRAPHS
from tests.workers.rollout_batches import Collector, wait_until_finalized
from tests.workers.test_rollout_workers import wait_until_all_finalized

FIRE = "The Rudyerd tower burned down on 2 December 1755 after 47 years of service."
WRECK = "The brig Anna sank near the Rudyerd tower in 1741."

METRICS = (
    *("retrieval_recall", "retrieval_ndcg", "citation_recall", "citation_precision"),
    *("supported_sentences", "number_agreement", "token_f1"),
)

VERDICT = {"extracted_answer": "2 December 1755", "reason": "It is the date.", "verdict": "correct"}


def import_towers(folder: Path) -> Path:
    paragraphs = [
        {"title": "Rudyerd tower", "paragraph_text": FIRE, "is_supporting": True},
        {"title": "Bell Rock", "paragraph_text": "Bell Rock has a lamp from 1811.", "is_supporting": False},
        {"title": "Fresnel lens", "paragraph_text": "Fresnel showed his lens in 1822.", "is_supporting": False},
    ]
    record = {"id": "2hop__1", "question": "When did the Rudyerd tower burn down?", "answer": "2 December 1755",
              "answer_aliases": [], "answerable": True, "paragraphs": paragraphs}  # fmt: skip
    (folder / "musique.jsonl").write_text(json.dumps(record))
    import_dataset(DATASET_FORMATS["musique"], folder / "musique.jsonl", folder / "towers")
    return folder / "towers"


async def test_an_imported_dataset_is_run_and_scored(
    collector: Collector, platform: Platform, start_worker: StartWorker, tmp_path: Path
) -> None:
    database, tenant = collector.database, collector.tenant
    async with DocumentReaderPool(1) as readers:
        other = Upload("wreck.md", f"# The wreck\n\n{WRECK}\n".encode())
        await ingestion.ingest_uploads(database, tenant, [other], readers=readers)
        stored = await store_dataset(database, tenant, open_dataset(import_towers(tmp_path)), readers=readers)
    judge = {"engine": {"engine": "scripted", "options": {"answers": [VERDICT]}}}
    scorers = [*(ScorerSpec(name, 0) for name in METRICS), ScorerSpec("answer_judge", 1, judge)]
    request = BatchRequest("agentflow", stored.tasks.task_ids, 1, scorers=scorers, budget=Budget(4))
    created = await rollouts.create_batch(
        database, platform.notifier, tenant, request,
        graphs=open_registry(ALL_GRAPHS), default_engine=EngineConfig(engine="extractive"),
    )  # fmt: skip
    start_worker(OFFING_SWEEP_INTERVAL_SECONDS="0.3")
    progress = await wait_until_all_finalized(collector, created.batch.id, 90)
    assert (progress.complete, progress.mean_reward) == (1, 1.0)
    scores: dict[str, ScoreRow] = {score.scorer: score for score in (await collector.group()).scores}
    assert {name: score.failure for name, score in scores.items() if score.failure} == {}
    values = {name: score.value for name, score in scores.items()}
    assert values.keys() == {*METRICS, "answer_judge"}
    assert [values[name] for name in METRICS[:4]] == [1.0, 1.0, 1.0, 1.0]
    assert values["number_agreement"] == 1.0
    assert values["supported_sentences"] is not None
    assert 0 < values["supported_sentences"] <= 1
    assert values["token_f1"] is not None
    assert values["token_f1"] > 0
    assert scores["retrieval_recall"].detail["retrieved"] <= 3, "only documents of the dataset are in the scope"
    assert scores["number_agreement"].detail["numbers"] > 0
    assert scores["answer_judge"].detail["verdict"] == "correct"


async def test_a_rubric_is_judged_and_a_task_without_answers_is_not_scored_by_them(collector: Collector) -> None:
    criteria = [{"text": "Names the year.", "weight": 3}, {"text": "Names the builder."}]
    spec = TaskSpec.model_validate({"question": "Describe the fire.", "rubric": criteria})
    with pytest.raises(InvalidInput, match="exact_match cannot score task"):
        await collector.collect(spec, scorers=[ScorerSpec("exact_match")])
    verdicts = [{"number": n, "reason": "So it is.", "verdict": v} for n, v in ((1, "yes"), (2, "no"))]
    judge = {"engine": {"engine": "scripted", "options": {"answers": [{"verdicts": verdicts}]}}}
    await collector.collect(spec, size=1, scorers=[ScorerSpec("report_rubric", 1, judge)])
    (rollout,) = await collector.members()
    await collector.end(rollout.run_id, "It burned in 1755.")
    await wait_until_finalized(collector, rollout.run_id)
    seen = await collector.group()
    assert seen.rollouts[0].reward == 0.75
    assert [one["met"] for one in seen.scores[0].detail["criteria"]] == ["yes", "no"]


async def test_a_task_with_only_a_rubric_has_no_scorer_unless_one_is_named(collector: Collector) -> None:
    await collector.collect(TaskSpec.model_validate({"question": "Describe it.", "rubric": "Is short."}), size=1)
    assert (await collector.group()).group.scorers == []
