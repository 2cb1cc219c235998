"""Postgres goes away at once in the middle of runs and comes back. What it had acknowledged is there, and the runs go
on: in the same hands where it was back within a lease, else after another claim."""

import signal
import time

import pytest

from tests.chaos import checker
from tests.chaos.private_stack import PrivateStack
from tests.chaos.trial import Client, Kind, Moment, expect
from tests.workers.processes import LEASE

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]


async def test_postgres_restarted_at_once(
    stack: PrivateStack, client: Client, plain: dict[Kind, checker.Rows], moment: Moment
) -> None:
    """By kill -9 and by an immediate shutdown in turn."""
    how = signal.SIGKILL if moment.number % 2 else signal.SIGQUIT
    stack.lone_worker()
    trial = await client.trial(moment, "steady", "varying", "agentflow")
    trial.until_first_made(moment.dice.randint(3, 45), plain)
    trial.strike()
    stack.kill_server("postgres", how)
    stack.restart("postgres")
    trial.until_ended()
    expect(trial, plain, fence={1, 2})


async def test_postgres_away_past_the_lease(
    stack: PrivateStack, client: Client, plain: dict[Kind, checker.Rows], rare_moment: Moment
) -> None:
    """An outage takes no run from its worker: leases live for one more term after Postgres came up."""
    stack.lone_worker()
    trial = await client.trial(rare_moment, "steady", "varying", "agentflow")
    trial.until_first_made(rare_moment.dice.randint(3, 45), plain)
    trial.strike()
    stack.kill_server("postgres", signal.SIGKILL)
    time.sleep(LEASE + 0.5)  # noqa: ASYNC251
    stack.restart("postgres")
    trial.until_ended()
    expect(trial, plain, fence={1, 2})
