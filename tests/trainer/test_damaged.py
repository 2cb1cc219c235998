"""A version whose files were damaged after it was registered: nobody relies on it, and whoever is active stays so."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from offing.core.errors import Conflict, InvalidInput
from offing.services import policies, promotion, training
from offing.services.graphs import installed
from offing.services.promotion import Frozen
from offing.storage.migrate import LOCAL_TENANT
from offing_engine.scheduler import Engine, Limits
from tests.trainer.jobs import TABLES, Bench
from tests.workers.collecting import Heard

CANDIDATE = "trained@1"

FROZEN = Frozen("held-out", [], "agentflow", "planner")


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
    return Path((await policies.named(bench.database, LOCAL_TENANT, CANDIDATE)).uri)


@pytest.mark.slow
async def test_a_damaged_candidate_is_refused_wherever_it_is_named_and_the_champion_stays(bench: Bench) -> None:
    folder = await trained(bench)
    kept, database = bench.home / "kept", bench.database
    shutil.copytree(folder, kept)
    version = await policies.named(database, LOCAL_TENANT, CANDIDATE)
    for name, harm in DAMAGES:
        waiting = await bench.job(policy=CANDIDATE, name="later")
        harm(folder / name)
        told = rf"trained@1 is damaged: {name} is missing, or is not what was registered, in .*trained@1\. Put it back"
        for refused in (
            promotion.promote(database, LOCAL_TENANT, CANDIDATE),
            promotion.try_canary(database, LOCAL_TENANT, CANDIDATE, 0.5),
            policies.change_state(database, LOCAL_TENANT, version.id, "active"),
            promotion.evaluate(database, Heard(), LOCAL_TENANT, CANDIDATE, FROZEN, graphs=installed()),
            training.create(database, LOCAL_TENANT, {**TABLES, "policy": CANDIDATE}),
        ):
            with pytest.raises(Conflict, match=told):
                await refused
        failed = await bench.run(waiting.id)
        assert (failed.state, failed.step, failed.error[:20]) == ("failed", 0, "trained@1 is damaged"), name
        assert name in failed.error
        shutil.rmtree(folder)
        shutil.copytree(kept, folder)
    assert (await policies.named(database, LOCAL_TENANT, CANDIDATE)).state == "candidate"
    assert (await policies.named(database, LOCAL_TENANT, "planner@1")).state == "active"
    await promotion.promote(database, LOCAL_TENANT, CANDIDATE)


@pytest.mark.slow
async def test_the_engine_refuses_damaged_files_by_name_and_serves_them_when_they_are_back(bench: Bench) -> None:
    folder = await trained(bench)
    kept = bench.home / "kept"
    shutil.copytree(folder, kept)
    engine = Engine(torch.device("cpu"), Limits(rows=4))
    try:
        for name, harm in DAMAGES:
            harm(folder / name)
            with pytest.raises(InvalidInput, match=f"trained@1 is damaged: {name} is missing"):
                engine.load(CANDIDATE, folder)
            shutil.rmtree(folder)
            shutil.copytree(kept, folder)
        engine.load(CANDIDATE, folder)
        assert list(engine.policies) == [CANDIDATE]
    finally:
        engine.stop()


async def test_what_a_job_stands_on_is_looked_at_too(bench: Bench) -> None:
    await bench.policy()
    await bench.policy("other", seed=1)
    await bench.groups(2)
    job = await bench.job(reference="other@1")
    flipped(bench.home / "other-1" / "tokenizer.json")
    failed = await bench.run(job.id)
    assert (failed.state, failed.step) == ("failed", 0)
    assert "other@1 is damaged: tokenizer.json" in failed.error
