"""What people do next with graphs of other packages works here as it does on LangGraph alone, also in many slices."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from offing.core.run import RunStatus, StopReason
from offing.core.step import StepKind
from tests.peers import agents, research, uses
from tests.peers.conversing import Conversing, conversing, model_calls
from tests.peers.everyone import each
from tests.peers.playing import Heard, Peer, says
from tests.wire.replies import Fault, Reply
from tests.workers.disturbing import Bench, bench

__all__ = ["bench"]


def refuses(_: Heard) -> Reply:
    return Fault(401, "no key")


def answers(_: Heard) -> Reply:
    return says("42")


EVERY = uses.USES + agents.AGENTS


@pytest.fixture
async def talk(bench: Bench, peer: Peer) -> AsyncIterator[Conversing]:
    uses.tried.clear()
    agents.failed.clear()
    async with conversing(bench, peer) as one:
        yield one


@each("runs", of=EVERY)
async def test_it_comes_to_the_same_as_on_langgraph_alone(talk: Conversing) -> None:
    ended = await talk.ask()
    assert ended.status is RunStatus.DONE, ended.error
    assert await talk.said(ended.id) == talk.peer.answer


@each("slices", of=EVERY)
async def test_it_comes_to_the_same_in_slices_of_one_turn(talk: Conversing) -> None:
    talk.bench.slice_turns = 1
    ended = await talk.ask()
    assert ended.status is RunStatus.DONE, ended.error
    assert await talk.said(ended.id) == talk.peer.answer


@each("follows", lambda peer: peer.follow, of=EVERY)
async def test_a_follow_up_goes_on_with_what_was_saved(talk: Conversing) -> None:
    first = await talk.ask()
    second = await talk.ask(talk.peer.follow, first.thread)
    assert second.status is RunStatus.DONE, second.error
    assert await talk.said(second.id) == talk.peer.follow_answer


@pytest.mark.parametrize("peer", [uses.use("endless", uses.echo, "")])
async def test_the_limit_that_a_graph_was_compiled_with_ends_it(talk: Conversing) -> None:
    ended = await talk.ask()
    assert ended.status is RunStatus.FAILED
    assert "recursion" in (ended.error or "").lower()


@pytest.mark.parametrize("peer", [uses.use("cached", answers, "42")])
async def test_what_one_run_has_cached_is_not_given_to_another(talk: Conversing) -> None:
    first, second = await talk.ask(), await talk.ask()
    assert [len(model_calls(await talk.steps(run.id))) for run in (first, second)] == [1, 1]


@pytest.mark.parametrize("peer", [peer for peer in agents.AGENTS if peer.name == "call_limited"])
async def test_a_limit_for_an_invocation_holds_over_slices_and_begins_again_with_the_next_run(talk: Conversing) -> None:
    talk.bench.slice_turns = 1
    first = await talk.ask()
    second = await talk.ask("On.", first.thread)
    assert [len(model_calls(await talk.steps(run.id))) for run in (first, second)] == [3, 3]


@pytest.mark.parametrize("peer", [uses.use("streamed", uses.echo, "told")])
async def test_what_a_graph_streams_is_noted(talk: Conversing) -> None:
    ended = await talk.ask()
    assert [s.title for s in await talk.steps(ended.id) if s.kind is StepKind.NOTE] == ["half way"]


@pytest.mark.parametrize("peer", [uses.use("native", uses.echo, "told", roles=())])
async def test_what_a_graph_streams_that_knows_the_sdk_is_noted(talk: Conversing) -> None:
    ended = await talk.ask()
    assert ended.status is RunStatus.DONE, ended.error
    assert [s.title for s in await talk.steps(ended.id) if s.kind is StepKind.NOTE] == ["half way"]


@pytest.mark.parametrize("peer", [agents.agent("shaken", agents.shaken_lines, "")])
async def test_a_budget_ends_an_agent_that_retries_its_model(talk: Conversing) -> None:
    run = await talk.begin(turns=1)
    ended = await talk.to_its_end(run)
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, StopReason.TURN_LIMIT), ended.error


@pytest.mark.parametrize("peer", [research.peer])
async def test_a_budget_ends_a_graph_that_catches_every_error_and_retries(talk: Conversing) -> None:
    run = await talk.begin(turns=4)
    ended = await talk.to_its_end(run)
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, StopReason.TURN_LIMIT), ended.error
    assert len(model_calls(await talk.steps(run))) == 4


@pytest.mark.parametrize("peer", [replace(uses.USES[0], name="styled")])
async def test_a_model_that_gives_no_answer_ends_the_run_with_its_reason(talk: Conversing) -> None:
    silent = replace(talk.peer, says=refuses)
    async with conversing(talk.bench, silent) as other:
        ended = await other.ask()
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, StopReason.PROVIDER_DOWN)
