"""A worker is killed with -9 in the middle of its runs; another goes on with them."""

import pytest

from tests.chaos import checker
from tests.chaos.stage import Stage
from tests.chaos.trial import Client, Kind, Moment, expect

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(120)]


async def test_worker_killed(stage: Stage, client: Client, plain: dict[Kind, checker.Rows], moment: Moment) -> None:
    dice, worker = moment.dice, stage.lone_worker()
    trial = await client.trial(moment, "steady", "varying", "agentflow")
    spare = stage.spawn_worker()
    trial.until_calls(trial.subjects[0], dice.randint(3, 45))
    assert len(trial.owned_by(worker.pid)) == 3, moment
    trial.strike()
    worker.kill()
    spare.await_ready()
    trial.until_ended()
    expect(trial, plain, fence={2})
