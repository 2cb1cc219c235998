"""The API is killed with -9 while it tells of runs and takes one in. Who comes back misses and repeats nothing."""

import asyncio
import signal

import pytest

from tests.chaos import checker
from tests.chaos.api_client import Watcher, start_api, submit, visiting
from tests.chaos.private_stack import PrivateStack
from tests.chaos.trial import Client, Kind, Moment, Trial, expect

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def base(stack: PrivateStack) -> str:
    return start_api(stack)


async def test_api_killed(
    stack: PrivateStack, base: str, client: Client, plain: dict[Kind, checker.Rows], moment: Moment
) -> None:
    stack.lone_worker()
    dice, trial = moment.dice, Trial(stack, moment)
    async with visiting(base, client) as http:
        kinds: list[Kind] = ["steady", "varying", "agentflow"]
        trial.subjects = [await submit(http, kind, trial.next_seed()) for kind in kinds]
        watchers = [Watcher(http, s.run) for s in trial.subjects]
        watching = [asyncio.create_task(w.watch()) for w in watchers]
        await asyncio.to_thread(trial.until_at_work)
        await asyncio.to_thread(trial.until_first_made, dice.randint(3, 45), plain)

        late = trial.next_seed()
        submitting = asyncio.create_task(submit(http, "steady", late))
        await asyncio.sleep(dice.uniform(0, 0.03))  # the kill falls before, in or after the transaction
        trial.strike()
        await asyncio.to_thread(stack.kill_server, "api", signal.SIGKILL)
        await asyncio.to_thread(stack.restart, "api")

        trial.subjects.append(await submitting)
        await asyncio.gather(*watching)
        await asyncio.to_thread(trial.until_ended)
        again = [await submit(http, s.kind, s.seed) for s in trial.subjects]
    assert again == trial.subjects, f"{moment}: a repeated key made another run"
    created = stack.rows("select count(*) from app.run where seed = any(%s)", [s.seed for s in trial.subjects])
    assert created == [(4,)], f"{moment}: {created} runs of 4 keys"
    for watcher in watchers:
        steps = len(stack.facts(watcher.run).steps)
        assert watcher.seqs == list(range(1, steps + 1)), f"{moment}: {watcher.seqs}"
        assert watcher.connections > 1, moment
    trial.subjects.pop()  # it was not struck, and ends like any other
    expect(trial, plain, fence={1})
