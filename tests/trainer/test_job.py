"""A job from its configuration to a registered version, on a real store with tiny weights."""

from pathlib import Path

import orjson

from offing.services import policies, training
from offing.storage.migrate import LOCAL_TENANT
from offing_engine.folder import weights_sha256
from tests.trainer.jobs import Bench


async def test_a_job_trains_on_stored_groups_and_registers_a_candidate_with_its_lineage(bench: Bench) -> None:
    await bench.policy()
    await bench.groups(5)
    job = await bench.job()
    done = await bench.run(job.id)
    assert (done.state, done.stop_reason, done.error) == ("done", "no group is left", "")
    assert (done.step, done.groups, done.rollouts) == (3, 5, 10)
    assert await bench.ledger(job.id) == {"kept": 10}
    made = await policies.named(bench.database, LOCAL_TENANT, "planner@2")
    assert (made.state, made.id, made.lineage["parent"]) == ("candidate", done.produced, "planner@1")
    assert (made.lineage["job"], made.lineage["rollouts"], made.lineage["steps"]) == (str(job.id), 10, 3)
    assert weights_sha256(Path(made.uri)) == made.sha256
    assert made.sha256 != (await policies.named(bench.database, LOCAL_TENANT, "planner@1")).sha256
    figures = await training.metrics(bench.database, LOCAL_TENANT, job.id, 0, ["reward", "grad_norm", "groups"], 100)
    assert [m.value for m in figures if m.name == "groups"] == [2, 2, 1]
    assert all(m.value > 0 for m in figures)
    lines = (bench.home / "training" / str(job.id) / "metrics.jsonl").read_bytes().splitlines()
    assert [orjson.loads(line)["step"] for line in lines] == [1, 2, 3]
