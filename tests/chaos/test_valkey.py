"""Valkey is killed and comes back empty, or is emptied, in the middle of runs. Hints are lost; nothing else is."""

import signal
import time

import pytest

from tests.chaos import checker
from tests.chaos.private_stack import PrivateStack
from tests.chaos.trial import Client, Kind, Moment, expect

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]

UndisturbedRows = dict[Kind, checker.Rows]


async def test_valkey_killed_and_empty(
    stack: PrivateStack, client: Client, plain: UndisturbedRows, moment: Moment
) -> None:
    stack.lone_worker()
    trial = await client.trial(moment, "steady", "varying", "agentflow")
    trial.until_first_made(moment.dice.randint(3, 45), plain)
    trial.strike()
    stack.kill_server("valkey", signal.SIGKILL)
    late = await client.submit("steady", trial.next_seed())
    stack.restart("valkey")
    trial.until_ended()
    expect(trial, plain, fence={1})
    stack.until("a run whose hint was lost to end", lambda: stack.ended(late.run), 20)


async def test_valkey_flushed(stack: PrivateStack, client: Client, plain: UndisturbedRows, moment: Moment) -> None:
    stack.lone_worker()
    trial = await client.trial(moment, "steady", "varying", "agentflow")
    trial.until_first_made(moment.dice.randint(3, 45), plain)
    trial.strike()
    stack.flush()
    trial.until_ended()
    expect(trial, plain, fence={1})


async def test_valkey_hangs(stack: PrivateStack, client: Client, plain: UndisturbedRows, rare_moment: Moment) -> None:
    stack.lone_worker()
    trial = await client.trial(rare_moment, "steady", "varying", "agentflow")
    trial.until_first_made(rare_moment.dice.randint(3, 45), plain)
    trial.strike()
    stack.pause_server("valkey")
    time.sleep(2)  # noqa: ASYNC251
    stack.resume_server("valkey")
    trial.until_ended()
    expect(trial, plain, fence={1})
