"""HiPER end to end on a context in memory: segments and drift, its endings, its forms, and what happens when things
fail."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from pydantic import ValidationError

from offing.core.model import FailureKind
from offing.core.run import Budget, StopReason
from offing.core.step import StepKind
from offing.core.tokens import token_spans
from offing.core.trajectory import Tail, goes_on
from offing.models.structured import parse_output
from offing.sdk import DraftCitation, DraftSection, DraftSentence, ReportDraft, SpanKind, Unusable
from offing.world.compact import VOCABULARY
from offing_graphs.agentflow import graph as agentflow
from offing_graphs.hiper import forms, graph
from offing_graphs.hiper.segments import placed
from offing_graphs.hiper.shapes import Action, AgentInput, Switch, Turn, TurnRecord
from tests.graphs.corpus import harbour
from tests.graphs.stand_in import Engine, StandIn, carry_out, failing
from tests.graphs.world_trials import accuracy, held_out, trials

QUESTION = "How often is the tide gauge calibrated?"
SEARCH = Action(tool="search_library", args={"query": "tide gauge"})
ANSWER = Action(tool="answer", report=ReportDraft(title="T", answer="So.", sections=()))


def run(question: str = QUESTION, **more: Any) -> StandIn:
    return StandIn(harbour(), question, **more)


def says(*turns: Turn) -> Engine:
    """An agent that answers these, then the last again and again."""
    left = list(turns)
    return lambda _given: left.pop(0) if len(left) > 1 else left[0]


def keep(subgoal: str = "", action: Action = SEARCH) -> Turn:
    return Turn(switch=Switch.KEEP, subgoal=subgoal, action=action)


def switch(subgoal: str, action: Action = SEARCH) -> Turn:
    return Turn(switch=Switch.SWITCH, subgoal=subgoal, action=action)


def records(ctx: StandIn) -> list[TurnRecord]:
    return [TurnRecord.model_validate(s.payload) for s in ctx.steps if s.kind is StepKind.MEMORY]


def agent_input(question: str = QUESTION, **more: Any) -> AgentInput:
    return AgentInput(question=question, tools=(), turn=1, remaining=3, **more)


# A run.


async def test_a_run_acts_and_records_turn_by_turn_and_answers() -> None:
    ctx = run()
    state = await carry_out(ctx, graph)
    turn = [StepKind.TURN, StepKind.TOOL, StepKind.MEMORY]
    assert ctx.kinds() == [*turn * (ctx.turns - 1), StepKind.TURN, StepKind.MEMORY, StepKind.REPORT]
    assert state["stop"] == StopReason.ANSWERED
    assert ctx.report.answer is not None
    assert "twice a year" in ctx.report.answer.text
    assert ctx.report.answer.supported


@pytest.mark.parametrize(
    "question",
    [QUESTION, "Compare the Heron and the Tern", "What does a berth cost and how can one pay?", "What is 12 * 7?"],
)
async def test_its_report_without_a_model_is_the_one_of_agentflow(question: str) -> None:
    ours, theirs = run(question), run(question)
    await carry_out(ours, graph)
    await carry_out(theirs, agentflow)
    assert ours.report.answer == theirs.report.answer
    assert [c.quote for c in ours.report.citations] == [c.quote for c in theirs.report.citations]
    assert not [rejected for s in ours.report.sentences() for rejected in s.rejected]


async def test_the_state_holds_numbers_and_reasons_only() -> None:
    from offing_graphs.hiper.state import State

    ctx = run()
    state = await carry_out(ctx, graph)
    assert set(state) == set(graph.start(ctx.run)) == set(State.__annotations__)
    assert graph.turn_key in State.__annotations__
    assert all(isinstance(v, int) or (isinstance(v, str) and len(v) < 20) for v in state.values())


async def test_without_a_model_a_subgoal_is_a_part_of_the_question_and_lasts_several_turns() -> None:
    ctx = run("What does a berth cost and how can one pay?")
    await carry_out(ctx, graph)
    bands = [(r.subgoal_nr, r.subgoal) for r in records(ctx)]
    assert len(dict.fromkeys(bands)) == 2
    assert [r.switch for r in records(ctx)] == ["SWITCH", "KEEP", "SWITCH", "KEEP", "KEEP"]


async def test_a_call_that_cannot_be_made_is_a_turn_like_any_other() -> None:
    turns = (switch("a", Action(tool="browse_web")), keep("a", Action(tool="read_source")), keep("a", ANSWER))
    ctx = run(engines={"agent": says(*turns)}, broken={"search_library": "away"})
    await carry_out(ctx, graph)
    assert [(r.tool, r.status) for r in records(ctx)] == [
        ("browse_web", "invalid"),
        ("read_source", "invalid"),
        ("answer", "ok"),
    ]
    assert "no tool browse_web" in records(ctx)[0].finding


# Segments.


async def test_a_run_that_always_keeps_is_one_segment() -> None:
    ctx = run(engines={"agent": says(keep("a"), keep("a"), keep("a", ANSWER))})
    await carry_out(ctx, graph)
    assert [(r.boundary, r.subgoal_nr, r.subgoal, r.drifted) for r in records(ctx)] == [
        (True, 1, "a", False),
        (False, 1, "a", False),
        (False, 1, "a", False),
    ]


async def test_a_run_that_always_switches_has_a_segment_a_turn_also_with_the_same_words() -> None:
    ctx = run(engines={"agent": says(switch("a"), switch("b"), switch("b", ANSWER))})
    await carry_out(ctx, graph)
    assert [(r.boundary, r.subgoal_nr, r.subgoal) for r in records(ctx)] == [
        (True, 1, "a"),
        (True, 2, "b"),
        (True, 3, "b"),
    ]


async def test_a_keep_with_other_words_is_recorded_as_drift_and_keeps_the_old_subgoal() -> None:
    ctx = run(engines={"agent": says(switch("a"), keep("b"), keep(""), keep(" a "), keep("a", ANSWER))})
    await carry_out(ctx, graph)
    assert [r.drifted for r in records(ctx)] == [False, True, True, False, False]
    assert {r.subgoal for r in records(ctx)} == {"a"}
    told = [given.subgoal for _, given in ctx.given]
    assert told == ["", "a", "a", "a", "a"]


async def test_every_record_names_the_answer_that_it_places() -> None:
    ctx = run()
    await carry_out(ctx, graph)
    turns = [s for s in ctx.steps if s.kind is StepKind.TURN]
    assert [r.said for r in records(ctx)] == [s.seq for s in turns]
    assert [r.turn for r in records(ctx)] == [s.turn for s in turns]


def test_the_first_turn_opens_a_segment_whatever_it_says() -> None:
    for first in (keep(""), keep("a"), switch("a")):
        place = placed(first, None)
        assert (place.boundary, place.number, place.subgoal, place.drifted) == (True, 1, first.subgoal, False)


# Endings.


async def test_at_the_turn_limit_the_agent_is_asked_for_an_answer_alone() -> None:
    answers = (switch("a"), keep("a"), keep("a", ANSWER))
    ctx = run(budget=Budget(turns=2), engines={"agent": says(*answers)})
    await carry_out(ctx, graph)
    assert ctx.report.reason == StopReason.TURN_LIMIT
    assert ctx.report.answer is not None
    assert ctx.report.answer.text == "So."
    forced = ctx.given[-1][1]
    assert (forced.reason, forced.remaining) == ("turn_limit", 0)
    assert "must be `answer` or `give_up`" in ctx.prompts[-1][1][-1].text
    assert [(r.turn, r.boundary) for r in records(ctx)] == [(1, True), (2, False), (0, False)]


async def test_an_answer_in_the_last_turn_counts() -> None:
    ctx = run(budget=Budget(turns=2), engines={"agent": says(switch("a"), keep("a", ANSWER))})
    await carry_out(ctx, graph)
    assert ctx.report.reason == StopReason.ANSWERED


async def test_a_forced_answer_that_is_a_tool_call_is_not_made() -> None:
    ctx = run(budget=Budget(turns=1), engines={"agent": says(switch("a"))})
    await carry_out(ctx, graph)
    assert len(ctx.calls) == 1
    assert ctx.report.reason == StopReason.TURN_LIMIT
    assert ctx.report.citations
    assert records(ctx)[-1].status == "not_made"


async def test_a_turn_limit_of_zero_goes_straight_to_the_report() -> None:
    ctx = run(budget=Budget(turns=0))
    await carry_out(ctx, graph)
    assert ctx.kinds() == [StepKind.REPORT]
    assert ctx.report.reason == StopReason.TURN_LIMIT


async def test_giving_up_is_nothing_found() -> None:
    ctx = run(engines={"agent": says(switch("a"), keep("a", ANSWER.model_copy(update={"tool": "give_up"})))})
    await carry_out(ctx, graph)
    assert ctx.report.reason == StopReason.NOTHING_FOUND
    assert ctx.report.status == "partial"


async def test_a_limit_with_nothing_found_is_said_and_not_written_by_a_model() -> None:
    ctx = run(
        budget=Budget(turns=1), engines={"agent": says(switch("a", Action(tool="search_library", args={"query": "q"})))}
    )
    ctx.library = type(ctx.library)([("empty.md", "# Unrelated\n\nBread is baked at night.\n")])
    await carry_out(ctx, graph)
    assert ctx.report.reason == StopReason.NOTHING_FOUND
    assert len(ctx.given) == 1


@pytest.mark.parametrize(("node", "asked"), [("agent", 0), ("act", 1), ("second agent", 2)])
async def test_every_node_asks_whether_to_stop_before_it_does_anything(node: str, asked: int) -> None:
    ctx = run(stops=[None] * asked + [StopReason.TIME_LIMIT])
    await carry_out(ctx, graph)
    assert ctx.report.reason == StopReason.TIME_LIMIT, node
    expected = [StepKind.TURN, StepKind.TOOL]
    assert [k for k in ctx.kinds() if k in expected] == expected[:asked]
    assert len(records(ctx)) == min(asked, 1)


@pytest.mark.parametrize("reason", [StopReason.TOKEN_LIMIT, StopReason.SPEND_LIMIT, StopReason.TIME_LIMIT])
async def test_after_a_budget_is_spent_no_engine_is_asked_to_write(reason: StopReason) -> None:
    ctx = run(stops=[None, None, reason])
    await carry_out(ctx, graph)
    assert ctx.report.reason == reason
    assert ctx.report.citations
    assert len(ctx.given) == 1


FAILURES = [
    (FailureKind.OUT_OF_BUDGET, "token_limit", StopReason.TOKEN_LIMIT),
    (FailureKind.INVALID_OUTPUT, "", StopReason.INVALID_OUTPUT),
    (FailureKind.OVERLOADED, "", StopReason.PROVIDER_DOWN),
    (FailureKind.UNKNOWN_ENGINE, "", StopReason.PROVIDER_DOWN),
]


@pytest.mark.parametrize("turn", [1, 2, "forced"])
@pytest.mark.parametrize(("kind", "stop", "reason"), FAILURES)
async def test_whenever_its_engine_fails_there_is_a_partial_report_with_the_reason(
    turn: int | str, kind: FailureKind, stop: str, reason: StopReason
) -> None:
    fails = failing(kind, stop)

    def engine(given: AgentInput) -> Any:
        now = "forced" if given.reason else given.turn
        return fails(given) if now == turn else switch("a")

    ctx = run(budget=Budget(turns=3), engines={"agent": engine})
    await carry_out(ctx, graph)
    assert ctx.report.reason == reason
    assert ctx.report.status == "partial"
    assert ctx.report.limits
    assert bool(ctx.report.citations) is (turn != 1)


async def test_a_message_while_it_answers_is_taken_up_in_another_turn() -> None:
    ctx = run()

    def agent(given: AgentInput) -> Turn:
        if given.turn == 2:
            ctx.say("Also say when the Heron departs last.")
        return switch("a") if given.turn == 1 else keep("a", ANSWER)

    ctx.engines = {"agent": agent}
    await carry_out(ctx, graph)
    assert [given.wishes for _, given in ctx.given] == [(), (), ("Also say when the Heron departs last.",)]
    assert ctx.turns == 3
    assert ctx.report.reason == StopReason.ANSWERED


async def test_a_quote_that_was_not_retrieved_is_not_accepted() -> None:
    invented = DraftSentence(
        text="It is so.", citations=(DraftCitation(evidence="E1", quote="never written anywhere"),)
    )
    report = ReportDraft(title="T", sections=(DraftSection(heading="H", sentences=(invented,)),))
    ctx = run(engines={"agent": says(switch("a"), keep("a", Action(tool="answer", report=report)))})
    await carry_out(ctx, graph)
    assert not ctx.report.citations
    assert ctx.report.sentences()[0].rejected


async def test_salvage_writes_from_what_was_retrieved() -> None:
    ctx = run(stops=[None, None, StopReason.ASKED_TO_WRITE])
    await carry_out(ctx, graph)
    assert graph.salvage is not None
    draft: ReportDraft = graph.salvage(ctx.run, tuple(ctx.found))
    assert (await ctx.deliver(draft, StopReason.GRAPH_ERROR)).citations
    assert "Nothing in the documents" in graph.salvage(ctx.run, ()).answer


async def test_a_node_that_runs_again_is_given_what_it_was_given_the_first_time() -> None:
    from offing_graphs.hiper import nodes

    ctx = run(budget=Budget(turns=4), engines={"agent": says(switch("a"), keep("a"), switch("b"), keep("b", ANSWER))})
    await carry_out(ctx, graph)
    first = next(given for _, given in ctx.given if given.turn == 2)

    class Runtime:
        context = ctx

    ctx.given.clear()
    await nodes.agent({**graph.start(ctx.run), "turn": 1, "said": 1}, Runtime())  # type: ignore[arg-type]
    again = ctx.given[0][1]
    assert again == first


async def test_the_same_run_twice_gives_the_same_steps() -> None:
    one, two = run("Compare the Heron and the Tern"), run("Compare the Heron and the Tern")
    await carry_out(one, graph)
    await carry_out(two, graph)
    assert one.steps == two.steps


# The prompt.


async def test_the_prompt_shows_two_turns_whole_and_the_subgoal_in_force() -> None:
    queries = ("alpha", "beta", "gamma")
    turns = [keep("Find it", Action(tool="search_library", args={"query": f"tide {q}"})) for q in queries]
    ctx = run(engines={"agent": says(*turns, keep("Find it", ANSWER))})
    await carry_out(ctx, graph)
    first, last = (messages[-1].text for _, messages in (ctx.prompts[0], ctx.prompts[3]))
    assert "The current subgoal: None" in first
    assert "This is turn 1 of 12." in first
    assert [q for q in queries if f"tide {q}" in last] == ["beta", "gamma"]
    assert "The current subgoal: Find it" in last


async def test_values_that_no_passage_holds_stay_in_sight() -> None:
    sum_of = Action(tool="calculate", args={"expression": "6*7"})
    ctx = run(engines={"agent": says(switch("a", sum_of), keep("a"), keep("a"), keep("a", ANSWER))})
    await carry_out(ctx, graph)
    assert "6*7 = 42" in ctx.prompts[3][1][-1].text


# Forms.


def spans_of(text: str) -> list[tuple[SpanKind, str]]:
    return [(s.kind, text[s.start : s.end]) for s in forms.plain_spans(text)]


def test_three_blocks_are_read_with_spans_that_hold_their_tags() -> None:
    text = '<switch>SWITCH</switch>\n<subgoal>Find it</subgoal>\n<action>calculate {"expression": "1+1"}</action>'
    turn = forms.plain_turn(text, agent_input())
    assert turn == switch("Find it", Action(tool="calculate", args={"expression": "1+1"}))
    assert spans_of(text) == [
        (SpanKind.SWITCH, "<switch>SWITCH</switch>"),
        (SpanKind.SUBGOAL, "<subgoal>Find it</subgoal>"),
        (SpanKind.ACTION, '<action>calculate {"expression": "1+1"}</action>'),
    ]


@pytest.mark.parametrize(
    "head", ["", "<switch></switch>", "<switch> </switch><subgoal>a</subgoal>", "<subgoal>a</subgoal>"]
)
def test_a_missing_or_empty_switch_keeps(head: str) -> None:
    turn = forms.plain_turn(head + "<action>calculate {}</action>", agent_input())
    assert not isinstance(turn, Unusable)
    assert turn.switch is Switch.KEEP


def test_without_an_actions_tags_the_whole_response_is_the_action() -> None:
    text = 'calculate {"expression": "1+1"}'
    assert forms.plain_turn(text, agent_input()) == keep("", Action(tool="calculate", args={"expression": "1+1"}))
    assert spans_of(text) == [(SpanKind.ACTION, text)]
    broken = f"<switch>SWITCH</switch><subgoal>a</subgoal>{text}"
    assert spans_of(broken) == [(SpanKind.ACTION, broken)]
    assert isinstance(forms.plain_turn(broken, agent_input()), Unusable)


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
def test_what_is_no_turn_is_refused(text: str) -> None:
    assert isinstance(forms.plain_turn(text, agent_input()), Unusable)


def test_only_an_answer_is_read_once_the_work_must_end() -> None:
    given = agent_input(reason="turn_limit")
    assert isinstance(forms.plain_turn("<action>calculate {}</action>", given), Unusable)
    assert not isinstance(forms.plain_turn("<action>give_up\nNo.</action>", given), Unusable)


PIECES = [
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
@given(some.lists(some.sampled_from(PIECES), max_size=14).map("".join))
def test_spans_never_overlap_and_agree_with_what_was_read(text: str) -> None:
    spans = forms.plain_spans(text)
    assert all(one.end <= other.start for one, other in pairwise(spans))
    turn = forms.plain_turn(text, agent_input())
    if not isinstance(turn, Unusable):
        said = dict(spans_of(text))
        assert (turn.switch is Switch.SWITCH) == ("SWITCH" in said.get(SpanKind.SWITCH, ""))
        assert SpanKind.ACTION in said
        cut = tuple(character.encode() for character in text)
        assert all(
            t.end - t.start == s.end - s.start for s, t in zip(spans, token_spans(text, cut, spans), strict=True)
        )


@settings(max_examples=200, deadline=None)
@given(
    some.sampled_from(Switch),
    some.text(some.characters(exclude_characters="<>", exclude_categories=["C", "Z"]), min_size=1, max_size=20),
    some.dictionaries(some.text('ab\n"{}', max_size=4), some.one_of(some.integers(), some.text("<a>\n", max_size=5))),
)
def test_a_written_turn_is_read_back(which: Switch, subgoal: str, args: dict[str, Any]) -> None:
    turn = Turn(switch=which, subgoal=subgoal, action=Action(tool="some_tool", args=args))
    assert forms.plain_turn(forms.write_plain(turn, agent_input()), agent_input()) == turn


def test_json_without_a_switch_keeps_and_a_report_belongs_to_the_end_alone() -> None:
    for head in ("", '"switch": "", ', '"switch": null, '):
        read = parse_output("{" + head + '"subgoal": "a", "action": {"tool": "t", "args": {}}}', Turn)
        assert read == keep("a", Action(tool="t"))
    assert isinstance(parse_output('{"action": {"tool": "answer"}}', Turn), Unusable)
    with pytest.raises(ValidationError, match="give a report"):
        Action(tool="t", report=ANSWER.report)


async def test_a_run_over_documents_in_plain_text_gives_the_report_that_it_gives_in_json() -> None:
    text, json = run("Compare the Heron and the Tern", forms={"agent": "plain"}), run("Compare the Heron and the Tern")
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
def test_a_compact_turn_with_any_other_words_is_refused(text: str) -> None:
    assert isinstance(forms.compact_turn(text, agent_input("Who taught Velan Torsk?")), Unusable)


def test_a_compact_turn_has_three_spans() -> None:
    text = "SWITCH r0 t1 r0 e0"
    turn = forms.compact_turn(text, agent_input("Who taught Velan Torsk?"))
    args = {"relation": "teacher", "entity": "Velan Torsk"}
    assert turn == switch("look up teacher", Action(tool="birch", args=args))
    assert [text[s.start : s.end] for s in forms.compact_spans(text)] == ["SWITCH", "r0", "t1 r0 e0"]


# In a made-up world.


@pytest.mark.slow
@pytest.mark.parametrize("form", ["", "plain", "compact"])
async def test_an_oracle_answers_two_hundred_questions_of_a_held_out_world(form: str) -> None:
    assert await accuracy(graph, "oracle", forms={"agent": form} if form else {}) >= 0.95


@pytest.mark.slow
async def test_a_random_agent_answers_less_than_a_quarter_of_them() -> None:
    assert await accuracy(graph, "random", forms={"agent": "compact"}) < 0.25


async def test_look_ups_of_one_relation_share_a_segment() -> None:
    done = await trials(graph, "oracle", held_out(40), forms={"agent": "compact"})
    for one in done:
        found = records(one.ctx)
        assert [r.boundary for r in found] == [n == 0 or r.subgoal != found[n - 1].subgoal for n, r in enumerate(found)]
    assert any(not r.boundary and r.tool != "answer" for one in done for r in records(one.ctx))


async def test_the_compact_prompt_only_grows_by_what_was_said_and_seen() -> None:
    (done,) = await trials(graph, "random", held_out(1, (4, 4)), forms={"agent": "compact"}, turns=6)
    said = done.ctx.said
    assert len(said) > 3
    for before, after in pairwise(said):
        tail = Tail(1, 1, before.seq, before.messages, before.text, None)
        assert goes_on(tail, after.messages, None) is None
        assert len(after.messages) == len(before.messages) + 2
    if done.ctx.report.reason == StopReason.TURN_LIMIT:
        assert said[-1].messages[-1].text.endswith(" stop")


async def test_a_four_hop_rollout_of_the_compact_agent_adds_at_most_128_tokens() -> None:
    for done in await trials(graph, "oracle", held_out(20, (4, 4)), forms={"agent": "compact"}):
        last = done.ctx.said[-1]
        words = [word for m in last.messages for word in m.text.split()] + last.text.split()
        assert set(words) <= set(VOCABULARY)
        assert len(words) + 4 * (len(last.messages) + 1) <= 128
