"""Graphs of other packages ask people, wherever in them the question is, and what is answered reaches them once."""

from collections.abc import AsyncIterator

import pytest

from offing.core.run import RunStatus
from offing.core.step import StepKind
from tests.peers import human_input
from tests.peers.all_peers import each
from tests.peers.peer_case import Peer
from tests.peers.peer_runs import PeerRuns, model_calls, open_peer_runs
from tests.workers.interrupted_runs import Bench, bench

__all__ = ["bench"]


@pytest.fixture
async def runs(bench: Bench, peer: Peer) -> AsyncIterator[PeerRuns]:
    async with open_peer_runs(bench, peer) as one:
        yield one


@each("asks", of=human_input.PEOPLE)
async def test_what_a_person_answers_reaches_the_graph(runs: PeerRuns) -> None:
    ended = await runs.ask()
    assert ended.status is RunStatus.DONE, ended.error
    assert await runs.read_answer(ended.id) == runs.peer.answer
    kinds = [step.kind for step in await runs.steps(ended.id)]
    assert kinds.count(StepKind.INPUT_REQUEST) == len(runs.peer.replies)


@each("survives", of=human_input.PEOPLE)
async def test_a_worker_that_crashes_around_the_question_asks_nothing_twice(runs: PeerRuns) -> None:
    plain = await runs.ask()
    calls = sorted(step.title for step in model_calls(await runs.steps(plain.id)))
    for at in range(3, await runs.transactions() + 1, 4):
        ended = await runs.disturbed(at, "before")
        steps = await runs.steps(ended.id)
        assert await runs.read_answer(ended.id) == runs.peer.answer, f"killed at {at}: {ended.error}"
        assert sorted(step.title for step in model_calls(steps)) == calls, f"killed at {at}"
        assert sum(step.kind is StepKind.INPUT_REQUEST for step in steps) == len(runs.peer.replies), f"killed at {at}"


@each("again", of=human_input.WRONG)
async def test_what_is_no_answer_is_asked_for_again(runs: PeerRuns) -> None:
    ended = await runs.ask()
    assert ended.status is RunStatus.DONE, ended.error
    assert await runs.read_answer(ended.id) == runs.peer.answer


@each("short", of=human_input.SHORT)
async def test_one_word_says_which_choice_is_meant(runs: PeerRuns) -> None:
    ended = await runs.ask()
    assert ended.status is RunStatus.DONE, ended.error
    assert await runs.read_answer(ended.id) == runs.peer.answer
