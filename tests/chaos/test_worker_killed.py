"""A worker is killed with -9 in the middle of its runs; another goes on with them."""

import pytest

from tests.chaos import checker
from tests.chaos.stage import Stage
from tests.chaos.trial import Client, Kind, Moment, report_of

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(120)]


async def test_worker_killed(stage: Stage, client: Client, plain: dict[Kind, checker.Rows], moment: Moment) -> None:
    dice, worker = moment.dice, stage.lone_worker()
    trial = await client.trial(moment, "steady", "varying", "agentflow")
    spare = stage.spawn_worker()
    trial.until_calls(trial.subjects[0], dice.randint(3, 45))
    held = trial.owned_by(worker.pid)
    trial.strike()
    worker.kill()
    spare.await_ready()
    trial.until_ended()
    wrong = [(s, trial.complaints(s, plain, losses=1)) for s in held]
    assert not report_of(wrong), f"{moment}:\n{report_of(wrong)}"
    assert [stage.facts(s.run).run.fence for s in held] == [2, 2, 2], moment
