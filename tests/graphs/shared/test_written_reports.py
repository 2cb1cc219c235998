"""The prompt format `compact-report`: agents of a world write the answer of their report and what states it."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offing.core.errors import InvalidInput
from offing.sdk import Graph, InvalidOutput, PromptFormat, ReportDraft, SpanKind
from offing_graphs.hiper import graph as hiper
from offing_graphs.hiper import schemas as hiper_schemas
from offing_graphs.iterresearch import graph as iterresearch
from offing_graphs.iterresearch.schemas import Call, Round, ToolObservation, TurnPhase, Workspace
from offing_graphs.memact import graph as memact
from offing_graphs.memact import schemas as memact_schemas
from offing_graphs.memact import supo
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

    def record(n: int, act: memact_schemas.Act, value: dict[str, Any] | None) -> memact_schemas.ContextRecord:
        finding = (
            None
            if value is None
            else memact_schemas.ToolFinding(tool=act.tool, args=act.args, status="ok", content=value)
        )
        return memact_schemas.ContextRecord(
            id=f"r{n}",
            turn=n,
            seq=n,
            action=act,
            observation="",
            in_segment=True,
            ok=act.tool != "oak",
            finding=finding,
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


async def test_a_written_answer_is_the_runs_answer_also_where_it_is_wrong() -> None:
    graph, role = ROLES["hiper"]
    task = next(one for one in held_out(200) if one.hops == 2)

    def answer_at_once(inputs: hiper_schemas.AgentInput) -> hiper_schemas.Turn:
        turn = hiper_format.parse_report_turn("SWITCH r0 answer e0", inputs)
        assert not isinstance(turn, InvalidOutput)
        return turn

    done = await trial(graph, task, "oracle", prompt_formats={role: "compact-report"}, engines={role: answer_at_once})
    assert done.ctx.report.answer is not None
    assert done.ctx.report.answer.text in task.question
    assert not done.right


async def test_a_prompt_of_hiper_only_grows_and_says_the_word_of_each_record() -> None:
    done = await written_trial("hiper", "random", turns=6)
    prompts = [[message.text for message in call.messages] for call in done.ctx.role_calls]
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(prompts[:-1]))
    observed = [message.text.split()[0] for message in done.ctx.role_calls[-1].messages[2::2]]
    assert observed == [f"m{n}" for n in range(len(observed))]


# What is read.


CASES: list[tuple[PromptFormat[Any, Any], Any, str, str, list[str]]] = [
    (
        hiper_format.COMPACT_REPORT_FORMAT, hiper_input(), "KEEP r0 answer e2 m2", "Mira Olden",
        ["teacher of Velan Torsk: Mira Olden."],
    ),
    (
        hiper_format.COMPACT_REPORT_FORMAT, hiper_input(), "SWITCH r1 answer e1 m2 m0", "Marel Hollow",
        ["teacher of Velan Torsk: Mira Olden.", "home of Velan Torsk: Marel Hollow."],
    ),
    (hiper_format.COMPACT_REPORT_FORMAT, hiper_input(), "KEEP r0 answer unknown", "unknown", []),
    (
        memact_format.COMPACT_REPORT_FORMAT, memact_input(), "answer e2 m1 summary", "Mira Olden",
        ["teacher of Velan Torsk: Mira Olden.", "born of Velan Torsk: 1204."],
    ),
    (memact_format.COMPACT_REPORT_FORMAT, memact_input(), "answer 1 2 0 4 m0", "1204",
     ["home of Velan Torsk: Marel Hollow."]),
    (
        iterresearch_format.COMPACT_REPORT_FORMAT, workspace(),
        "report r1 e0 e1 | r0 e0 e2 answer e2 m1", "Mira Olden", ["teacher of Velan Torsk: Mira Olden."],
    ),
    (
        iterresearch_format.COMPACT_REPORT_FORMAT, workspace(TurnPhase.FINAL),
        "report none answer not answerable", "not answerable", [],
    ),
]  # fmt: skip


def draft_of(output: Any) -> ReportDraft | None:
    return output.action.report if isinstance(output, hiper_schemas.Turn) else output.answer


@pytest.mark.parametrize(("prompt_format", "inputs", "text", "answer", "stated"), CASES)
def test_the_report_has_the_answer_and_the_sentences_that_the_agent_wrote_and_no_other(
    prompt_format: PromptFormat[Any, Any], inputs: Any, text: str, answer: str, stated: list[str]
) -> None:
    output = prompt_format.parse(text, inputs)
    assert not isinstance(output, InvalidOutput), output
    draft = draft_of(output)
    assert draft is not None
    assert (draft.answer, sentences(draft)) == (answer, stated)
    assert prompt_format.write is not None
    assert prompt_format.write(output, inputs) == text
    assert prompt_format.parse(prompt_format.write(output, inputs), inputs) == output


BEFORE_ANSWERS: list[tuple[PromptFormat[Any, Any], Any, str]] = [
    (hiper_format.COMPACT_REPORT_FORMAT, hiper_input(), "KEEP r0 "),
    (memact_format.COMPACT_REPORT_FORMAT, memact_input(), ""),
    (iterresearch_format.COMPACT_REPORT_FORMAT, workspace(), "report r1 e0 e1 "),
]
"""Each format with an input that has two facts, and what stands before an answer."""

HOSTILE = ["answer", "answer m0", "answer e9", "answer e2 m9", "answer e2 m0 m0", "answer e2 m0 e1", "answer e2 now"]


@pytest.mark.parametrize("text", HOSTILE)
def test_words_that_are_no_answer_are_rejected(text: str) -> None:
    for prompt_format, inputs, before in BEFORE_ANSWERS:
        assert isinstance(prompt_format.parse(before + text, inputs), InvalidOutput)


def test_a_failed_call_cannot_be_cited() -> None:
    hiper_text, memact_text = "KEEP r0 answer e2 m1", "answer e2 m2"
    assert isinstance(hiper_format.parse_report_turn(hiper_text, hiper_input()), InvalidOutput)
    assert isinstance(memact_format.parse_action(memact_text, memact_input()), InvalidOutput)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "t0 r0 e0",
        "report",
        "report t0 r0 e0",
        "report none",
        "report none action t0 r0",
        "report none action t0 r0 e9",
        "report r0 e0 action t0 r0 e0",
        "report r0 e0 e9 action t0 r0 e0",
        "report none report none action t0 r0 e0",
        "none action t0 r0 e0",
    ],
)
def test_a_round_that_is_no_report_with_an_action_is_rejected(text: str) -> None:
    assert isinstance(iterresearch_format.parse_output(text, workspace()), InvalidOutput)


def test_a_round_obeys_its_phase() -> None:
    call, answer = "report none action t0 r0 e0", "report none answer unknown"
    assert isinstance(iterresearch_format.parse_output(call, workspace(TurnPhase.FINAL)), InvalidOutput)
    assert isinstance(iterresearch_format.parse_output(answer, workspace(TurnPhase.FIRST)), InvalidOutput)
    assert isinstance(iterresearch_format.parse_output(call, workspace(TurnPhase.FIRST)), Round)


def test_the_researcher_keeps_only_what_it_writes_and_no_rule_adds_a_result() -> None:
    inputs = workspace()
    assert prompt_of(iterresearch_format.COMPACT_REPORT_FORMAT, inputs) == (
        "ask e0 r0\n\nknown r1 e0 e1\n\nt1 r0 e0 result e2"
    )
    output = iterresearch_format.parse_output("report none action t1 r1 e0", inputs)
    assert isinstance(output, Round)
    after = inputs.model_copy(update={"report": output.report, "action": output.action, "result": None})
    assert "known" not in prompt_of(iterresearch_format.COMPACT_REPORT_FORMAT, after)


def test_the_spans_of_a_round_are_its_report_and_its_outcome() -> None:
    text = " report r1 e0 e1 action t1 r0 e0\n"
    spans = [(span.kind, text[span.start : span.end]) for span in iterresearch_format.find_spans(text)]
    assert spans == [(SpanKind.REPORT, "report r1 e0 e1"), (SpanKind.ACTION, "action t1 r0 e0")]
    assert [span.kind for span in iterresearch_format.find_spans("report none answer unknown")] == [
        SpanKind.REPORT,
        SpanKind.ANSWER,
    ]
    assert [span.kind for span in iterresearch_format.find_spans("actions")] == [SpanKind.REPORT]
    assert iterresearch_format.find_spans(" ") == ()


@given(st.lists(st.sampled_from(VOCABULARY), max_size=9), st.sampled_from(["", "answer "]))
def test_any_words_are_rejected_or_read_as_what_they_say(words: list[str], start: str) -> None:
    text = start + " ".join(words)
    for prompt_format, inputs, before in BEFORE_ANSWERS:
        output = prompt_format.parse(before + text, inputs)
        assert prompt_format.write is not None
        assert isinstance(output, InvalidOutput) or prompt_format.write(output, inputs) == before + text


def test_a_report_that_no_record_states_has_no_words() -> None:
    turn = hiper_format.parse_report_turn("KEEP r0 answer e2 m2", hiper_input())
    assert isinstance(turn, hiper_schemas.Turn)
    with pytest.raises(InvalidInput, match="No record states"):
        hiper_format.render_report_turn(turn, hiper_input().model_copy(update={"memory": hiper_input().memory[:2]}))
