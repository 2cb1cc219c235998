"""Rounds of IterResearch with several tool calls: how they are written, made and shown."""

import json
from typing import Any

import pytest

from offing.core.step import StepKind
from offing.models.structured_output import parse_output
from offing.sdk import InvalidOutput, SpanKind
from offing_graphs.iterresearch import graph, prompts
from offing_graphs.iterresearch.prompts import TEXT_FORMAT
from offing_graphs.iterresearch.roles import RESEARCHERS_BY_PHASE
from offing_graphs.iterresearch.schemas import Round, ToolObservation, TurnPhase, Workspace, build_output
from offing_graphs.shared.call_batches import Call
from offing_graphs.shared.schemas import ToolCard
from tests.graphs.in_memory_context import carry_out
from tests.graphs.iterresearch.test_graph import QUESTION, answering, run
from tests.graphs.iterresearch.test_prompts import passage, prompt_text, workspace

CARD = ToolCard(name="search_library", description="Finds.", parameters={"properties": {"query": {"type": "string"}}})
CALLS = tuple(Call(tool="search_library", args={"query": query}) for query in ("tide gauge", "ferry", "berth"))
REPORT = "<report>So [E1].</report>"


def block(call: Call | list[Call]) -> str:
    calls = call if isinstance(call, list) else [call]
    values: list[Any] = [{"name": one.tool, "arguments": one.args} for one in calls]
    return f"<tool_call>{json.dumps(values if isinstance(call, list) else values[0])}</tool_call>"


def read(text: str, phase: TurnPhase = TurnPhase.MIDDLE) -> Round | InvalidOutput:
    return TEXT_FORMAT.parse(text, workspace(phase, tools=(CARD,)))


LISTED = '<tool_call>{"name": "search_library", "arguments": {"query": ["tide gauge", "ferry", "berth"]}}</tool_call>'


@pytest.mark.parametrize("text", ["\n".join(map(block, CALLS)), block(list(CALLS)), LISTED])
def test_several_calls_are_read_from_blocks_a_list_of_calls_and_a_list_of_queries(text: str) -> None:
    output = read(f"{REPORT}\n{text}")
    assert isinstance(output, Round)
    assert output.actions == CALLS
    written = TEXT_FORMAT.write(output, workspace()) if TEXT_FORMAT.write else ""
    assert read(written) == output


def test_a_list_of_too_many_queries_is_rejected_with_the_limit() -> None:
    calls = [Call(tool="search_library", args={"query": str(n)}) for n in range(6)]
    output = read(f"{REPORT}\n{block(calls)}")
    assert isinstance(output, InvalidOutput)
    assert "At most 5 tool calls" in output.problem


def test_every_call_is_a_span_of_its_own() -> None:
    text = f"{REPORT}\n" + "\n".join(map(block, CALLS))
    spans = TEXT_FORMAT.spans(text)
    assert [span.kind for span in spans] == [SpanKind.REPORT, *[SpanKind.ACTION] * 3]
    assert text[spans[2].start : spans[2].end] == block(CALLS[1])


def test_words_around_several_calls_are_left_out() -> None:
    assert TEXT_FORMAT.repair
    text = f"{REPORT}\nFirst this:\n{block(CALLS[0])}\nand then\n{block(CALLS[1])}"
    repaired = TEXT_FORMAT.repair(text, workspace())
    assert repaired.repairs == ("prose_around",)
    output = read(repaired.text)
    assert isinstance(output, Round)
    assert output.actions == CALLS[:2]


def test_calls_in_json_are_read_and_a_list_of_queries_is_split() -> None:
    first, *more = ({"tool": call.tool, "args": call.args} for call in CALLS)
    output = parse_output(json.dumps({"report": "So.", "action": first, "more_actions": more}), Round)
    assert isinstance(output, Round)
    assert output.actions == CALLS
    listed = build_output(
        TurnPhase.MIDDLE, report="So.", action=Call(tool="search_library", args={"query": ["ferry", "berth"]})
    )
    repair = RESEARCHERS_BY_PHASE[TurnPhase.MIDDLE].repair_output
    assert repair
    repaired, names = repair(listed, workspace(tools=(CARD,)))
    assert (repaired.actions, names) == (CALLS[1:], ("query_list",))


def test_a_round_with_one_call_is_recorded_as_before() -> None:
    output = build_output(TurnPhase.MIDDLE, report="So.", action=CALLS[0])
    assert "more_actions" not in output.model_dump(mode="json")
    inputs = workspace().model_dump(mode="json")
    assert not {"more_actions", "more_results"} & set(inputs)


def batching(inputs: Workspace) -> Round:
    if inputs.phase is TurnPhase.FIRST:
        calls = (*CALLS[:1], Call(tool="nothing", args={}), *CALLS[1:])
        return build_output(inputs.phase, report="Nothing yet.", action=calls[0], more_actions=calls[1:])
    return answering(inputs)


async def test_several_calls_take_one_round_and_a_failing_one_loses_no_other() -> None:
    ctx = run(QUESTION, engines={"researcher": batching})
    state = await carry_out(ctx, graph)
    inputs = ctx.role_inputs[1][1]
    assert ctx.turns == 2
    assert [s.payload["args"].get("query") for s in ctx.steps if s.kind is StepKind.TOOL_RESULT] == [
        "tide gauge",
        None,
        "ferry",
        "berth",
    ]
    assert [result.status for result in inputs.results] == ["ok", "invalid", "ok", "ok"]
    assert inputs.results[0].passages[0].id == "E1"
    text = prompt_text(ctx.prompts[1][1])
    assert [f"Call {n}: " in text for n in range(1, 6)] == [True, True, True, True, False]
    assert text.index("Call 2: nothing") < text.index("There is no tool nothing") < text.index("Call 3: ")
    seqs: list[int] = state["more_tools"]
    assert [ctx.steps[seq - 1].payload["args"].get("query") for seq in seqs] == [None, "ferry", "berth"]
    assert ctx.report.answer


def test_a_passage_that_two_calls_bring_back_is_shown_once() -> None:
    observations = (
        ToolObservation(status="ok", passages=(passage("One.", 1), passage("Two.", 2))),
        ToolObservation(status="ok", passages=(passage("Two.", 2), passage("Three.", 3))),
        ToolObservation(status="ok", passages=(passage("One.", 1),)),
    )
    inputs = workspace(action=CALLS[0], more_actions=CALLS[1:], result=observations[0], more_results=observations[1:])
    text = prompt_text(prompts.render_researcher_prompt(inputs))
    assert [text.count(f"Passage E{n} ") for n in (1, 2, 3)] == [1, 1, 1]
    assert "It brought back E2 again, as the call above did." in text
    assert "It brought back E1 again, as the call above did." in text


def test_calls_that_were_not_made_are_named() -> None:
    inputs = workspace(action=CALLS[0], more_actions=CALLS[1:], result=None)
    assert prompt_text(prompts.render_researcher_prompt(inputs)).count("It was not made.") == 3
