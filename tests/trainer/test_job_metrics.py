"""What a job says of its own time, and what it does not do twice."""

from collections import defaultdict
from typing import Any

import pytest

from offing.services import training_jobs
from offing.storage.migrate import LOCAL_TENANT
from offing_trainer.job import text_loader
from tests.storage.rollouts import A
from tests.trainer.jobs import NO_GUARDS, TABLES, Bench


async def test_the_seconds_of_a_steps_parts_add_up_to_the_step(bench: Bench) -> None:
    await bench.policy()
    await bench.groups(4)
    done = await bench.run((await bench.job()).id)
    steps: dict[int, dict[str, float]] = defaultdict(dict)
    for one in await training_jobs.list_metrics(bench.database, LOCAL_TENANT, done.id, 0, None, 1000):
        if one.name.startswith("seconds_"):
            steps[one.step][one.name.removeprefix("seconds_")] = one.value
    assert sorted(steps) == [1, 2]
    for parts in steps.values():
        assert {"read", "forward", "update", "save"} <= parts.keys()
        assert sum(parts.values()) == pytest.approx(2 * parts["step"])


async def test_text_is_made_rows_once_for_all_passes(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await bench.policy()
    await bench.groups(2, role_calls=lambda nth, member: [A("w1 w2 w3", ids=False)])
    count = 0

    def counted(*inputs: Any) -> Any:
        nonlocal count
        count += 1
        return rows_of(*inputs)

    rows_of = text_loader.build_text_rows
    monkeypatch.setattr(text_loader, "build_text_rows", counted)
    sft = {"algorithm": "sft", "policy": "planner@1", "guards": NO_GUARDS, "learner": TABLES["learner"],
           "data": {"groups_per_step": 2, "min_informative_groups": 0, "data_passes": 3}}  # fmt: skip
    done = await bench.run((await training_jobs.create_job(bench.database, LOCAL_TENANT, sft)).id)
    assert (done.state, done.error, done.step) == ("done", "", 3)
    metrics = await training_jobs.list_metrics(bench.database, LOCAL_TENANT, done.id, 0, ["rows"], 100)
    assert [one.value for one in metrics] == [2, 2, 2]
    assert count == 4
