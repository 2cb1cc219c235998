"""Graphs of other packages, built as their own pages do it with our model in place of a provider's: each runs to its
report, survives the loss of its worker, continues in its thread, and leaves what others are trained with.
"""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import pytest

from offing.core.model import EngineConfig
from offing.core.run import Budget, RunStatus, StopReason
from offing.core.step import StepKind
from offing.exports.format import FORMATS, ExportOptions
from offing.langchain.chat_values import ChatReply as Spoken
from offing.langchain.chat_values import ChatToolCall
from offing.langchain.text_tool_calls import render_reply
from offing.services import trajectories
from offing.services.graphs import open_registry
from offing.services.runs import RunRequest, submit_run
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.trajectories import TrajectoryQuery
from tests.model_provider.policy_server import Policies
from tests.model_provider.replies import Completion
from tests.model_provider.server import WireServer
from tests.peers.all_peers import each
from tests.peers.peer_case import Peer, parse_text_prompt
from tests.peers.peer_runs import PeerRuns, model_calls, open_peer_runs, tools_used
from tests.workers.interrupted_runs import Bench, Quiet, bench

__all__ = ["bench"]

STRIDE = 5
"""Of the transactions of a run, one in every few is struck; another one in each peer's run."""


@pytest.fixture
async def runs(bench: Bench, peer: Peer) -> AsyncIterator[PeerRuns]:
    async with open_peer_runs(bench, peer) as one:
        yield one


@each("runs")
async def test_it_runs_to_its_report(runs: PeerRuns) -> None:
    ended = await runs.ask()
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, StopReason.ANSWERED), ended.error
    assert await runs.read_answer(ended.id) == runs.peer.answer


@each("survives")
@pytest.mark.filterwarnings("ignore:coroutine 'AsyncPregelLoop:RuntimeWarning")  # of a worker that died in a subgraph
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_it_ends_the_same_wherever_its_worker_is_killed(runs: PeerRuns) -> None:
    plain = await runs.ask()
    undisturbed = await runs.steps(plain.id)
    calls, tools = [_without_call_ids(step.title) for step in model_calls(undisturbed)], tools_used(undisturbed)
    wrong: list[str] = []
    for at in range(2, await runs.transactions() + 1, STRIDE):
        ended = await runs.disturbed(at, "after" if at % 2 else "before")
        steps = await runs.steps(ended.id)
        titles = [_without_call_ids(step.title) for step in model_calls(steps)]
        if (ended.status, await runs.read_answer(ended.id)) != (RunStatus.DONE, runs.peer.answer):
            wrong.append(f"killed at {at}: {ended.status}, {ended.error}, said {await runs.read_answer(ended.id)!r}")
        if sorted(titles) != sorted(calls):
            wrong.append(f"killed at {at}: it asked {titles}, undisturbed {calls}")
        if tools_used(steps) != tools:
            wrong.append(f"killed at {at}: it used {tools_used(steps)}, undisturbed {tools}")
    assert await runs.read_answer(plain.id) == runs.peer.answer
    assert not wrong, "\n".join(wrong)


def _without_call_ids(title: str) -> str:
    """A call whose answer was lost with its worker is made again, and the provider then gives other ids."""
    return re.sub(r"call_\d+_\d+", "call", title)


@each("follows", lambda peer: peer.follow)
async def test_a_follow_up_continues_with_its_state(runs: PeerRuns) -> None:
    first = await runs.ask()
    second = await runs.ask(runs.peer.follow, first.thread_id)
    assert second.status is RunStatus.DONE, second.error
    assert await runs.read_answer(second.id) == runs.peer.follow_answer


@each("tools", lambda peer: peer.tools)
async def test_its_tool_calls_and_what_they_gave_are_steps(runs: PeerRuns) -> None:
    ended = await runs.ask()
    assert tools_used(await runs.steps(ended.id)) == list(runs.peer.tools)


@each("names", lambda peer: peer.askers)
async def test_its_steps_say_which_agent_asked(runs: PeerRuns) -> None:
    ended = await runs.ask()
    labels = {step.label for step in model_calls(await runs.steps(ended.id))}
    assert set(runs.peer.askers) <= labels


@each("swapped", lambda peer: peer.name == "research")
async def test_models_that_it_builds_by_name_are_ours(runs: PeerRuns) -> None:
    ended = await runs.ask()
    assert len(runs.server.requests) == len(model_calls(await runs.steps(ended.id)))


@each("chat")
async def test_what_a_provider_answered_can_be_imitated(runs: PeerRuns, tmp_path: Path) -> None:
    ended = await runs.ask()
    rows = await exported(runs.bench, "jsonl_chat", tmp_path / "chat.jsonl")
    taught = [message for row in rows for message in row["messages"] if message.get("weight")]
    assert len(taught) == len(model_calls(await runs.steps(ended.id)))
    assert {row["role"] for row in rows} == set(runs.peer.roles)


@each("rows")
async def test_what_a_policy_answered_has_its_very_tokens(bench: Bench, peer: Peer, tmp_path: Path) -> None:
    bench.graphs = peer.place
    async with WireServer(
        policies := Policies(policy_server_of(peer), versions=versions(peer), retells=True)
    ) as server:
        conversation = PeerRuns(bench, peer, server)
        ended = await conversation.to_its_end(await begun_by_policy(conversation, server.url))
    assert await conversation.read_answer(ended.id) == peer.answer, ended.error
    rows = await exported(bench, "rows", tmp_path / "rows.jsonl")
    assert len(policies.chats) == len(model_calls(await conversation.steps(ended.id)))
    assert {row["role"] for row in rows} == set(peer.roles)


@each("asks", lambda peer: peer.replies)
async def test_a_person_is_asked_once_and_the_answer_reaches_the_graph(runs: PeerRuns) -> None:
    ended = await runs.ask()
    kinds = [step.kind for step in await runs.steps(ended.id)]
    assert kinds.count(StepKind.INPUT_REQUEST) == kinds.count(StepKind.INPUT_RESPONSE) == len(runs.peer.replies)
    assert await runs.read_answer(ended.id) == runs.peer.answer


def policy_server_of(peer: Peer) -> Any:
    """The peer's lines as a policy writes them."""

    def say(body: dict[str, Any]) -> str:
        reply = peer.says(parse_text_prompt(body, str(body["model"]).partition("@")[0]))
        assert isinstance(reply, Completion), reply
        calls = tuple(ChatToolCall(name=name, args=orjson.loads(arguments)) for name, arguments in reply.called)
        return render_reply(Spoken(text=reply.text, calls=calls))

    return say


def versions(peer: Peer) -> tuple[str, ...]:
    """The policies that answer its roles."""
    return tuple(f"{role}@1" for role in peer.roles)


async def begun_by_policy(conversation: PeerRuns, url: str) -> UUID:
    engines = {
        role: EngineConfig(engine="policy", model=model, api_base=url, max_tokens=400)
        for role, model in zip(conversation.peer.roles, versions(conversation.peer), strict=True)
    }
    request = RunRequest(
        conversation.peer.question, conversation.peer.name, engines=engines, budget=Budget(max_turns=60)
    )
    created = await submit_run(
        conversation.bench.database, Quiet(), LOCAL_TENANT, request, graphs=open_registry(conversation.bench.graphs)
    )
    return created.run.id


async def exported(bench: Bench, format: str, out: Path) -> list[dict[str, Any]]:
    bench.ask("update app.tenant set training_opt_in = true")
    expected = TrajectoryQuery(kind="interactive")
    await trajectories.export_trajectories(
        bench.database, LOCAL_TENANT, expected, FORMATS[format], ExportOptions(), None, out
    )
    return [orjson.loads(line) for line in out.read_bytes().splitlines()]  # noqa: ASYNC240
