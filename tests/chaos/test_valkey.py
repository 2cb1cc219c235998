"""Valkey is killed and comes back empty, or is emptied, in the middle of runs. Hints are lost; nothing else is."""

import signal
import time

import pytest

from tests.chaos import checker
from tests.chaos.stage import Stage
from tests.chaos.trial import Client, Kind, Moment, expect

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]

Plain = dict[Kind, checker.Rows]


async def test_valkey_killed_and_empty(stage: Stage, client: Client, plain: Plain, moment: Moment) -> None:
    stage.lone_worker()
    trial = await client.trial(moment, "steady", "varying", "agentflow")
    trial.until_first_made(moment.dice.randint(3, 45), plain)
    trial.strike()
    stage.kill_server("valkey", signal.SIGKILL)
    late = await client.submit("steady", trial.next_seed())
    stage.restart("valkey")
    trial.until_ended()
    expect(trial, plain, fence={1})
    stage.until("a run whose hint was lost to end", lambda: stage.ended(late.run), 20)


async def test_valkey_flushed(stage: Stage, client: Client, plain: Plain, moment: Moment) -> None:
    stage.lone_worker()
    trial = await client.trial(moment, "steady", "varying", "agentflow")
    trial.until_first_made(moment.dice.randint(3, 45), plain)
    trial.strike()
    stage.flush()
    trial.until_ended()
    expect(trial, plain, fence={1})


async def test_valkey_hangs(stage: Stage, client: Client, plain: Plain, rare_moment: Moment) -> None:
    stage.lone_worker()
    trial = await client.trial(rare_moment, "steady", "varying", "agentflow")
    trial.until_first_made(rare_moment.dice.randint(3, 45), plain)
    trial.strike()
    stage.pause_server("valkey")
    time.sleep(2)  # noqa: ASYNC251
    stage.resume_server("valkey")
    trial.until_ended()
    expect(trial, plain, fence={1})
