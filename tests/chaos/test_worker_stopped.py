"""A worker is stopped for longer than its lease and then continued. Others have its runs by then, and it writes nothing
any more."""

import signal

import pytest

from tests.chaos import checker
from tests.chaos.private_stack import PrivateStack
from tests.chaos.trial import Client, Kind, Moment, expect

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]


async def test_worker_stopped_past_its_lease(
    stack: PrivateStack, client: Client, plain: dict[Kind, checker.Rows], moment: Moment
) -> None:
    """In turn with one that learns of its loss by its heartbeat, and one that does not hear it."""
    worker = stack.lone_worker(**({} if moment.number % 2 else {"CHAOS_DEAF": "1"}))
    trial = await client.trial(moment, "steady", "varying", "agentflow")
    spare = stack.spawn_worker()
    trial.until_first_made(moment.dice.randint(3, 45), plain)
    trial.strike()
    worker.signal(signal.SIGSTOP)
    spare.await_ready()
    runs = [s.run for s in trial.subjects]
    taken = "select count(*) from app.run where id = any(%s) and fence > 1"
    stack.until("the other worker to take the runs", lambda: stack.rows(taken, runs) == [(len(runs),)], 45)
    left = stack.written(runs, fence=1)
    worker.signal(signal.SIGCONT)
    trial.until_ended()
    assert worker.alive(), moment
    assert stack.written(runs, fence=1) == left, f"{moment}: the stopped worker wrote"
    expect(trial, plain, fence={2})
    stack.dismiss(worker)
