"""A worker is killed with -9 in the middle of its runs; another continues with them."""

import pytest

from tests.chaos import checker
from tests.chaos.graphs import GRAPH_NAMES
from tests.chaos.private_stack import PrivateStack
from tests.chaos.trial import Client, Kind, Moment, expect, expect_repeated

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]

UndisturbedRows = dict[Kind, checker.Rows]


async def test_worker_killed(stack: PrivateStack, client: Client, plain: UndisturbedRows, moment: Moment) -> None:
    dice, worker = moment.dice, stack.lone_worker()
    trial = await client.trial(moment, "steady", "varying", "agentflow")
    spare = stack.spawn_worker()
    trial.until_first_made(dice.randint(3, 45), plain)
    assert len(trial.owned_by(worker.pid)) == 3, moment
    trial.strike()
    worker.kill()
    spare.await_ready()
    trial.until_ended()
    expect(trial, plain, fence={2})


async def test_worker_killed_under_every_graph(
    stack: PrivateStack, client: Client, plain: UndisturbedRows, rare_moment: Moment
) -> None:
    """What each graph did, kept, edited and summed up, and its report, are those of an undisturbed run."""
    worker = stack.lone_worker()
    trial = await client.trial(rare_moment, *GRAPH_NAMES)
    spare = stack.spawn_worker()
    trial.until_in_the_middle(plain)
    assert len(trial.owned_by(worker.pid)) == len(GRAPH_NAMES), rare_moment
    trial.strike()
    worker.kill()
    spare.await_ready()
    trial.until_ended()
    expect(trial, plain, fence={2})


async def test_worker_killed_before_it_has_written_anything(
    stack: PrivateStack, client: Client, plain: UndisturbedRows, rare_moment: Moment
) -> None:
    """With durability exit: nothing of the lost slice is there, and it is done again whole."""
    worker = stack.lone_worker()
    trial = await client.trial(rare_moment, *GRAPH_NAMES, durability="exit")
    spare = stack.spawn_worker()
    trial.until_in_the_middle(plain)
    assert len(trial.owned_by(worker.pid)) == len(GRAPH_NAMES), rare_moment
    worker.kill()
    runs = [s.run for s in trial.subjects]
    assert stack.written(runs, fence=1) == {"step": 0, "checkpoint": 0, "intent": 0}, rare_moment
    spare.await_ready()
    trial.until_ended()
    expect_repeated(trial, plain)
