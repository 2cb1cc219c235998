"""A run with a known or a learned window continues after a crash and replays with the same prompts."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from offing.core.run import Budget
from offing.core.step import StepKind
from offing.sdk import EngineFailure, FailureKind, Graph
from offing.testing import (
    Recording,
    RecordingMismatchError,
    assert_survives_worker_loss,
    replay_recording,
    simulate_run,
)
from offing.testing.recording import recording_to_json
from offing_graphs import agentflow, memact
from offing_graphs.memact.schemas import Act
from offing_graphs.shared.schemas import Plan
from offing_graphs.shared.text_reports import parse_report
from tests.graphs.corpus import FERRY, TIDES

DOCUMENTS = {"tides.md": TIDES, "ferry.md": FERRY}
QUESTION = "How often is the tide gauge calibrated?"
TOO_LONG = EngineFailure(FailureKind.CONTEXT_TOO_LONG, "This model's maximum context length is 8192 tokens.")
SEARCH: dict[str, Any] = {"query": "tide gauge"}


def plan(inputs: Any) -> Plan | EngineFailure:
    """A planner with a window of 8,192 tokens, of which the platform does not know."""
    if inputs.context_tokens != 8_192:
        return TOO_LONG
    return Plan(justification="", context="", sub_goal="Find it", tool="search_library", args=SEARCH)


def act(inputs: Any) -> Act | EngineFailure:
    """An agent that is told in its second turn that the prompt is too long."""
    if inputs.turn > 1 and inputs.context_tokens != 8_192:
        return TOO_LONG
    if inputs.turn < 4:
        return Act(goal="", tool="search_library", args=SEARCH)
    draft: Any = parse_report("# Gauge\nTwice a year. [E1]", "Gauge")
    return Act(answer=draft)


CASES = [(agentflow.graph, {"planner": plan}), (memact.graph, {"agent": act})]


@pytest.mark.parametrize(("graph", "answers"), CASES, ids=["agentflow", "memact"])
async def test_a_learned_window_survives_a_crash_at_each_moment(graph: Graph, answers: dict[str, Any]) -> None:
    whole = await assert_survives_worker_loss(
        graph, QUESTION, documents=DOCUMENTS, answers=answers, budget=Budget(max_turns=5)
    )
    assert len(whole.list_steps(StepKind.FAILURE)) == 1
    assert [s.payload["context_tokens"] for s in whole.list_steps(StepKind.NOTE) if s.label == "window"] == [8_192]


@pytest.mark.parametrize(("graph", "answers"), CASES, ids=["agentflow", "memact"])
async def test_a_run_in_a_known_window_replays_with_the_same_prompts(graph: Graph, answers: dict[str, Any]) -> None:
    window = {role.name: 8_192 for role in graph.roles}
    run = await simulate_run(
        graph, QUESTION, documents=DOCUMENTS, answers=answers, budget=Budget(max_turns=5), context_tokens=window
    )
    assert not run.list_steps(StepKind.FAILURE)
    assert run.report is not None
    recording = Recording(
        QUESTION, run.steps, Budget(max_turns=5), reason=run.report.stop_reason, context_tokens=window
    )
    stored = Recording.from_json(orjson.loads(orjson.dumps(recording_to_json(recording))))
    await replay_recording(graph, stored)
    with pytest.raises(RecordingMismatchError):
        await replay_recording(graph, replace(recording, context_tokens={}))
