"""What people see of a job on its way: the names that a terminal and the page show are those that a job measures."""

import re
from decimal import Decimal
from pathlib import Path
from statistics import fmean

import psycopg
import pytest

from offing.cli.job_progress import SHOWN_METRICS, VALUE_HEADS
from offing.cli.job_record import describe_judges, print_job_record, read_job_record
from offing.services import training_jobs
from offing.storage.migrate import LOCAL_TENANT
from tests.trainer.jobs import Bench

PAGE = Path(__file__).parents[2] / "frontend" / "src" / "shared" / "api" / "training.ts"


async def test_a_job_knows_how_many_steps_it_will_have(bench: Bench) -> None:
    await bench.policy()
    await bench.groups(5)
    assert (await bench.job()).planned_steps is None
    done = await bench.run((await bench.job(max_steps=2)).id)
    assert (done.step, done.planned_steps) == (2, 2)
    every = await bench.run((await bench.job()).id)
    assert (every.step, every.planned_steps) == (3, 3), "five groups, two per step"


async def test_a_terminal_shows_metrics_that_a_job_measures(bench: Bench) -> None:
    await bench.policy()
    await bench.groups(3)
    job = await bench.run((await bench.job()).id)
    metrics = await training_jobs.list_metrics(bench.database, LOCAL_TENANT, job.id, 0, None, 1000)
    of_critics = {name for name in SHOWN_METRICS if name.partition("/")[0] in VALUE_HEADS}
    assert set(SHOWN_METRICS) - of_critics <= {metric.name for metric in metrics}


def test_the_page_knows_the_same_critics() -> None:
    heads = re.search(r"CRITIC_HEADS = \[(.*?)\]", PAGE.read_text("utf-8"))
    assert heads is not None
    assert tuple(re.findall(r'"(\w+)"', heads[1])) == VALUE_HEADS


async def test_the_record_of_a_job_is_printed_with_its_ledger_metrics_and_events(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    await bench.policy()
    await bench.groups(3)
    job = await bench.run((await bench.job()).id)
    print_job_record(await read_job_record(bench.database, LOCAL_TENANT, str(job.id)[-8:]))
    printed = capsys.readouterr().out
    assert f"job {job.id}  planner\ndone, step 2 of 2\nno groups are left\n" in printed
    assert "3 groups considered, 6 rollouts trained on" in printed
    assert re.search(r"^ +used +6$", printed, re.M)
    assert re.search(r"^ +success_rate +0\.5$", printed, re.M)


def test_the_judges_of_a_job_are_described_with_their_budget() -> None:
    budget = {"max_calls": 5000, "max_cost_usd": Decimal(10)}
    used = {"calls": 1200, "cost_usd": Decimal("0.42"), "budget": budget}
    assert describe_judges(used) == "judges: 1,200 of 5,000 calls, 0.42 of 10.00 USD"
    no_limit = {"max_calls": None, "max_cost_usd": None}
    assert describe_judges({**used, "budget": no_limit}) == "judges: 1,200 calls, 0.42 USD"
    assert describe_judges({"calls": 0, "cost_usd": Decimal(), "budget": no_limit}) == ""


async def test_a_running_job_has_the_time_that_its_last_steps_took(bench: Bench) -> None:
    await bench.policy()
    await bench.groups(6)
    job = await bench.job()
    await bench.run(job.id)
    assert (await training_jobs.get_job(bench.database, LOCAL_TENANT, job.id)).seconds_left is None, "it has ended"
    metrics = await training_jobs.list_metrics(bench.database, LOCAL_TENANT, job.id, 0, ["seconds_step"], 100)
    with psycopg.connect(bench.owner_url, autocommit=True) as owner:
        owner.execute(
            "update app.training_job set state = 'running', planned_steps = step + 4 where id = %s", (job.id,)
        )
    left = (await training_jobs.get_job(bench.database, LOCAL_TENANT, job.id)).seconds_left
    assert left == pytest.approx(4 * fmean(metric.value for metric in metrics))
