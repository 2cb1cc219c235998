"""Actions of memact with several tool calls: how they are written, made, shown, pruned and discarded."""

import json
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from offing.core.run import Budget, StopReason
from offing.core.step import StepKind
from offing.models.structured_output import parse_output
from offing.sdk import InvalidOutput, SpanKind
from offing_graphs.memact import graph
from offing_graphs.memact.context import EDITING_CONFIG, MIN_SUMMARY_TOKENS, SUMMARIZING_CONFIG
from offing_graphs.memact.graph import configure_graph
from offing_graphs.memact.prompts import TEXT_FORMAT
from offing_graphs.memact.roles import AGENT
from offing_graphs.memact.schemas import Act, AgentInput
from offing_graphs.shared.call_batches import Call
from tests.graphs.in_memory_context import InMemoryContext, carry_out
from tests.graphs.memact.builders import DONE, SEARCH, acts, prune, run, write

MORE = (Call(tool="search_library", args={"query": "ferry tickets"}), Call(tool="nothing", args={}))
BATCH = SEARCH.model_copy(update={"more_calls": MORE})
BLOCKS = (
    '<action>search_library {"query": "tide gauge calibrated"}</action>\n'
    '<action>search_library {"query": "ferry tickets"}</action>\n'
    "<action>nothing {}</action>"
)


async def inputs_of(*actions: Act) -> tuple[InMemoryContext, AgentInput]:
    """The run of an agent that does these, and what it was given last."""
    ctx = run(engines=acts(*actions))
    await carry_out(ctx, graph)
    return ctx, ctx.role_inputs[-1][1]


def read(text: str, inputs: AgentInput) -> Act | InvalidOutput:
    return TEXT_FORMAT.parse(text, inputs)


async def test_calls_of_one_action_are_results_of_their_own_and_one_record() -> None:
    ctx, inputs = await inputs_of(BATCH, DONE)
    (record,) = inputs.records
    results = [step for step in ctx.steps if step.kind is StepKind.TOOL_RESULT]
    assert [(step.turn, step.ok) for step in results] == [(1, True), (1, True), (1, False)]
    assert (record.id, record.ok, len(record.findings)) == ("r1", False, 3)
    assert [finding.status for finding in record.findings] == ["ok", "ok", "invalid"]
    message = ctx.prompts[-1][1][3].text
    assert message.startswith("r1, 3 calls at once:\nCall 1, search_library: ok\n")
    assert (
        message.index("Call 1, ") < message.index("Call 2, search_library: ok") < message.index("Call 3, nothing: inv")
    )
    assert len({e.id for e in inputs.evidence}) == len(ctx.collected)
    assert ctx.report.answer


async def test_a_record_of_several_calls_is_pruned_as_a_whole() -> None:
    ctx, inputs = await inputs_of(BATCH, SEARCH, prune("r1", note="E1 tells it."), DONE)
    (edit,) = [step for step in ctx.steps if step.kind is StepKind.MEMORY]
    assert edit.payload["deleted"] == ["r1"]
    assert edit.payload["remaining"] == ["r2"]
    assert [record.id for record in inputs.records] == ["r2", "r3"]


async def test_several_blocks_are_read_and_kept_as_written() -> None:
    _, inputs = await inputs_of(DONE)
    output = read(BLOCKS, inputs)
    assert isinstance(output, Act)
    assert output == BATCH
    assert TEXT_FORMAT.write
    assert TEXT_FORMAT.write(output, inputs) == BLOCKS
    assert [span.kind for span in TEXT_FORMAT.spans(BLOCKS)] == [SpanKind.ACTION] * 3
    listed = '<action>search_library {"query": ["a", "b"]}</action>'
    several = read(listed, inputs)
    assert isinstance(several, Act)
    assert [call.args["query"] for call in several.calls] == ["a", "b"]
    assert TEXT_FORMAT.write(several, inputs) == listed


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (BLOCKS + "<answer>Yes.</answer>", "exactly one block"),
        ('<memory>write {"note": "a"}</memory><memory>write {"note": "b"}</memory>', "exactly one block"),
        ('<action>a {}</action><memory>write {"note": "a"}</memory>', "exactly one block"),
        ('<action>a {}</action><action>write {"note": "a"}</action>', "belongs between <memory>"),
        ("".join(f"<action>a{n} {{}}</action>" for n in range(6)), "At most 5 tool calls"),
    ],
)
async def test_edits_and_answers_stand_alone_and_calls_are_limited(text: str, problem: str) -> None:
    _, inputs = await inputs_of(DONE)
    output = read(text, inputs)
    assert isinstance(output, InvalidOutput)
    assert problem in output.problem


def test_in_json_an_edit_stands_alone_as_well() -> None:
    edit = write("a")
    rejected: list[dict[str, Any]] = [
        {**BATCH.model_dump(), "more_calls": [{"tool": "write", "args": {"note": "a"}}]},
        {**edit.model_dump(), "more_calls": [{"tool": "search_library", "args": {}}]},
        {**BATCH.model_dump(), "tool": ""},
        {**DONE.model_dump(), "more_calls": [{"tool": "search_library", "args": {}}]},
        {**BATCH.model_dump(), "more_calls": [{"tool": "a", "args": {}}] * 5},
    ]
    for fields in rejected:
        with pytest.raises(ValidationError):
            Act.model_validate(fields)
    assert parse_output(json.dumps(BATCH.model_dump(mode="json", exclude_defaults=True)), Act) == BATCH
    assert "more_calls" not in SEARCH.model_dump(mode="json")


async def test_a_list_of_queries_in_json_is_split() -> None:
    _, inputs = await inputs_of(DONE)
    assert AGENT.repair_output
    listed = Act(tool="search_library", args={"query": ["a", "b"], "limit": 2})
    output, names = AGENT.repair_output(listed, inputs)
    assert [call.args for call in output.calls] == [{"query": "a", "limit": 2}, {"query": "b", "limit": 2}]
    assert names == ("query_list",)


async def test_at_the_turn_limit_after_several_calls_the_agent_answers_from_them() -> None:
    def agent(inputs: AgentInput) -> Act:
        return DONE if inputs.request == "answer" else BATCH

    ctx = run(budget=Budget(max_turns=2), engines={"agent": agent})
    await carry_out(ctx, graph)
    assert ctx.turns == 2
    assert len(ctx.role_inputs[-1][1].records) == 2
    assert ctx.report.stop_reason == StopReason.TURN_LIMIT
    assert ctx.report.answer
    assert ctx.report.answer.text == "Twice a year."


async def test_when_the_context_is_full_after_several_calls_the_agent_answers_from_what_fits() -> None:
    small = configure_graph("small", "", "", replace(EDITING_CONFIG, max_context_tokens=3_000))

    def agent(inputs: AgentInput) -> Act:
        return DONE if inputs.request == "answer" else BATCH

    ctx = run(engines={"agent": agent}, budget=Budget(max_turns=50))
    await carry_out(ctx, small)
    last = ctx.role_inputs[-1][1]
    assert last.omitted_records
    assert ctx.report.stop_reason == StopReason.CONTEXT_LIMIT
    assert ctx.report.answer
    assert ctx.report.answer.text == "Twice a year."


async def test_a_summarizing_agent_discards_all_results_of_the_last_action() -> None:
    config = replace(
        SUMMARIZING_CONFIG, max_context_tokens=MIN_SUMMARY_TOKENS + 2_200, summarize_at_tokens=2_200, max_summaries=1
    )
    small = configure_graph("small", "", "", config)

    def agent(inputs: AgentInput) -> Act:
        if inputs.request == "summary":
            return Act(summary="Twice a year [E1].")
        return DONE if inputs.summary else BATCH

    ctx = run(engines={"agent": agent})
    await carry_out(ctx, small)
    (discard,) = [step for step in ctx.steps if step.kind is StepKind.MEMORY]
    seqs = [step.seq for step in ctx.steps if step.kind is StepKind.TOOL_RESULT][-3:]
    assert [discard.payload["observation"], *discard.payload["more_observations"]] == seqs
    assert ctx.report.answer
