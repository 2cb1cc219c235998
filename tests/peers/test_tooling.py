"""Tools of a graph's own are calls of its run: each is a step, and what is on record is not done again after a loss."""

from collections import Counter
from collections.abc import AsyncIterator

import pytest

from offing.core.run import RunStatus
from offing.core.step import Step, StepKind
from tests.peers import tooling
from tests.peers.conversing import Conversing, conversing, tools_used
from tests.peers.everyone import each
from tests.peers.playing import Peer
from tests.workers.disturbing import Bench, bench

__all__ = ["bench"]


@pytest.fixture
async def talk(bench: Bench, peer: Peer) -> AsyncIterator[Conversing]:
    tooling.executed.clear()
    async with conversing(bench, peer) as one:
        yield one


@each("runs", of=tooling.TOOLED)
async def test_each_call_that_gave_something_is_a_step_with_what_it_gave(talk: Conversing) -> None:
    ended = await talk.ask()
    assert ended.status is RunStatus.DONE, ended.error
    assert await talk.said(ended.id) == talk.peer.answer
    assert tools_used(await talk.steps(ended.id)) == list(talk.peer.tools)


@each("survives", lambda peer: peer.name in ("drawn", "in_threads"), of=tooling.TOOLED)
async def test_no_call_that_is_on_record_is_made_again(talk: Conversing) -> None:
    for at in range(4, await talk.transactions() + 1, 2):
        tooling.executed.clear()
        ended = await talk.disturbed(at, "after")
        steps = await talk.steps(ended.id)
        assert await talk.said(ended.id) == talk.peer.answer, f"killed at {at}: {ended.error}"
        assert tools_used(steps) == list(talk.peer.tools), f"killed at {at}"
        before = [step for step in steps if step.kind is StepKind.TOOL and step.fence == 1]
        executed = Counter(tooling.executed)
        for call, recorded in Counter(f"{s.payload['tool']} {s.payload['args']['of']}" for s in before).items():
            in_hand = asked(steps, call) - recorded
            assert executed[call] <= recorded + 2 * in_hand, f"killed at {at}: {executed}, {recorded} on record before"


def asked(steps: list[Step], call: str) -> int:
    """How often a call is on record in the end."""
    return sum(s.kind is StepKind.TOOL and f"{s.payload['tool']} {s.payload['args']['of']}" == call for s in steps)


@pytest.mark.parametrize("peer", [peer for peer in tooling.TOOLED if peer.name == "retried"])
async def test_a_failure_is_on_record_and_the_next_try_takes_its_place(talk: Conversing) -> None:
    ended = await talk.ask()
    found = [step for step in await talk.steps(ended.id) if step.kind is StepKind.TOOL]
    assert [(step.ok, step.key is not None) for step in found] == [(False, False), (True, True)]
    assert found[0].detail == "ConnectionError: not yet"


@pytest.mark.parametrize("peer", [peer for peer in tooling.TOOLED if peer.name == "oddly"])
async def test_what_has_no_form_is_shown_and_given_anew_after_a_loss(talk: Conversing) -> None:
    for at in range(4, await talk.transactions() + 1, 3):
        ended = await talk.disturbed(at, "after")
        (step,) = [step for step in await talk.steps(ended.id) if step.kind is StepKind.TOOL]
        assert await talk.said(ended.id) == talk.peer.answer, f"killed at {at}: {ended.error}"
        assert "it is odd" in step.detail
        assert step.payload["content"] == {}
