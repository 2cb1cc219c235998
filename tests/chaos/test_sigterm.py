"""A worker is asked to end while it is busy: it releases every run at a boundary and leaves with 0; nothing that it
did is done again."""

import signal

import pytest

from tests.chaos import checker
from tests.chaos.private_stack import PrivateStack
from tests.chaos.trial import Client, Kind, Moment, expect

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]


async def test_sigterm_under_load(
    stack: PrivateStack, client: Client, plain: dict[Kind, checker.Rows], moment: Moment
) -> None:
    dice, worker = moment.dice, stack.lone_worker()
    kinds: list[Kind] = ["steady", "agentflow", *dice.choices(("steady", "varying"), k=dice.randint(6, 10))]
    trial = await client.trial(moment, *kinds)
    spare = stack.spawn_worker()
    trial.until_first_made(dice.randint(3, 30), plain)
    trial.strike()
    worker.signal(signal.SIGTERM)
    assert worker.child.wait(20) == 0, moment
    assert [stack.owner(s.run) for s in trial.subjects if stack.owner(s.run) == worker.pid] == [], moment
    spare.await_ready()
    trial.until_ended()
    expect(trial, plain, losses=0, fence={2})
    assert [s for s in trial.subjects if stack.facts(s.run).of_kind("resumed")] == [], moment
