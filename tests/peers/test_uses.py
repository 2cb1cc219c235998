"""What people do next with graphs of other packages works here as it does on LangGraph alone, also in many slices."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from offing.core.run import RunStatus, StopReason
from offing.core.step import StepKind
from tests.model_provider.replies import Fault, Reply
from tests.peers import agents, research, uses
from tests.peers.all_peers import each
from tests.peers.peer_case import Peer, ReceivedPrompt, says
from tests.peers.peer_runs import PeerRuns, model_calls, open_peer_runs
from tests.workers.interrupted_runs import Bench, bench

__all__ = ["bench"]


def refuses(_: ReceivedPrompt) -> Reply:
    return Fault(401, "no key")


def answers(_: ReceivedPrompt) -> Reply:
    return says("42")


EVERY = uses.USES + agents.AGENTS


@pytest.fixture
async def runs(bench: Bench, peer: Peer) -> AsyncIterator[PeerRuns]:
    uses.tried.clear()
    agents.failed.clear()
    async with open_peer_runs(bench, peer) as one:
        yield one


@each("runs", of=EVERY)
async def test_it_comes_to_the_same_as_on_langgraph_alone(runs: PeerRuns) -> None:
    ended = await runs.ask()
    assert ended.status is RunStatus.DONE, ended.error
    assert await runs.read_answer(ended.id) == runs.peer.answer


@each("slices", of=EVERY)
async def test_it_comes_to_the_same_in_slices_of_one_turn(runs: PeerRuns) -> None:
    runs.bench.slice_turns = 1
    ended = await runs.ask()
    assert ended.status is RunStatus.DONE, ended.error
    assert await runs.read_answer(ended.id) == runs.peer.answer


@each("follows", lambda peer: peer.follow, of=EVERY)
async def test_a_follow_up_continues_with_what_was_saved(runs: PeerRuns) -> None:
    first = await runs.ask()
    second = await runs.ask(runs.peer.follow, first.thread_id)
    assert second.status is RunStatus.DONE, second.error
    assert await runs.read_answer(second.id) == runs.peer.follow_answer


@pytest.mark.parametrize("peer", [uses.use("endless", uses.echo, "")])
async def test_the_limit_that_a_graph_was_compiled_with_ends_it(runs: PeerRuns) -> None:
    ended = await runs.ask()
    assert ended.status is RunStatus.FAILED
    assert "recursion" in (ended.error or "").lower()


@pytest.mark.parametrize("peer", [uses.use("cached", answers, "42")])
async def test_what_one_run_has_cached_is_not_given_to_another(runs: PeerRuns) -> None:
    first, second = await runs.ask(), await runs.ask()
    assert [len(model_calls(await runs.steps(run.id))) for run in (first, second)] == [1, 1]


@pytest.mark.parametrize("peer", [peer for peer in agents.AGENTS if peer.name == "call_limited"])
async def test_a_limit_for_an_invocation_holds_over_slices_and_begins_again_with_the_next_run(runs: PeerRuns) -> None:
    runs.bench.slice_turns = 1
    first = await runs.ask()
    second = await runs.ask("On.", first.thread_id)
    assert [len(model_calls(await runs.steps(run.id))) for run in (first, second)] == [3, 3]


@pytest.mark.parametrize("peer", [uses.use("streamed", uses.echo, "told")])
async def test_what_a_graph_streams_is_noted(runs: PeerRuns) -> None:
    ended = await runs.ask()
    assert [s.title for s in await runs.steps(ended.id) if s.kind is StepKind.NOTE] == ["half way"]


@pytest.mark.parametrize("peer", [uses.use("native", uses.echo, "told", roles=())])
async def test_what_a_graph_streams_that_knows_the_sdk_is_noted(runs: PeerRuns) -> None:
    ended = await runs.ask()
    assert ended.status is RunStatus.DONE, ended.error
    assert [s.title for s in await runs.steps(ended.id) if s.kind is StepKind.NOTE] == ["half way"]


@pytest.mark.parametrize("peer", [agents.agent("shaken", agents.shaken_lines, "")])
async def test_a_budget_ends_an_agent_that_retries_its_model(runs: PeerRuns) -> None:
    run = await runs.begin(turns=1)
    ended = await runs.to_its_end(run)
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, StopReason.TURN_LIMIT), ended.error


@pytest.mark.parametrize("peer", [research.peer])
async def test_a_budget_ends_a_graph_that_catches_every_error_and_retries(runs: PeerRuns) -> None:
    run = await runs.begin(turns=4)
    ended = await runs.to_its_end(run)
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, StopReason.TURN_LIMIT), ended.error
    assert len(model_calls(await runs.steps(run))) == 4


@pytest.mark.parametrize("peer", [replace(uses.USES[0], name="styled")])
async def test_a_model_that_gives_no_answer_ends_the_run_with_its_reason(runs: PeerRuns) -> None:
    silent = replace(runs.peer, says=refuses)
    async with open_peer_runs(runs.bench, silent) as other:
        ended = await other.ask()
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, StopReason.PROVIDER_DOWN)
