"""Graphs of other packages, built as their own pages do it with our model in place of a provider's: each runs to its
report, survives the loss of its worker, goes on in its thread, and leaves what others are trained with.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import pytest

from offing.core.model import EngineChoice
from offing.core.run import Budget, RunStatus, StopReason
from offing.core.step import StepKind
from offing.exports.format import Options, named
from offing.langchain.dialogue import Call
from offing.langchain.dialogue import Reply as Spoken
from offing.langchain.words import written
from offing.services import trajectories
from offing.services.graphs import installed
from offing.services.runs import RunRequest, submit
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.trajectories import Query
from tests.peers.conversing import Conversing, conversing, model_calls, tools_used
from tests.peers.everyone import each
from tests.peers.playing import Peer, heard_in_words
from tests.wire.policies import Policies
from tests.wire.replies import Completion
from tests.wire.server import WireServer
from tests.workers.disturbing import Bench, Quiet, bench

__all__ = ["bench"]

STRIDE = 5
"""Of the transactions of a run, one in so many is struck; another one in each peer's run."""


@pytest.fixture
async def talk(bench: Bench, peer: Peer) -> AsyncIterator[Conversing]:
    async with conversing(bench, peer) as one:
        yield one


@each("runs")
async def test_it_runs_to_its_report(talk: Conversing) -> None:
    ended = await talk.ask()
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, StopReason.ANSWERED), ended.error
    assert await talk.said(ended.id) == talk.peer.answer


@each("survives")
@pytest.mark.filterwarnings("ignore:coroutine 'AsyncPregelLoop:RuntimeWarning")  # of a worker that died in a subgraph
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_it_ends_the_same_wherever_its_worker_is_killed(talk: Conversing) -> None:
    plain = await talk.ask()
    undisturbed = await talk.steps(plain.id)
    calls, tools = [step.title for step in model_calls(undisturbed)], tools_used(undisturbed)
    wrong: list[str] = []
    for at in range(2, await talk.transactions() + 1, STRIDE):
        ended = await talk.disturbed(at, "after" if at % 2 else "before")
        steps = await talk.steps(ended.id)
        found = [step.title for step in model_calls(steps)]
        if (ended.status, await talk.said(ended.id)) != (RunStatus.DONE, talk.peer.answer):
            wrong.append(f"killed at {at}: {ended.status}, {ended.error}, said {await talk.said(ended.id)!r}")
        if sorted(found) != sorted(calls):
            wrong.append(f"killed at {at}: it asked {found}, undisturbed {calls}")
        if tools_used(steps) != tools:
            wrong.append(f"killed at {at}: it used {tools_used(steps)}, undisturbed {tools}")
    assert await talk.said(plain.id) == talk.peer.answer
    assert not wrong, "\n".join(wrong)


@each("follows", lambda peer: peer.follow)
async def test_a_follow_up_goes_on_with_its_state(talk: Conversing) -> None:
    first = await talk.ask()
    second = await talk.ask(talk.peer.follow, first.thread)
    assert second.status is RunStatus.DONE, second.error
    assert await talk.said(second.id) == talk.peer.follow_answer


@each("tools", lambda peer: peer.tools)
async def test_its_tool_calls_and_what_they_gave_are_steps(talk: Conversing) -> None:
    ended = await talk.ask()
    assert tools_used(await talk.steps(ended.id)) == list(talk.peer.tools)


@each("names", lambda peer: peer.askers)
async def test_its_steps_say_which_agent_asked(talk: Conversing) -> None:
    ended = await talk.ask()
    labels = {step.label for step in model_calls(await talk.steps(ended.id))}
    assert set(talk.peer.askers) <= labels


@each("swapped", lambda peer: peer.name == "research")
async def test_models_that_it_builds_by_name_are_ours(talk: Conversing) -> None:
    ended = await talk.ask()
    assert len(talk.server.requests) == len(model_calls(await talk.steps(ended.id)))


@each("chat")
async def test_what_a_provider_answered_can_be_imitated(talk: Conversing, tmp_path: Path) -> None:
    ended = await talk.ask()
    rows = await exported(talk.bench, "jsonl_chat", tmp_path / "chat.jsonl")
    taught = [message for row in rows for message in row["messages"] if message.get("weight")]
    assert len(taught) == len(model_calls(await talk.steps(ended.id)))
    assert {row["role"] for row in rows} == set(talk.peer.roles)


@each("rows")
async def test_what_a_policy_answered_has_its_very_tokens(bench: Bench, peer: Peer, tmp_path: Path) -> None:
    bench.graphs = peer.place
    async with WireServer(policies := Policies(spoken(peer), versions=versions(peer), retells=True)) as server:
        talk = Conversing(bench, peer, server)
        ended = await talk.to_its_end(await begun_by_policy(talk, server.url))
    assert await talk.said(ended.id) == peer.answer, ended.error
    rows = await exported(bench, "rows", tmp_path / "rows.jsonl")
    assert len(policies.chats) == len(model_calls(await talk.steps(ended.id)))
    assert {row["role"] for row in rows} == set(peer.roles)


@each("asks", lambda peer: peer.replies)
async def test_a_person_is_asked_once_and_the_answer_reaches_the_graph(talk: Conversing) -> None:
    ended = await talk.ask()
    kinds = [step.kind for step in await talk.steps(ended.id)]
    assert kinds.count(StepKind.QUESTION) == kinds.count(StepKind.ANSWER) == len(talk.peer.replies)
    assert await talk.said(ended.id) == talk.peer.answer


def spoken(peer: Peer) -> Any:
    """The peer's lines as a policy writes them."""

    def say(body: dict[str, Any]) -> str:
        reply = peer.says(heard_in_words(body, str(body["model"]).partition("@")[0]))
        assert isinstance(reply, Completion), reply
        calls = tuple(Call(name=name, args=orjson.loads(arguments)) for name, arguments in reply.called)
        return written(Spoken(text=reply.text, calls=calls))

    return say


def versions(peer: Peer) -> tuple[str, ...]:
    """The policies that answer its roles."""
    return tuple(f"{role}@1" for role in peer.roles)


async def begun_by_policy(talk: Conversing, url: str) -> UUID:
    engines = {
        role: EngineChoice(engine="policy", model=model, api_base=url, max_tokens=400)
        for role, model in zip(talk.peer.roles, versions(talk.peer), strict=True)
    }
    request = RunRequest(talk.peer.question, talk.peer.name, engines=engines, budget=Budget(turns=60))
    made = await submit(talk.bench.database, Quiet(), LOCAL_TENANT, request, graphs=installed(talk.bench.graphs))
    return made.run.id


async def exported(bench: Bench, format: str, out: Path) -> list[dict[str, Any]]:
    bench.ask("update app.tenant set training_opt_in = true")
    wanted = Query(kind="ask")
    await trajectories.export(bench.database, LOCAL_TENANT, wanted, named(format), Options(), None, out)
    return [orjson.loads(line) for line in out.read_bytes().splitlines()]  # noqa: ASYNC240
