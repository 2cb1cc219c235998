"""HiPER asked in text instead of JSON: spans and boundaries of one parse; and its rules in a synthetic world."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from pydantic import ValidationError

from offing.core.run import StopReason
from offing.core.tokens import locate_token_spans
from offing.core.trajectory import SegmentTail, find_boundary
from offing.models.structured_output import parse_output
from offing.sdk import InvalidOutput, SpanKind
from offing_graphs.hiper import graph, prompts
from offing_graphs.hiper.schemas import Action, AgentInput, Switch, Turn
from offing_world.compact_notation import VOCABULARY
from offing_world.hiper import compact_format
from tests.graphs.hiper.builders import ANSWER, QUESTION, keep, records, run, switch
from tests.graphs.in_memory_context import carry_out
from tests.graphs.world_runs import accuracy, held_out, trials


def agent_input(question: str = QUESTION, **more: Any) -> AgentInput:
    return AgentInput(question=question, tools=(), turn=1, remaining=3, **more)


def spans_of(text: str) -> list[tuple[SpanKind, str]]:
    return [(s.kind, text[s.start : s.end]) for s in prompts.find_text_spans(text)]


def test_three_blocks_are_read_with_spans_that_hold_their_tags() -> None:
    text = '<switch>SWITCH</switch>\n<subgoal>Find it</subgoal>\n<action>calculate {"expression": "1+1"}</action>'
    turn = prompts.parse_text_turn(text, agent_input())
    assert turn == switch("Find it", Action(tool="calculate", args={"expression": "1+1"}))
    assert spans_of(text) == [
        (SpanKind.SWITCH, "<switch>SWITCH</switch>"),
        (SpanKind.SUBGOAL, "<subgoal>Find it</subgoal>"),
        (SpanKind.ACTION, '<action>calculate {"expression": "1+1"}</action>'),
    ]


def test_a_subgoal_under_keep_is_a_copy_and_no_new_subgoal() -> None:
    assert [kind for kind, _ in spans_of("<switch>KEEP</switch><subgoal>a</subgoal><action>t {}</action>")] == [
        SpanKind.SWITCH,
        SpanKind.KEPT,
        SpanKind.ACTION,
    ]
    assert [span.kind for span in compact_format.find_compact_spans("KEEP r0 t0 r0 e0")][1] is SpanKind.KEPT
    assert [span.kind for span in compact_format.find_compact_spans("SWITCH r0 t0 r0 e0")][1] is SpanKind.SUBGOAL


@pytest.mark.parametrize(
    "head", ["", "<switch></switch>", "<switch> </switch><subgoal>a</subgoal>", "<subgoal>a</subgoal>"]
)
def test_a_missing_or_empty_switch_keeps(head: str) -> None:
    turn = prompts.parse_text_turn(head + "<action>calculate {}</action>", agent_input())
    assert not isinstance(turn, InvalidOutput)
    assert turn.switch is Switch.KEEP


def test_without_an_actions_tags_the_whole_response_is_the_action() -> None:
    text = 'calculate {"expression": "1+1"}'
    assert prompts.parse_text_turn(text, agent_input()) == keep(
        "", Action(tool="calculate", args={"expression": "1+1"})
    )
    assert spans_of(text) == [(SpanKind.ACTION, text)]
    broken = f"<switch>SWITCH</switch><subgoal>a</subgoal>{text}"
    assert spans_of(broken) == [(SpanKind.ACTION, broken)]
    assert isinstance(prompts.parse_text_turn(broken, agent_input()), InvalidOutput)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<think>only</think>",
        "<switch>MAYBE</switch><subgoal>a</subgoal><action>t {}</action>",
        "<switch>SWITCH</switch><subgoal></subgoal><action>t {}</action>",
        "<subgoal>a</subgoal><switch>SWITCH</switch><action>t {}</action>",
        "<switch>KEEP</switch>I think <subgoal>a</subgoal><action>t {}</action>",
        "<action>t {}</action><action>u {}</action>",
        "<action>answer</action>",
        "<action>answer {}</action>",
        "<action>read the source</action>",
    ],
)
def test_what_is_no_turn_is_rejected(text: str) -> None:
    assert isinstance(prompts.parse_text_turn(text, agent_input()), InvalidOutput)


def test_only_an_answer_is_read_once_the_work_must_end() -> None:
    inputs = agent_input(reason="turn_limit")
    assert isinstance(prompts.parse_text_turn("<action>calculate {}</action>", inputs), InvalidOutput)
    assert not isinstance(prompts.parse_text_turn("<action>give_up\nNo.</action>", inputs), InvalidOutput)


PASSAGES = [
    "<switch>",
    "</switch>",
    "<subgoal>",
    "</subgoal>",
    "<action>",
    "</action>",
    "KEEP",
    "SWITCH",
    "a b",
    " ",
    "t {}",
    "é",
]


@settings(max_examples=300, deadline=None)
@given(some.lists(some.sampled_from(PASSAGES), max_size=14).map("".join))
def test_spans_never_overlap_and_agree_with_what_was_read(text: str) -> None:
    spans = prompts.find_text_spans(text)
    assert all(one.end <= other.start for one, other in pairwise(spans))
    turn = prompts.parse_text_turn(text, agent_input())
    if not isinstance(turn, InvalidOutput):
        messages = dict(spans_of(text))
        assert (turn.switch is Switch.SWITCH) == ("SWITCH" in messages.get(SpanKind.SWITCH, ""))
        assert SpanKind.ACTION in messages
        cut = tuple(character.encode() for character in text)
        assert all(
            t.end - t.start == s.end - s.start for s, t in zip(spans, locate_token_spans(text, cut, spans), strict=True)
        )


@settings(max_examples=200, deadline=None)
@given(
    some.sampled_from(Switch),
    some.text(some.characters(exclude_characters="<>", exclude_categories=["C", "Z"]), min_size=1, max_size=20),
    some.dictionaries(some.text('ab\n"{}', max_size=4), some.one_of(some.integers(), some.text("<a>\n", max_size=5))),
)
def test_a_written_turn_is_read_back(which: Switch, subgoal: str, args: dict[str, Any]) -> None:
    turn = Turn(switch=which, subgoal=subgoal, action=Action(tool="some_tool", args=args))
    assert prompts.parse_text_turn(prompts.render_text_turn(turn, agent_input()), agent_input()) == turn


def test_json_without_a_switch_keeps_and_a_report_belongs_to_the_end_alone() -> None:
    for head in ("", '"switch": "", ', '"switch": null, '):
        read = parse_output("{" + head + '"subgoal": "a", "action": {"tool": "t", "args": {}}}', Turn)
        assert read == keep("a", Action(tool="t"))
    assert isinstance(parse_output('{"action": {"tool": "answer"}}', Turn), InvalidOutput)
    with pytest.raises(ValidationError, match="give a report"):
        Action(tool="t", report=ANSWER.report)


async def test_a_run_over_documents_in_plain_text_gives_the_report_that_it_gives_in_json() -> None:
    text, json = (
        run("Compare the Heron and the Tern", prompt_formats={"agent": "text"}),
        run("Compare the Heron and the Tern"),
    )
    await carry_out(text, graph)
    await carry_out(json, graph)
    assert text.report.citations == json.report.citations
    assert text.report.answer == json.report.answer


@pytest.mark.parametrize(
    "text",
    [
        "",
        "KEEP",
        "KEEP r0",
        "KEEP r99 answer",
        "HOLD r0 answer",
        "KEEP r0 t0 r0",
        "KEEP r0 answer now",
        "keep r0 answer",
    ],
)
def test_a_compact_turn_with_any_other_words_is_rejected(text: str) -> None:
    assert isinstance(compact_format.parse_compact_turn(text, agent_input("Who taught Velan Torsk?")), InvalidOutput)


def test_a_compact_turn_has_three_spans() -> None:
    text = "SWITCH r0 t1 r0 e0"
    turn = compact_format.parse_compact_turn(text, agent_input("Who taught Velan Torsk?"))
    args = {"relation": "teacher", "entity": "Velan Torsk"}
    assert turn == switch("look up teacher", Action(tool="birch", args=args))
    assert [text[s.start : s.end] for s in compact_format.find_compact_spans(text)] == ["SWITCH", "r0", "t1 r0 e0"]


# In a synthetic world.


@pytest.mark.slow
@pytest.mark.parametrize("prompt_format", ["", "text", "compact"])
async def test_an_oracle_answers_the_questions_of_a_held_out_world(prompt_format: str) -> None:
    prompt_formats, count = ({"agent": prompt_format}, 40) if prompt_format else ({}, 100)
    assert await accuracy(graph, "oracle", count, prompt_formats=prompt_formats) >= 0.95


@pytest.mark.slow
async def test_a_random_agent_answers_less_than_a_quarter_of_them() -> None:
    assert await accuracy(graph, "random", prompt_formats={"agent": "compact"}) < 0.25


async def test_look_ups_of_one_relation_share_a_segment() -> None:
    done = await trials(graph, "oracle", held_out(40), prompt_formats={"agent": "compact"})
    for one in done:
        result = records(one.ctx)
        assert [r.boundary for r in result] == [
            n == 0 or r.subgoal != result[n - 1].subgoal for n, r in enumerate(result)
        ]
    assert any(not r.boundary and r.tool != "answer" for one in done for r in records(one.ctx))


async def test_the_compact_prompt_only_grows_by_what_was_said_and_seen() -> None:
    (done,) = await trials(graph, "random", held_out(1, (4, 4)), prompt_formats={"agent": "compact"}, turns=6)
    text = done.ctx.role_calls
    assert len(text) > 3
    for before, after in pairwise(text):
        tail = SegmentTail(1, 1, before.seq, before.messages, before.text, None)
        assert find_boundary(tail, after.messages, None) is None
        assert len(after.messages) == len(before.messages) + 2
        assert [m.turn for m in after.messages if m.role == "assistant"] == [s.seq for s in text[: text.index(after)]]
    if done.ctx.report.stop_reason == StopReason.TURN_LIMIT:
        assert text[-1].messages[-1].text.endswith(" stop")


async def test_a_four_hop_rollout_of_the_compact_agent_adds_at_most_128_tokens() -> None:
    for done in await trials(graph, "oracle", held_out(20, (4, 4)), prompt_formats={"agent": "compact"}):
        last = done.ctx.role_calls[-1]
        words = [word for m in last.messages for word in m.text.split()] + last.text.split()
        assert set(words) <= set(VOCABULARY)
        assert len(words) + 4 * (len(last.messages) + 1) <= 128
