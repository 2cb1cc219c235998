"""What LangGraph graphs leave for training where a policy answers them token by token, and what a provider is sent."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from offing.core.model import EngineConfig
from offing.core.run import Budget, RunStatus
from offing.exports.format import FORMATS, ExportOptions
from offing.langchain.chat_values import ChatReply
from offing.langchain.text_tool_calls import render_reply
from offing.services import trajectories
from offing.services.runs import RunRequest
from offing.storage.trajectories import TrajectoryQuery
from tests.model_provider.policy_server import Policies
from tests.model_provider.server import WireServer
from tests.workers.conftest import Platform, StartWorker
from tests.workers.langgraph_runs import answer_of, started, turns_of
from tests.workers.langgraph_scripts import GRAPHS, PLAYS, REACT, Play


def completion_writer(play: Play, role: str) -> Callable[[dict[str, Any]], str]:
    """The lines of a role as a policy writes them; a thought before the first, as such models have."""
    lines = play.lines[role]

    def say(body: dict[str, Any]) -> str:
        last = body["messages"][-1]["content"]
        nth = sum(m["role"] == "assistant" for m in body["messages"])
        message = next((c["answer"] for c in lines.get("cases", ()) if c["contains"] in last), None)
        line = message or lines["answers"][min(nth, len(lines["answers"]) - 1)]
        return ("" if nth else "<think>Two tools.</think>\n") + render_reply(ChatReply.model_validate(line))

    return say


def by_policy(play: Play) -> RunRequest:
    engines = {role: EngineConfig(engine="policy", model="small@1", max_tokens=400) for role in play.lines}
    return RunRequest(play.question, play.graph, engines=engines, budget=Budget(max_turns=12))


async def exported(
    platform: Platform, sql: Any, format: str, out: Path, graph: str | None = None
) -> list[dict[str, Any]]:
    sql("update app.tenant set training_opt_in = true")
    expected = TrajectoryQuery(kind="interactive", graph=graph)
    await trajectories.export_trajectories(
        platform.database, platform.tenant, expected, FORMATS[format], ExportOptions(), None, out
    )
    return [orjson.loads(line) for line in out.read_bytes().splitlines()]  # noqa: ASYNC240


async def test_conversations_of_all_shapes_are_exported_for_imitation(
    platform: Platform, start_worker: StartWorker, sql: Any, tmp_path: Path
) -> None:
    start_worker(OFFING_EXTRA_GRAPHS=GRAPHS)
    for run in [await started(platform, play.request()) for play in PLAYS]:
        await platform.ended(run.id)
    for play in PLAYS:
        rows = await exported(platform, sql, "jsonl_chat", tmp_path / play.graph, play.graph)
        taught = [m for row in rows for m in row["messages"] if m.get("weight")]
        assert len(taught) == play.calls, play.graph
        assert {row["role"] for row in rows} == {role for role in play.lines if role != "mathematician"}
        assert any("<tool_call>" in m["content"] for m in taught)


async def test_a_policys_turns_are_exact_continue_in_one_segment_and_are_exported_as_rows(
    platform: Platform, start_worker: StartWorker, sql: Any, tmp_path: Path
) -> None:
    async with WireServer(policies := Policies(completion_writer(REACT, "agent"), retells=True)) as server:
        start_worker(OFFING_EXTRA_GRAPHS=GRAPHS, OFFING_ENGINE_URL=server.url)
        run = await started(platform, by_policy(REACT))
        ended = await platform.ended(run.id)
    turns = await turns_of(platform, run.id)
    assert ended.status is RunStatus.DONE, ended.error
    assert await answer_of(platform, run.id) == REACT.answer
    assert [(t.trainable, t.segment_idx, t.position) for t in turns] == [("rl", 0, 0), ("rl", 0, 1), ("rl", 0, 2)]
    assert len(policies.chats) == len(turns)
    assert [bool(chat.get("offing_prefix")) for chat in policies.chats] == [False, True, True]
    assert [[s.kind for s in turn.spans] for turn in turns][1] == ["action"]
    (row,) = await exported(platform, sql, "rows", tmp_path / "rows.jsonl")
    assert row["segment_idx"] == 0
    assert turns[-1].tokens is not None
    assert row["token_ids"] == list(turns[-1].tokens.segment_ids)
