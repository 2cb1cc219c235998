"""A version whose files were damaged after it was registered: it is never used, and the active version stays active."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from offing.core.errors import Conflict, InvalidInput
from offing.services import policies, promotion, training_jobs
from offing.services.graphs import open_registry
from offing.services.promotion import EvaluationSetup
from offing.storage.migrate import LOCAL_TENANT
from offing_engine.scheduler import EngineScheduler, SchedulerLimits
from tests.trainer.jobs import TABLES, Bench
from tests.workers.rollout_batches import RecordingNotifier

CANDIDATE = "trained@1"

FROZEN = EvaluationSetup("held-out", [], "agentflow", "planner")


def flipped(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)


def cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def other_words(file: Path) -> None:
    file.write_text(file.read_text().replace("w7", "v7"))


DAMAGES: list[tuple[str, Callable[[Path], None]]] = [
    ("model.safetensors", flipped),
    ("model.safetensors", cut_short),
    ("model.safetensors", Path.unlink),
    ("config.json", Path.unlink),
    ("tokenizer.json", other_words),
    ("chat_template.jinja", flipped),
]


async def trained(bench: Bench) -> Path:
    """Folder of a candidate that a job made of the active version."""
    await bench.policy()
    await promotion.promote(bench.database, LOCAL_TENANT, "planner@1")
    await bench.groups(2)
    job = await bench.job(name="trained")
    assert (await bench.run(job.id)).state == "done"
    return Path((await policies.get_version_by_name(bench.database, LOCAL_TENANT, CANDIDATE)).uri)


@pytest.mark.slow
async def test_a_damaged_candidate_is_rejected_wherever_it_is_named_and_the_active_version_stays(bench: Bench) -> None:
    folder = await trained(bench)
    stored, database = bench.home / "kept", bench.database
    shutil.copytree(folder, stored)
    version = await policies.get_version_by_name(database, LOCAL_TENANT, CANDIDATE)
    for name, harm in DAMAGES:
        waiting = await bench.job(policy=CANDIDATE, name="later")
        harm(folder / name)
        damage = f"{name} is missing or differs from the registered file"
        message = rf"trained@1 is damaged: {damage}, in .*trained@1\. Restore the files"
        for rejected in (
            promotion.promote(database, LOCAL_TENANT, CANDIDATE),
            promotion.start_canary(database, LOCAL_TENANT, CANDIDATE, 0.5),
            policies.set_version_state(database, LOCAL_TENANT, version.id, "active"),
            promotion.start_evaluation(
                database, RecordingNotifier(), LOCAL_TENANT, CANDIDATE, FROZEN, graphs=open_registry()
            ),
            training_jobs.create_job(database, LOCAL_TENANT, {**TABLES, "policy": CANDIDATE}),
        ):
            with pytest.raises(Conflict, match=message):
                await rejected
        failed = await bench.run(waiting.id)
        assert (failed.state, failed.step, failed.error[:20]) == ("failed", 0, "trained@1 is damaged"), name
        assert name in failed.error
        shutil.rmtree(folder)
        shutil.copytree(stored, folder)
    assert (await policies.get_version_by_name(database, LOCAL_TENANT, CANDIDATE)).state == "candidate"
    assert (await policies.get_version_by_name(database, LOCAL_TENANT, "planner@1")).state == "active"
    await promotion.promote(database, LOCAL_TENANT, CANDIDATE)


@pytest.mark.slow
async def test_the_engine_rejects_damaged_files_by_name_and_serves_them_when_they_are_back(bench: Bench) -> None:
    folder = await trained(bench)
    stored = bench.home / "kept"
    shutil.copytree(folder, stored)
    engine = EngineScheduler(torch.device("cpu"), SchedulerLimits(max_rows=4))
    try:
        for name, harm in DAMAGES:
            harm(folder / name)
            with pytest.raises(InvalidInput, match=f"trained@1 is damaged: {name} is missing"):
                engine.load(CANDIDATE, folder)
            shutil.rmtree(folder)
            shutil.copytree(stored, folder)
        engine.load(CANDIDATE, folder)
        assert list(engine.policies) == [CANDIDATE]
    finally:
        engine.stop()


async def test_what_a_job_depends_on_is_checked_too(bench: Bench) -> None:
    await bench.policy()
    await bench.policy("other", seed=1)
    await bench.groups(2)
    job = await bench.job(reference_policy="other@1")
    flipped(bench.home / "other-1" / "tokenizer.json")
    failed = await bench.run(job.id)
    assert (failed.state, failed.step) == ("failed", 0)
    assert "other@1 is damaged: tokenizer.json" in failed.error
