"""A graph can ask for the limits of the model that answers a role, also when its run is replayed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson
import pytest

from offing.sdk import Graph, RunContext, StepDraft, StepKind, ToolCall
from offing.testing import (
    Recording,
    RecordingMismatchError,
    assert_survives_worker_loss,
    replay_recording,
    simulate_run,
)
from offing.testing.recording import recording_to_json
from tests.workers.graphs import untyped


def _asking(name: str, ask: Callable[[RunContext, str], int | None]) -> Graph:
    """A graph that notes the writer's limit, and adds 1 to that of the planner."""

    async def act(_: Any, runtime: Any) -> dict[str, Any]:
        ctx: RunContext = runtime.context
        await ctx.append_steps(StepDraft(StepKind.NOTE, f"{ask(ctx, 'writer')}"))
        await ctx.call_tool(ToolCall("calculate", {"expression": f"{ask(ctx, 'planner')} + 1"}))
        return {"seen": []}

    def build() -> Any:
        graph = untyped(dict, context_schema=RunContext)
        graph.add_node("act", act)
        graph.add_edge("__start__", "act")
        return graph

    return Graph(name, "", "", "1", build, lambda _: {"seen": []}, ())


asking = _asking("asking", lambda ctx, role: ctx.get_context_tokens(role))
measuring = _asking("measuring", lambda ctx, role: ctx.get_answer_tokens(role))


async def test_a_graph_sees_the_window_of_each_role_or_that_it_is_unknown() -> None:
    run = await simulate_run(asking, "How large?", context_tokens={"planner": 8_192})
    assert [step.title for step in run.steps if step.kind is StepKind.NOTE] == ["None"]
    (result,) = [step for step in run.steps if step.kind is StepKind.TOOL_RESULT]
    assert result.payload["args"] == {"expression": "8192 + 1"}
    await assert_survives_worker_loss(asking, "How large?", context_tokens={"planner": 8_192})


async def test_a_recording_keeps_the_windows_of_its_run() -> None:
    run = await simulate_run(asking, "How large?", context_tokens={"planner": 8_192})
    recording = Recording("How large?", run.steps, context_tokens={"planner": 8_192})
    stored = Recording.from_json(orjson.loads(orjson.dumps(recording_to_json(recording))))
    assert stored == recording
    await replay_recording(asking, stored)
    with pytest.raises(RecordingMismatchError, match="requests calculate"):
        await replay_recording(asking, replace(stored, context_tokens={"planner": 4_096}))


async def test_a_graph_sees_how_long_an_answer_of_a_role_may_be_also_from_a_recording() -> None:
    run = await simulate_run(measuring, "How long?", answer_tokens={"planner": 4_096})
    assert [step.title for step in run.steps if step.kind is StepKind.NOTE] == ["None"]
    (result,) = [step for step in run.steps if step.kind is StepKind.TOOL_RESULT]
    assert result.payload["args"] == {"expression": "4096 + 1"}
    recording = Recording("How long?", run.steps, answer_tokens={"planner": 4_096})
    stored = Recording.from_json(orjson.loads(orjson.dumps(recording_to_json(recording))))
    assert stored == recording
    await replay_recording(measuring, stored)
    with pytest.raises(RecordingMismatchError, match="requests calculate"):
        await replay_recording(measuring, replace(stored, answer_tokens={}))
