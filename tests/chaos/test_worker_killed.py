"""A worker is killed with -9 in the middle of its runs; another goes on with them."""

import pytest

from tests.chaos import checker
from tests.chaos.flows import FLOWS
from tests.chaos.stage import Stage
from tests.chaos.trial import Client, Kind, Moment, expect, expect_repeated

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]

Plain = dict[Kind, checker.Rows]


async def test_worker_killed(stage: Stage, client: Client, plain: Plain, moment: Moment) -> None:
    dice, worker = moment.dice, stage.lone_worker()
    trial = await client.trial(moment, "steady", "varying", "agentflow")
    spare = stage.spawn_worker()
    trial.until_first_made(dice.randint(3, 45), plain)
    assert len(trial.owned_by(worker.pid)) == 3, moment
    trial.strike()
    worker.kill()
    spare.await_ready()
    trial.until_ended()
    expect(trial, plain, fence={2})


async def test_worker_killed_under_every_flow(stage: Stage, client: Client, plain: Plain, rare_moment: Moment) -> None:
    """What each flow did, kept, edited and summed up, and its report, are those of an undisturbed run."""
    worker = stage.lone_worker()
    trial = await client.trial(rare_moment, *FLOWS)
    spare = stage.spawn_worker()
    trial.until_in_the_middle(plain)
    assert len(trial.owned_by(worker.pid)) == len(FLOWS), rare_moment
    trial.strike()
    worker.kill()
    spare.await_ready()
    trial.until_ended()
    expect(trial, plain, fence={2})


async def test_worker_killed_before_it_has_written_anything(
    stage: Stage, client: Client, plain: Plain, rare_moment: Moment
) -> None:
    """With durability exit: nothing of the lost slice is there, and it is done again whole."""
    worker = stage.lone_worker()
    trial = await client.trial(rare_moment, *FLOWS, durability="exit")
    spare = stage.spawn_worker()
    trial.until_in_the_middle(plain)
    assert len(trial.owned_by(worker.pid)) == len(FLOWS), rare_moment
    worker.kill()
    runs = [s.run for s in trial.subjects]
    assert stage.written(runs, fence=1) == {"step": 0, "checkpoint": 0, "intent": 0}, rare_moment
    spare.await_ready()
    trial.until_ended()
    expect_repeated(trial, plain)
