"""The workspace of IterResearch: bounded whatever the run's length, blind to older rounds, strict about each round."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offing.core.run import Budget
from offing.core.step import StepKind
from offing.models.structured_output import parse_output
from offing.sdk import InvalidOutput, Message, ReportDraft, RuleContext, SpanKind, wrap_untrusted
from offing.tools.environment import extend_role
from offing_graphs.iterresearch import extractive, graph, nodes, prompts
from offing_graphs.iterresearch.prompts import TEXT_FORMAT
from offing_graphs.iterresearch.schemas import (
    MAX_REPORT_TOKENS,
    OUTPUTS_BY_PHASE,
    Call,
    Round,
    ToolObservation,
    TurnPhase,
    Workspace,
    build_output,
)
from offing_graphs.shared.schemas import MemoryRecord, RetrievedPassage, ToolCard
from offing_graphs.shared.token_estimate import BYTES_PER_TOKEN, estimate_tokens
from offing_world.compact_notation import VOCABULARY
from offing_world.iterresearch.compact_format import COMPACT_FORMAT
from tests.graphs.agentflow.test_prompts import HOSTILE, outside_of_data
from tests.graphs.corpus import harbour
from tests.graphs.in_memory_context import SPECS, InMemoryContext, carry_out
from tests.graphs.world_runs import held_out, trials

CARD = ToolCard(name="search_library", description="Finds.", parameters={"type": "object"})
FULL = "é" * int(MAX_REPORT_TOKENS * BYTES_PER_TOKEN / 2)
"""A report of just as many tokens as one may have."""


def passage(text: str, number: int = 1, title: str = "T") -> RetrievedPassage:
    return RetrievedPassage(id=f"E{number}", source="s", text_id="a", start=0, end=len(text), title=title, text=text)


def workspace(phase: TurnPhase = TurnPhase.MIDDLE, **more: Any) -> Workspace:
    middle: dict[str, Any] = {
        "report": "So far.",
        "action": Call(tool="search_library", args={"query": "x"}),
        "result": ToolObservation(status="ok", passages=(passage("A passage."),)),
    }
    always: dict[str, Any] = {"question": "What?", "phase": phase, "tools": (CARD,)}
    return Workspace(**{**always, **({} if phase is TurnPhase.FIRST else middle), **more})


def prompt_text(messages: tuple[Message, ...]) -> str:
    return "\n\n".join(m.text for m in messages)


def prompt(**more: Any) -> str:
    return prompt_text(prompts.render_researcher_prompt(workspace(**more)))


# How long it is.


async def test_prompts_steps_and_state_stay_as_they_are_over_three_hundred_rounds() -> None:
    ctx = InMemoryContext(
        harbour(), "What does a berth cost?", Budget(max_turns=300), specs=SPECS, rules={"researcher": "steady"}
    )
    state = await carry_out(ctx, graph)
    assert ctx.turns == 300
    sizes = [len(prompt_text(messages).encode()) for _, messages in ctx.prompts][1:-1]
    assert max(sizes) <= 1.1 * min(sizes)
    stored = [len(json.dumps([s.payload for s in ctx.steps if s.turn == n], default=str)) for n in range(2, 300)]
    assert max(stored) <= 1.1 * min(stored)
    assert len(json.dumps(state)) < 200
    assert len(ctx.steps) == 3 * 300


@pytest.mark.parametrize("specs", [SPECS, SPECS[:1]])
async def test_a_steady_researcher_continues_with_any_tool(specs: Any) -> None:
    ctx = InMemoryContext(
        harbour(), "What does a berth cost?", Budget(max_turns=40), specs=specs, rules={"researcher": "steady"}
    )
    await carry_out(ctx, graph)
    assert ctx.turns == 40
    assert all(s.ok for s in ctx.steps if s.kind is StepKind.TOOL_RESULT)


async def test_a_steady_researcher_continues_in_a_world() -> None:
    (done,) = await trials(graph, "steady", held_out(200)[:1], turns=40)
    assert done.ctx.turns == 40
    assert all(s.ok for s in done.ctx.steps if s.kind is StepKind.TOOL_RESULT)


def test_a_report_is_shown_whole_and_a_result_is_cut_where_the_cut_is_said() -> None:
    long = "word " * 100_000
    for result in (
        ToolObservation(status="ok", passages=(passage(long),)),
        ToolObservation(status="ok", value=long),
        ToolObservation(status="failed", message=long),
    ):
        text = prompt(report=FULL, result=result)
        assert f"Your report so far:\n{wrap_untrusted(FULL)}" in text
        assert "of 500,000 characters are not shown" in outside_of_data(text)
        assert estimate_tokens(text) + prompts.MAX_ANSWER_TOKENS < prompts.MAX_WORKSPACE_TOKENS


def test_where_the_context_is_full_the_result_is_shortened_and_not_the_report() -> None:
    crowd = tuple(ToolCard(name=f"t{n}", description="d" * 1_000, parameters={}) for n in range(85))
    result = ToolObservation(status="ok", passages=(passage("word " * 10_000),))
    roomy, tight = prompt(report=FULL, result=result), prompt(report=FULL, result=result, tools=crowd)
    assert tight.count("word ") < roomy.count("word ") / 2
    assert FULL in tight
    assert estimate_tokens(tight) + prompts.MAX_ANSWER_TOKENS <= prompts.MAX_WORKSPACE_TOKENS


def test_passages_that_do_not_fit_are_named() -> None:
    pieces = tuple(passage("word " * 2_000, n) for n in range(1, 9))
    text = outside_of_data(prompt(result=ToolObservation(status="ok", passages=pieces)))
    assert "Passage E1 " in text
    assert "characters are not shown" in text
    assert "no room for" in text
    assert all(f"E{n}" in text for n in range(1, 9))


@pytest.mark.parametrize(("answer", "expected"), [(None, 6_000), (16_384, 6_000), (4_096, 2_048), (1_001, 500)])
def test_a_report_is_asked_for_that_fits_into_an_answer_beside_the_rest(answer: int | None, expected: int) -> None:
    for context_tokens in (None, 200_000):
        messages = prompts.render_researcher_prompt(workspace(answer_tokens=answer, context_tokens=context_tokens))
        assert f"It may have {expected:,} tokens at most" in messages[0].text
        assert answer is None or "6,000" not in prompt_text(messages) or answer > 6_000
    small = prompts.render_researcher_prompt(workspace(answer_tokens=answer, context_tokens=8_192))
    assert f"It may have {min(expected, 1_146):,} tokens at most" in small[0].text


def test_no_schema_names_a_length_that_the_model_may_not_be_able_to_write() -> None:
    assert all("6,000" not in json.dumps(output.model_json_schema()) for output in OUTPUTS_BY_PHASE.values())


async def test_the_limit_of_an_answer_reaches_the_prompt_and_a_longer_report_is_still_carried_over_whole() -> None:
    report = "word " * 1_000

    def answer(inputs: Workspace) -> Round:
        outcome = {"answer": DRAFT} if inputs.phase is TurnPhase.FINAL else {"action": CALL}
        return build_output(inputs.phase, report=report, **outcome)

    ctx = InMemoryContext(harbour(), "What?", Budget(max_turns=2), engines={"researcher": answer}, answer_tokens=500)
    await carry_out(ctx, graph)
    first, last = [messages for _, messages in ctx.prompts]
    assert "It may have 250 tokens at most" in first[0].text
    assert wrap_untrusted(report) in last[1].text


# What it depends on.


async def test_each_prompt_says_in_its_last_part_which_round_it_is_of_how_many() -> None:
    ctx = InMemoryContext(
        harbour(), "What does a berth cost?", Budget(max_turns=3), specs=SPECS, rules={"researcher": "steady"}
    )
    await carry_out(ctx, graph)
    lasts = [messages[-1].parts[-1] for _, messages in ctx.prompts]
    assert [f"This is round {n} of 3." in last for n, last in enumerate(lasts, 1)] == [True] * 3
    assert [prompts.LAST_TURN_PROMPT in last for last in lasts] == [True, True, False]
    assert "This is the last round: no tool can be called any more." in lasts[-1]
    assert "round 1 of" not in "".join(part for m in ctx.prompts[0][1] for part in m.parts[:-1])


def test_prompts_of_two_rounds_differ_only_in_their_last_part() -> None:
    one, two = (prompts.render_researcher_prompt(workspace(turn=n, max_turns=9)) for n in (2, 3))
    assert one[0] == two[0]
    assert one[1].parts[:-1] == two[1].parts[:-1]
    assert one[1].parts[-1] != two[1].parts[-1]


def test_a_workspace_without_a_number_does_not_say_one() -> None:
    assert "This is round" not in prompt()
    assert not {"turn", "max_turns", "answer_tokens"} & set(workspace().model_dump())


async def test_nothing_older_than_the_last_round_changes_a_byte_of_the_prompt() -> None:
    ctx = InMemoryContext(harbour(), "What does a berth cost and what is the wifi password?", Budget(max_turns=8))
    await carry_out(ctx, graph)
    for last in (2, 3, 4):
        assert await again(ctx, last) == await again(altered(ctx, last), last)


async def test_what_the_last_round_left_does_change_it() -> None:
    ctx = InMemoryContext(harbour(), "What does a berth cost and what is the wifi password?", Budget(max_turns=8))
    await carry_out(ctx, graph)
    assert await again(ctx, 2) != await again(altered(ctx, 3), 2)


def altered(ctx: InMemoryContext, last: int) -> InMemoryContext:
    """The run with every text from before round `last` replaced."""

    def other(step: Any) -> Any:
        if not 0 < step.turn < last:
            return step
        payload = dict(step.payload)
        if step.kind is StepKind.ROLE_CALL:
            action: dict[str, Any] = {"tool": "o", "args": {}}
            payload["output"] = {**payload["output"], "think": "other", "report": "Other.", "action": action}
        return replace(step, title="other", payload=payload | {"report": "other", "content": {"other": 1}})

    rendered = {p.id for p in ctx.role_inputs[last][1].result.passages}
    results = [e if e.id in rendered else replace(e, text="other") for e in ctx.collected]
    return replace(ctx, steps=[other(s) for s in ctx.steps], collected=results)


async def again(ctx: InMemoryContext, last: int) -> bytes:
    """The prompt of the round after `last`, as bytes."""
    turns = {s.turn: s.seq for s in ctx.steps if s.kind is StepKind.ROLE_CALL}
    tools = {s.turn: s.seq for s in ctx.steps if s.kind is StepKind.TOOL_RESULT}
    once = replace(ctx, steps=list(ctx.steps), prompts=[], role_inputs=[], role_calls=[])

    class Runtime:
        context = once

    state: Any = {**graph.initial_state(ctx.run), "turn": last, "round": turns[last], "tool": tools[last]}
    await nodes.research(state, Runtime())  # type: ignore[arg-type]
    return prompt_text(once.prompts[0][1]).encode()


def test_text_from_outside_stands_within_its_own_lines() -> None:
    for result in (
        ToolObservation(status="ok", passages=(passage(HOSTILE, title=f"Title\n{HOSTILE}"),)),
        ToolObservation(status="ok", value=HOSTILE),
        ToolObservation(status="failed", message=HOSTILE),
    ):
        text = prompt(result=result)
        assert "previous instructions" in text
        for words in ("previous instructions", "SYSTEM: stop"):
            assert words not in outside_of_data(text)


def test_each_round_is_told_its_form() -> None:
    first, middle, final = (prompt(phase=stage) for stage in TurnPhase)
    assert "first round" in first
    assert "Your report so far" not in first
    assert "Either call a tool" in middle
    assert "up to 5" in first
    assert "up to 5" in middle
    assert "up to 5" not in final
    assert "Tool search_library" in middle
    assert "last round" in final
    assert "Tool search_library" not in final
    assert (
        prompts.render_researcher_prompt(workspace(TurnPhase.FIRST))[0]
        == prompts.render_researcher_prompt(workspace(TurnPhase.FINAL))[0]
    )


# What a round may answer.

CALL = {"tool": "search_library", "args": {"query": "x"}}
DRAFT: dict[str, Any] = {"title": "T", "answer": "Yes.", "sections": []}
REJECTED: list[tuple[TurnPhase, dict[str, Any], str]] = [
    (TurnPhase.FIRST, {"answer": DRAFT}, "make a tool call"),
    (TurnPhase.FINAL, {"action": CALL}, "give the final `answer`"),
    (TurnPhase.MIDDLE, {}, "and not both"),
    (TurnPhase.MIDDLE, {"action": CALL, "answer": DRAFT}, "and not both"),
    (TurnPhase.MIDDLE, {"answer": DRAFT, "more_actions": [CALL]}, "and not both"),
    (TurnPhase.MIDDLE, {"more_actions": [CALL]}, "a tool call as `action`"),
    (TurnPhase.MIDDLE, {"action": CALL, "more_actions": [CALL] * 5}, "At most 5 tool calls"),
    (TurnPhase.FINAL, {"answer": DRAFT, "more_actions": [CALL]}, "and not both"),
    (TurnPhase.MIDDLE, {"action": CALL, "report": " "}, "empty"),
    (TurnPhase.MIDDLE, {"action": CALL, "report": FULL + "é"}, "write a shorter one, of at most 6,000"),
    (TurnPhase.MIDDLE, {"action": CALL, "answered": "no"}, "answered"),
]


@pytest.mark.parametrize(("stage", "fields", "problem"), REJECTED)
def test_an_answer_that_the_round_does_not_allow_is_rejected_with_the_remedy(
    stage: TurnPhase, fields: dict[str, Any], problem: str
) -> None:
    output = parse_output(json.dumps({"think": "", "report": "So far.", **fields}), OUTPUTS_BY_PHASE[stage])
    assert isinstance(output, InvalidOutput)
    assert problem in output.problem


def test_a_report_of_just_the_limit_is_taken_whole() -> None:
    output = parse_output(json.dumps({"report": FULL, "action": CALL}), Round)
    assert isinstance(output, Round)
    assert output.report == FULL


def test_the_schema_of_each_round_asks_for_what_it_allows() -> None:
    first, middle, final = (OUTPUTS_BY_PHASE[stage].model_json_schema() for stage in TurnPhase)
    assert set(first["properties"]) == {"think", "report", "action", "more_actions"}
    assert set(first["required"]) == {"report", "action"}
    assert {"action", "answer"} <= set(middle["properties"])
    assert set(final["properties"]) == {"think", "report", "answer", "answered"}
    assert set(final["required"]) == {"report", "answer"}
    assert final["properties"]["answer"]["$ref"].removeprefix("#/$defs/") in final["$defs"]


# In plain text.

THINK, REPORT = "<think>Hm.</think>", "<report>So [E1].</report>"
TEXT_CALL = '<tool_call>{"name": "search_library", "arguments": {"query": "x"}}</tool_call>'


def plain(text: str, stage: TurnPhase = TurnPhase.MIDDLE) -> Round | InvalidOutput:
    return TEXT_FORMAT.parse(text, workspace(stage))


def test_tagged_blocks_are_read_as_a_round() -> None:
    result = plain(f"{THINK}\n{REPORT}\n{TEXT_CALL}\n")
    assert result == Round(think="Hm.", report="So [E1].", action=Call(tool="search_library", args={"query": "x"}))
    result = plain(f'{REPORT}<answer>Yes [E1].\n- It is so. [E1: "A passage."]</answer>', TurnPhase.FINAL)
    assert isinstance(result, Round)
    assert result.answer is not None
    assert result.answer.answer == "Yes [E1]."
    assert result.answer.sections[0].sentences[0].citations[0].quote == "A passage."
    result = plain(f"{REPORT}<no_answer>Nobody says.</no_answer>")
    assert isinstance(result, Round)
    assert not result.answered


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I think so.",
        REPORT,
        TEXT_CALL,
        f"{REPORT}{TEXT_CALL}<answer>Yes.</answer>",
        f"{REPORT}{TEXT_CALL}{REPORT}",
        f"{REPORT}{TEXT_CALL}and{TEXT_CALL}",
        f"{REPORT}<tool_call>[]</tool_call>",
        f"{REPORT}{''.join(TEXT_CALL.replace('x', str(n)) for n in range(6))}",
        f"{TEXT_CALL}{REPORT}",
        f"{REPORT}{TEXT_CALL} and so on",
        f"{REPORT}<tool_call>search_library</tool_call>",
        f'{REPORT}<tool_call>{{"name": "s"}}</tool_call>',
        f'{REPORT}<tool_call>{{"name": "s", "arguments": {{"a": 1, "a": 2}}}}</tool_call>',
        f'{REPORT}<tool_call>{{"name": "s", "arguments": {{"a": NaN}}}}</tool_call>',
        f'{REPORT}<tool_call>{{"name": "s", "arguments": {{"a": "\\u0000"}}}}</tool_call>',
        f'{REPORT}<tool_call>{{"name": "s", "arguments": {{"a": "\\ud800"}}}}</tool_call>',
        f"{REPORT}<answer> </answer>",
        f"<report></report>{TEXT_CALL}",
        f"<report>\0</report>{TEXT_CALL}",
        f"<report>{FULL}é</report>{TEXT_CALL}",
    ],
)
def test_other_texts_are_rejected(text: str) -> None:
    assert isinstance(plain(text), InvalidOutput)


def test_plain_text_is_held_to_the_round_as_well() -> None:
    assert isinstance(plain(REPORT + TEXT_CALL, TurnPhase.FINAL), InvalidOutput)
    assert isinstance(plain(f"{REPORT}<answer>Yes.</answer>", TurnPhase.FIRST), InvalidOutput)


def test_spans_are_the_blocks_that_were_parsed() -> None:
    text = f"{THINK}\n{REPORT}\n{TEXT_CALL}\n"
    spans = TEXT_FORMAT.spans(text)
    assert [(s.kind, text[s.start : s.end]) for s in spans] == [
        (SpanKind.THINK, THINK),
        (SpanKind.REPORT, REPORT),
        (SpanKind.ACTION, TEXT_CALL),
    ]
    answer = TEXT_FORMAT.spans(f"{REPORT}<answer>Yes.</answer>")
    assert [s.kind for s in answer] == [SpanKind.REPORT, SpanKind.ANSWER]


@given(st.text(max_size=200))
def test_no_text_breaks_the_parser_or_its_spans(text: str) -> None:
    call = (f"<report>{text}</report>{TEXT_CALL}", *(f"{REPORT}<{t}>{text}</{t}>" for t in ("tool_call", "answer")))
    for wrapped in (text, *call):
        plain(wrapped)
        ends = [0, *(edge for s in TEXT_FORMAT.spans(wrapped) for edge in (s.start, s.end)), len(wrapped)]
        assert ends == sorted(ends)


@pytest.mark.parametrize("prompt_format", ["text", "compact"])
@pytest.mark.parametrize("rule", ["oracle", "random"])
async def test_what_rules_write_in_a_form_is_read_back_as_the_same_answer(prompt_format: str, rule: str) -> None:
    for done in await trials(graph, rule, held_out(200)[:30], prompt_formats={"researcher": prompt_format}):
        role = extend_role(graph.roles[0])
        used = role.find_format(prompt_format)
        assert used is not None
        assert used.write is not None
        for (_, inputs), call in zip(done.ctx.role_inputs, done.ctx.role_calls, strict=True):
            output = used.parse(call.text, inputs)
            assert not isinstance(output, InvalidOutput)
            assert used.write(output, inputs) == call.text
            assert output == role.rules[rule](inputs, RuleContext(done.ctx.seed, call.turn))


async def test_a_small_planner_reads_and_writes_words_of_its_vocabulary() -> None:
    for done in await trials(graph, "random", held_out(200)[:30], prompt_formats={"researcher": "compact"}):
        for call in done.ctx.role_calls:
            words = " ".join([*(m.text for m in call.messages), call.text]).split()
            assert set(words) <= set(VOCABULARY)
            assert len(words) < 256


@pytest.mark.parametrize(
    ("stage", "text"),
    [
        (TurnPhase.FIRST, "answer"),
        (TurnPhase.FINAL, "t0 r0 e0"),
        (TurnPhase.MIDDLE, "t0 r0"),
        (TurnPhase.MIDDLE, "t0 r0 e9"),
        (TurnPhase.MIDDLE, "answer answer"),
        (TurnPhase.MIDDLE, ""),
    ],
)
def test_a_small_planner_is_held_to_the_round(stage: TurnPhase, text: str) -> None:
    question = held_out(200)[0].question
    inputs = Workspace(question=question, phase=stage)
    assert isinstance(COMPACT_FORMAT.parse(text, inputs), InvalidOutput)
    allowed = "answer" if stage is TurnPhase.FINAL else "t0 r0 e0"
    assert isinstance(COMPACT_FORMAT.parse(allowed, inputs), Round)
    assert ("stop" in prompt_text(COMPACT_FORMAT.render(inputs)).split()) == (stage is TurnPhase.FINAL)


# The model-free researcher's own report.

TEXT = st.text(min_size=1, max_size=60).map(lambda t: " ".join(t.split())).filter(bool)
RECORDS = st.lists(
    st.builds(
        MemoryRecord,
        turn=st.just(1),
        sub_goal=TEXT,
        tool=st.sampled_from(["search_library", "calculate"]),
        args=TEXT.map(lambda q: {"query": q}),
        status=st.sampled_from(["ok", "failed"]),
        finding=st.just(""),
        value=st.one_of(st.just(""), TEXT),
        evidence=st.lists(st.integers(1, 999).map(lambda n: f"E{n}"), max_size=12).map(tuple),
        fresh=st.integers(0, 12),
    ),
    max_size=8,
)
EMPTY = ReportDraft(title="t", sections=())


@settings(max_examples=200)
@given(RECORDS, st.lists(TEXT, max_size=3, unique=True))
def test_steps_in_a_report_are_read_back_as_they_were(records: list[MemoryRecord], parts: list[str]) -> None:
    numbered = [r.model_copy(update={"turn": n}) for n, r in enumerate(records, 1)]
    open_ = MemoryRecord(
        turn=0, sub_goal=f"Find: {parts[0] if parts else 'x'}", tool="t", args={}, status="", finding=""
    )
    taken, then = extractive.parse_report(extractive.render_report(EMPTY, numbered, open_, parts), parts)
    assert list(taken) == numbered
    assert then == open_


def test_a_report_that_would_be_too_long_leaves_out_what_can_be_made_again_and_says_so() -> None:
    long = [
        MemoryRecord(turn=n, sub_goal="g" * 300, tool="search_library", args={}, status="ok", finding="")
        for n in range(1, 200)
    ]
    report = extractive.render_report(EMPTY, long, None, ())
    assert estimate_tokens(report) <= MAX_REPORT_TOKENS
    assert f"({199 - len(extractive.parse_report(report, ())[0])} earlier steps are left out.)" in report
    assert extractive.parse_report(report, ())[0][-1] == long[-1]
    assert build_output(TurnPhase.MIDDLE, report=report, action=Call(tool="t", args={}))
