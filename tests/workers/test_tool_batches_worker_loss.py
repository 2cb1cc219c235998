"""What is left of a batch of tool calls when its worker crashes: no finished call is made again."""

import pytest

from offing.core.run import RunStatus
from tests.workers.batch_graph import question_for
from tests.workers.conftest import Platform, StartWorker
from tests.workers.test_tool_batches import ENVIRONMENT, let_end, outcome_of, recorded, results, started, submit


@pytest.mark.parametrize("waiting", ["look", "send"])
async def test_after_a_crash_within_a_batch_no_finished_call_is_made_again(
    platform: Platform, start_worker: StartWorker, waiting: str
) -> None:
    log = f"crash-{waiting}"
    run = await submit(platform, question_for(log, f"{waiting}:waits", "send", "look"))
    first = start_worker(**ENVIRONMENT)
    await recorded(platform, run, 2)
    first.kill()
    let_end(log, 1)
    start_worker(**ENVIRONMENT)
    ended = await platform.ended(run.id)
    steps = sorted(await results(platform, run), key=lambda step: step.payload["batch"]["number"])
    assert ended.status is RunStatus.DONE, ended.error
    again = waiting == "look"
    assert sorted(started(log)) == [1, *([1] if again else []), 2, 3]
    assert [step.payload["status"] for step in steps] == ["ok" if again else "unknown_outcome", "ok", "ok"]
    assert await outcome_of(platform, run) == ("1 ok, 2 ok, 3 ok" if again else "- unknown_outcome, 2 ok, 3 ok")
