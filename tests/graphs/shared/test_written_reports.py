"""The prompt format `compact-report`: agents of a world write the answer of their report and what states it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offing.core.errors import InvalidInput
from offing.core.step import StepKind
from offing.sdk import Graph, InvalidOutput, PromptFormat, ReportDraft, SpanKind
from offing.tools.environment import extend_role
from offing_graphs.hiper import graph as hiper
from offing_graphs.hiper import schemas as hiper_schemas
from offing_graphs.iterresearch import graph as iterresearch
from offing_graphs.iterresearch.schemas import Call, Round, ToolObservation, TurnPhase, Workspace
from offing_graphs.memact import graph as memact
from offing_graphs.memact import schemas as memact_schemas
from offing_graphs.memact import supo
from offing_graphs.shared.schemas import MemoryRecord
from offing_world.compact_notation import VOCABULARY
from offing_world.hiper import compact_report as hiper_format
from offing_world.iterresearch import compact_report as iterresearch_format
from offing_world.memact import compact_report as memact_format
from tests.graphs.world_runs import Trial, held_out, trial

QUESTION = "Who taught Velan Torsk?"
ROLES: dict[str, tuple[Graph, str]] = {
    "hiper": (hiper, "agent"),
    "iterresearch": (iterresearch, "researcher"),
    "memact": (memact, "agent"),
    "supo": (supo, "agent"),
}


def content(relation: str, *values: str, closed: bool = False) -> dict[str, Any]:
    return {"relation": relation, "entity": "Velan Torsk", "values": list(values), "closed": closed}


def hiper_input(**more: Any) -> hiper_schemas.AgentInput:
    """Two records with a result, and between them one that failed."""
    contents = [content("home", "Marel Hollow"), None, content("teacher", "Mira Olden")]
    memory = tuple(
        hiper_schemas.TurnRecord(
            turn=n,
            sub_goal="g",
            tool="birch",
            args={"relation": "home", "entity": "Velan Torsk"},
            status="ok" if one else "failed",
            finding="",
            value=json.dumps(one) if one else "",
            output_seq=10 + n,
            switch=hiper_schemas.Switch.KEEP,
            boundary=False,
            subgoal="g",
            subgoal_nr=1,
            drifted=False,
        )
        for n, one in enumerate(contents)
    )
    return hiper_schemas.AgentInput(
        question=QUESTION, tools=(), memory=memory, subgoal="look up teacher", turn=4, remaining=2, **more
    )


def memact_input(**more: Any) -> memact_schemas.AgentInput:
    """A summary, a record with a result, a note, and a record that failed."""

    def record(n: int, act: memact_schemas.Act, found: dict[str, Any] | None) -> memact_schemas.ContextRecord:
        finding = found and memact_schemas.ToolFinding(tool=act.tool, args=act.args, status="ok", content=found)
        return memact_schemas.ContextRecord(
            id=f"r{n}", turn=n, seq=n, action=act, observation="", in_segment=True, ok=act.tool != "oak", finding=finding
        )

    look_up = memact_schemas.Act(tool="birch", args={"relation": "home", "entity": "Velan Torsk"})
    note = memact_schemas.Act(tool="write", args={"note": "teacher of Velan Torsk: Mira Olden."})
    records = (
        record(1, look_up, content("home", "Marel Hollow")),
        record(2, note, None),
        record(3, look_up.model_copy(update={"tool": "oak"}), None),
    )
    return memact_schemas.AgentInput(
        question=QUESTION,
        tools=(),
        records=records,
        summary="born of Velan Torsk: 1204.",
        max_context_tokens=1000,
        allows_edits=True,
        turn=4,
        remaining=2,
        **more,
    )


def workspace(phase: TurnPhase = TurnPhase.MIDDLE) -> Workspace:
    """One fact in the report, and another in the last result."""
    return Workspace(
        question=QUESTION,
        phase=phase,
        report="Known so far:\n- home of Velan Torsk: Marel Hollow\nNext: the teacher.",
        action=Call(tool="birch", args={"relation": "teacher", "entity": "Velan Torsk"}),
        result=ToolObservation(status="ok", content=content("teacher", "Mira Olden")),
    )


def sentences(draft: ReportDraft | None) -> list[str]:
    assert draft is not None
    return [sentence.text for section in draft.sections for sentence in section.sentences]


def prompt_of(prompt_format: PromptFormat[Any, Any], inputs: Any) -> str:
    return " / ".join(message.text for message in prompt_format.render(inputs))


# In runs.


async def written_trial(name: str, rule: str = "oracle", **more: Any) -> Trial:
    graph, role = ROLES[name]
    task = next(one for one in held_out(200) if one.hops == more.pop("hops", 3))
    return await trial(graph, task, rule, prompt_formats={role: "compact-report"}, **more)


@pytest.mark.parametrize("name", ROLES)
async def test_a_run_reports_what_its_agent_wrote_in_words_of_the_vocabulary(name: str) -> None:
    done = await written_trial(name)
    assert done.right
    texts = [call.text for call in done.ctx.role_calls]
    assert "answer e" in texts[-1]
    assert {word for text in texts for word in text.split()} <= set(VOCABULARY)
    prompts = {word for call in done.ctx.role_calls for m in call.messages for word in m.text.split()}
    assert prompts <= set(VOCABULARY)


@pytest.mark.parametrize("name", ROLES)
@pytest.mark.parametrize("rule", ["oracle", "random"])
async def test_what_rules_write_is_read_again_as_the_same_output(name: str, rule: str) -> None:
    graph, role_name = ROLES[name]
    (role,) = [extend_role(one) for one in graph.roles]
    written = role.find_format("compact-report")
    assert written is not None
    assert role.name == role_name
    done = await written_trial(name, rule, hops=4, turns=9)
    outputs = [s for s in done.ctx.steps if s.kind is StepKind.ROLE_CALL]
    assert len(outputs) == len(done.ctx.role_calls)
