"""Graphs of other packages ask people, wherever in them the question is, and what is answered reaches them once."""

from collections.abc import AsyncIterator

import pytest

from offing.core.run import RunStatus
from offing.core.step import StepKind
from tests.peers import people
from tests.peers.conversing import Conversing, conversing, model_calls
from tests.peers.everyone import each
from tests.peers.playing import Peer
from tests.workers.disturbing import Bench, bench

__all__ = ["bench"]


@pytest.fixture
async def talk(bench: Bench, peer: Peer) -> AsyncIterator[Conversing]:
    async with conversing(bench, peer) as one:
        yield one


@each("asks", of=people.PEOPLE)
async def test_what_a_person_answers_reaches_the_graph(talk: Conversing) -> None:
    ended = await talk.ask()
    assert ended.status is RunStatus.DONE, ended.error
    assert await talk.said(ended.id) == talk.peer.answer
    kinds = [step.kind for step in await talk.steps(ended.id)]
    assert kinds.count(StepKind.QUESTION) == len(talk.peer.replies)


@each("survives", of=people.PEOPLE)
async def test_a_worker_that_is_lost_around_the_question_asks_nothing_twice(talk: Conversing) -> None:
    plain = await talk.ask()
    calls = sorted(step.title for step in model_calls(await talk.steps(plain.id)))
    for at in range(3, await talk.transactions() + 1, 4):
        ended = await talk.disturbed(at, "before")
        found = await talk.steps(ended.id)
        assert await talk.said(ended.id) == talk.peer.answer, f"killed at {at}: {ended.error}"
        assert sorted(step.title for step in model_calls(found)) == calls, f"killed at {at}"
        assert sum(step.kind is StepKind.QUESTION for step in found) == len(talk.peer.replies), f"killed at {at}"


@each("again", of=people.WRONG)
async def test_what_is_no_answer_is_asked_for_again(talk: Conversing) -> None:
    ended = await talk.ask()
    assert ended.status is RunStatus.DONE, ended.error
    assert await talk.said(ended.id) == talk.peer.answer


@each("short", of=people.SHORT)
async def test_one_word_says_which_choice_is_meant(talk: Conversing) -> None:
    ended = await talk.ask()
    assert ended.status is RunStatus.DONE, ended.error
    assert await talk.said(ended.id) == talk.peer.answer
