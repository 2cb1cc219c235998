"""Custom tools are calls of the run: each is a step, and a recorded call is not repeated after a crash."""

from collections import Counter
from collections.abc import AsyncIterator

import pytest

from offing.core.run import RunStatus
from offing.core.step import Step, StepKind
from tests.peers import tools
from tests.peers.all_peers import each
from tests.peers.peer_case import Peer
from tests.peers.peer_runs import PeerRuns, open_peer_runs, tools_used
from tests.workers.interrupted_runs import Bench, bench

__all__ = ["bench"]


@pytest.fixture
async def runs(bench: Bench, peer: Peer) -> AsyncIterator[PeerRuns]:
    tools.executed.clear()
    async with open_peer_runs(bench, peer) as one:
        yield one


@each("runs", of=tools.TOOLED)
async def test_each_call_that_gave_something_is_a_step_with_what_it_gave(runs: PeerRuns) -> None:
    ended = await runs.ask()
    assert ended.status is RunStatus.DONE, ended.error
    assert await runs.read_answer(ended.id) == runs.peer.answer
    assert tools_used(await runs.steps(ended.id)) == list(runs.peer.tools)


@each("survives", lambda peer: peer.name in ("drawn", "in_threads"), of=tools.TOOLED)
async def test_no_call_that_is_on_record_is_made_again(runs: PeerRuns) -> None:
    for at in range(4, await runs.transactions() + 1, 2):
        tools.executed.clear()
        ended = await runs.disturbed(at, "after")
        steps = await runs.steps(ended.id)
        assert await runs.read_answer(ended.id) == runs.peer.answer, f"killed at {at}: {ended.error}"
        assert tools_used(steps) == list(runs.peer.tools), f"killed at {at}"
        before = [step for step in steps if step.kind is StepKind.TOOL_RESULT and step.fence == 1]
        executed = Counter(tools.executed)
        for call, recorded in Counter(f"{s.payload['tool']} {s.payload['args']['of']}" for s in before).items():
            in_hand = count_calls(steps, call) - recorded
            assert executed[call] <= recorded + 2 * in_hand, f"killed at {at}: {executed}, {recorded} on record before"


def count_calls(steps: list[Step], call: str) -> int:
    """How often a call is on record in the end."""
    return sum(
        s.kind is StepKind.TOOL_RESULT and f"{s.payload['tool']} {s.payload['args']['of']}" == call for s in steps
    )


@pytest.mark.parametrize("peer", [peer for peer in tools.TOOLED if peer.name == "retried"])
async def test_a_failure_is_on_record_and_the_next_try_takes_its_place(runs: PeerRuns) -> None:
    ended = await runs.ask()
    steps = [step for step in await runs.steps(ended.id) if step.kind is StepKind.TOOL_RESULT]
    assert [(step.ok, step.call_key is not None) for step in steps] == [(False, False), (True, True)]
    assert steps[0].detail == "ConnectionError: not yet"


@pytest.mark.parametrize("peer", [peer for peer in tools.TOOLED if peer.name == "oddly"])
async def test_what_has_no_form_is_shown_and_given_anew_after_a_crash(runs: PeerRuns) -> None:
    for at in range(4, await runs.transactions() + 1, 3):
        ended = await runs.disturbed(at, "after")
        (step,) = [step for step in await runs.steps(ended.id) if step.kind is StepKind.TOOL_RESULT]
        assert await runs.read_answer(ended.id) == runs.peer.answer, f"killed at {at}: {ended.error}"
        assert "it is odd" in step.detail
        assert step.payload["content"] == {}
