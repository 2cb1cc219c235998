"""The API is killed with -9 while it tells of runs and takes one in. Who comes back misses and repeats nothing."""

import asyncio
import signal

import pytest

from tests.chaos import checker
from tests.chaos.page import Watcher, start_api, submit, visiting
from tests.chaos.stage import Stage
from tests.chaos.trial import Client, Kind, Moment, Trial, expect

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def base(stage: Stage) -> str:
    return start_api(stage)


async def test_api_killed(
    stage: Stage, base: str, client: Client, plain: dict[Kind, checker.Rows], moment: Moment
) -> None:
    stage.lone_worker()
    dice, trial = moment.dice, Trial(stage, moment)
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
        await asyncio.to_thread(stage.kill_server, "api", signal.SIGKILL)
        await asyncio.to_thread(stage.restart, "api")

        trial.subjects.append(await submitting)
        await asyncio.gather(*watching)
        await asyncio.to_thread(trial.until_ended)
        again = [await submit(http, s.kind, s.seed) for s in trial.subjects]
    assert again == trial.subjects, f"{moment}: a repeated key made another run"
    made = stage.rows("select count(*) from app.run where seed = any(%s)", [s.seed for s in trial.subjects])
    assert made == [(4,)], f"{moment}: {made} runs of 4 keys"
    for watcher in watchers:
        steps = len(stage.facts(watcher.run).steps)
        assert watcher.seqs == list(range(1, steps + 1)), f"{moment}: {watcher.seqs}"
        assert watcher.connections > 1, moment
    trial.subjects.pop()  # it was not struck, and ends like any other
    expect(trial, plain, fence={1})
