"""Memory as action: the algebra of edits, the context as it is asked, its segments, limits, endings, and summaries."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offing.core.model import FailureKind, Message
from offing.core.run import Budget, StopReason
from offing.core.step import StepKind
from offing.core.tokens import SpanKind
from offing.core.trajectory import Fracture, Tail, goes_on
from offing.models.structured import parse_output
from offing.sdk import DraftSection, DraftSentence, Graph, ReportDraft, ToolSpec, Unusable
from offing.world.solving import Known
from offing_graphs.memact import chat, compact, extractive, graph, plain, supo
from offing_graphs.memact.config import EDITING, SUMMING_UP, TOKENS_FOR_A_SUMMARY, Config
from offing_graphs.memact.context import EDITS, PRUNE, WRITE, edited, record_id, turn_of
from offing_graphs.memact.facts import facts_in, facts_text, needed
from offing_graphs.memact.graph import configured
from offing_graphs.memact.nodes import Nodes
from offing_graphs.memact.shapes import Act, AgentInput, Entry, Found
from offing_graphs.memact.state import State
from offing_graphs.parts.measuring import tokens_of
from offing_graphs.parts.shapes import Card
from tests.graphs.corpus import harbour
from tests.graphs.stand_in import SPECS as LIBRARY
from tests.graphs.stand_in import Engine, Said, StandIn, carry_out, failing
from tests.graphs.test_extractive import QUESTIONS
from tests.graphs.world_trials import SPECS, Trial, accuracy, held_out, trial

QUESTION = "How often is the tide gauge calibrated?"
SEARCH = Act(tool="search_library", args={"query": "tide gauge calibrated"})
DONE = Act(answer=ReportDraft(title="t", answer="Twice a year. [E1]", sections=()))


def run(question: str = QUESTION, **more: Any) -> StandIn:
    return StandIn(harbour(), question, **more)


def acts(*said: Act) -> dict[str, Engine]:
    """An agent that does these, then the last again and again."""
    left = list(said)

    def agent(_given: AgentInput) -> Act:
        return left.pop(0) if len(left) > 1 else left[0]

    return {"agent": agent}


def prune(*ids: str, note: str = "") -> Act:
    return Act(tool=PRUNE, args={"delete_ids": list(ids), "note": note})


def write(note: str) -> Act:
    return Act(tool=WRITE, args={"note": note})


def texts(messages: Sequence[Message]) -> list[tuple[str, str]]:
    return [(m.role, m.text) for m in messages]


# The algebra.


@dataclass(frozen=True)
class Record:
    id: str
    text: str


IDS = st.integers(1, 30).map(record_id)
CONTEXTS = st.lists(IDS, unique=True).map(lambda ids: tuple(Record(id, f"text of {id}") for id in ids))
NAMED = st.lists(st.one_of(IDS, st.sampled_from(["system", "question", "r", "r0", "1", "R1", "r1 ", ""])), max_size=12)


@given(CONTEXTS, NAMED, st.text(max_size=20))
def test_prune_removes_precisely_the_records_that_are_named(
    context: tuple[Record, ...], ids: list[str], note: str
) -> None:
    done = edited(context, PRUNE, ids, note)
    assert done.context == tuple(r for r in context if r.id not in ids)
    assert set(done.deleted) == {r.id for r in context} & set(ids)
    assert set(done.unknown) == set(ids) - {r.id for r in context}
    assert done.ok == done.splits == (len(done.context) < len(context))


@given(CONTEXTS, st.lists(st.sampled_from(["system", "question", "user", "r0", "r", "r31", "r1r2", "*"])), st.text())
def test_what_is_no_record_cannot_be_removed_and_changes_nothing(
    context: tuple[Record, ...], ids: list[str], note: str
) -> None:
    done = edited(context, PRUNE, ids, note)
    assert done.context == context
    assert not done.ok
    assert not done.splits


def test_an_id_is_never_part_of_another() -> None:
    context = (Record("r1", "about r11"), Record("r11", "about r1"), Record("r111", "r11 r1"))
    assert edited(context, PRUNE, ["r11"]).context == (context[0], context[2])


@given(CONTEXTS, NAMED, st.text(max_size=20))
def test_write_removes_nothing_whatever_it_is_given(context: tuple[Record, ...], ids: list[str], note: str) -> None:
    done = edited(context, WRITE, ids, note)
    assert done.context == context
    assert done.ok == bool(note.strip())
    assert not done.splits


@given(CONTEXTS, NAMED, NAMED)
def test_two_prunes_are_one_of_both(context: tuple[Record, ...], first: list[str], second: list[str]) -> None:
    apart = edited(edited(context, PRUNE, first).context, PRUNE, second).context
    assert apart == edited(context, PRUNE, [*first, *second]).context


@given(st.text(max_size=6))
def test_only_an_id_of_ours_is_an_id(text: str) -> None:
    assert not turn_of(text) or record_id(turn_of(text)) == text


# The flow.


async def test_a_run_acts_and_answers_and_its_answer_is_the_report() -> None:
    ctx = run()
    state = await carry_out(ctx, graph)
    assert set(ctx.kinds()) == {StepKind.TURN, StepKind.TOOL, StepKind.REPORT}
    assert state["stop"] == ctx.report.reason == StopReason.ANSWERED
    assert ctx.report.answer
    assert "twice a year" in ctx.report.answer.text


async def test_the_state_holds_numbers_and_words_only() -> None:
    ctx = run(engines=acts(SEARCH, write("n"), SEARCH, prune("r1"), DONE))
    state = await carry_out(ctx, graph)
    assert set(state) == set(graph.start(ctx.run)) == set(State.__annotations__)
    for value in state.values():
        assert (
            isinstance(value, int)
            or (isinstance(value, str) and len(value) < 20)
            or all(isinstance(number, int) for number in value)
        )
    assert graph.turn_key in state


async def test_an_edit_takes_effect_before_the_next_action_and_its_note_can_be_removed_too() -> None:
    ctx = run(engines=acts(SEARCH, SEARCH, prune("r1", "r9", note="Twice a year."), prune("r3"), DONE))
    await carry_out(ctx, graph)
    seen = [[e.id for e in given.records] for _, given in ctx.given]
    assert seen == [[], ["r1"], ["r1", "r2"], ["r2", "r3"], ["r2", "r4"]]
    third = ctx.given[3][1].records[1]
    assert third.act.args["note"] == "Twice a year."
    assert "Removed r1." in third.observation
    assert "no record r9" in third.observation
    edits = [s.payload for s in ctx.steps if s.kind is StepKind.MEMORY]
    assert [(e["op"], e["id"], e["deleted"], e["kept"]) for e in edits] == [
        ("prune", "r3", ["r1"], ["r2"]),
        ("prune", "r4", ["r3"], ["r2"]),
    ]


BROKEN = [
    prune("r7"),
    prune("system", "question"),
    prune("r"),
    Act(tool=PRUNE, args={"delete_ids": [], "note": "kept?"}),
    Act(tool=PRUNE, args={"delete_ids": "r1"}),
    Act(tool=PRUNE, args={"ids": ["r1"]}),
    Act(tool=WRITE, args={"note": ""}),
    Act(tool=WRITE, args={"note": "x", "delete_ids": ["r1"]}),
    Act(summary="Nobody asked."),
]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda a: str(a.args or a.summary))
async def test_a_failed_edit_is_a_recorded_turn_that_changes_nothing(broken: Act) -> None:
    ctx = run(engines=acts(SEARCH, broken, SEARCH, DONE), forms={"agent": "plain"})
    await carry_out(ctx, graph)
    before, after = ctx.said[1], ctx.said[2]
    assert texts(after.messages)[: len(before.messages)] == texts(before.messages)
    assert "r2" in after.messages[-1].text
    assert "failed" in after.messages[-1].text
    assert [s.fracture for s in ctx.said] == [None] * 4
    assert [s.ok for s in ctx.steps if s.kind is StepKind.MEMORY] == [False]
    assert ctx.turns == 4


async def test_the_system_and_the_question_are_in_every_prompt() -> None:
    ctx = run(engines=acts(SEARCH, prune("r1", "system", "question"), DONE))
    await carry_out(ctx, graph)
    assert len({texts(messages)[0] for _, messages in ctx.prompts}) == 1
    assert all(QUESTION in messages[1].text for _, messages in ctx.prompts)


async def test_a_call_that_cannot_be_made_is_a_record_and_costs_a_turn() -> None:
    ctx = run(engines=acts(Act(tool="browse_web"), Act(tool="search_library", args={"q": 1}), DONE))
    await carry_out(ctx, graph)
    told = [e.observation for e in ctx.given[-1][1].records]
    assert "no tool browse_web" in told[0]
    assert told[1]
    assert [e.ok for e in ctx.given[-1][1].records] == [False, False]


# Segments.


def rows(said: Sequence[Said]) -> list[list[Said]]:
    """The calls in segments, checked: every prompt continues its segment's text, or says why it does not."""
    found: list[list[Said]] = []
    for call in said:
        tail = found[-1][-1] if found else None
        ended = Tail(0, 0, tail.seq, tail.messages, tail.text, None) if tail else None
        continues = ended is not None and goes_on(ended, call.messages, None) is None
        assert continues == (call.fracture is None and ended is not None), texts(call.messages)
        if continues:
            found[-1].append(call)
        else:
            found.append([call])
    return found


def trained(row: Sequence[Said]) -> list[str]:
    """Completions of a row that stand where its prompts say that they were sampled."""
    last = [*texts(row[-1].messages), ("assistant", row[-1].text)]
    places = [len(call.messages) for call in row]
    return [text for n, (role, text) in enumerate(last) if n in places and role == "assistant"]


EDITED = (SEARCH, SEARCH, prune("r1", note="n"), prune("r77"), write("w"), SEARCH, prune("r3", "r2"), SEARCH, DONE)


@pytest.mark.parametrize("edit", [EDITED, (SEARCH, DONE), (SEARCH, prune("r1"), prune("r2"), DONE)])
async def test_every_completion_is_in_exactly_one_segment_and_segments_end_with_their_edit(
    edit: tuple[Act, ...],
) -> None:
    ctx = run(engines=acts(*edit), forms={"agent": "plain"})
    await carry_out(ctx, graph)
    segments = rows(ctx.said)
    assert [text for row in segments for text in trained(row)] == [call.text for call in ctx.said]
    effective = [s for s in ctx.steps if s.kind is StepKind.MEMORY and s.payload["deleted"]]
    assert len(segments) == len(effective) + 1
    for row in segments[:-1]:
        assert [s.kind for s in row[-1].spans] == [SpanKind.MEMORY_EDIT]
    assert [row[0].fracture for row in segments[1:]] == [Fracture.MEMORY_EDIT] * len(effective)


async def test_a_message_names_its_turn_only_in_the_segment_in_which_it_was_sampled() -> None:
    ctx = run(engines=acts(*EDITED), forms={"agent": "plain"})
    await carry_out(ctx, graph)
    for row in rows(ctx.said):
        first = len(row[0].messages)
        for call in row:
            assert not any(m.turn for m in call.messages[:first])
            own = [m for m in call.messages[first:] if m.role == "assistant"]
            known = {c.seq: c.text for c in row}
            assert all(known[m.turn] == m.text for m in own)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.one_of(st.just("search"), st.lists(st.integers(1, 8), max_size=3), st.text(max_size=3)), max_size=8))
async def test_any_sequence_of_actions_gives_segments_that_hold_each_completion_once(drawn: list[Any]) -> None:
    def act(one: Any) -> Act:
        if one == "search":
            return SEARCH
        return write(one) if isinstance(one, str) else prune(*map(record_id, one), note="n" * len(one))

    ctx = run(engines=acts(*map(act, drawn), DONE), forms={"agent": "plain"})
    await carry_out(ctx, graph)
    segments = rows(ctx.said)
    assert [text for row in segments for text in trained(row)] == [call.text for call in ctx.said]
    assert ctx.report.reason == StopReason.ANSWERED


# Limits, endings, people.


async def test_a_turn_limit_of_zero_goes_straight_to_the_report() -> None:
    ctx = run(budget=Budget(turns=0))
    await carry_out(ctx, graph)
    assert ctx.kinds() == [StepKind.REPORT]
    assert ctx.report.reason == StopReason.TURN_LIMIT


async def test_at_the_turn_limit_the_agent_is_asked_once_more_for_an_answer() -> None:
    def agent(given: AgentInput) -> Act:
        return DONE if given.ask == "answer" else SEARCH

    ctx = run(budget=Budget(turns=2), engines={"agent": agent})
    await carry_out(ctx, graph)
    assert ctx.turns == 2
    assert ctx.report.reason == StopReason.TURN_LIMIT
    assert ctx.report.status == "partial"
    assert ctx.report.answer
    assert ctx.report.answer.text == "Twice a year."


async def test_an_agent_that_does_not_answer_even_then_leaves_a_report_of_quotes() -> None:
    ctx = run(budget=Budget(turns=2), engines=acts(SEARCH))
    await carry_out(ctx, graph)
    assert ctx.report.reason == StopReason.TURN_LIMIT
    assert ctx.report.citations


async def test_a_context_over_its_window_ends_the_run_as_a_violation() -> None:
    small = configured("small", "", "", replace(EDITING, window=3_000))
    ctx = run(engines=acts(SEARCH), budget=Budget(turns=50))
    await carry_out(ctx, small)
    assert ctx.report.reason == StopReason.CONTEXT_LIMIT
    assert ctx.turns < 12
    assert max(tokens_of(*(p for m in messages for p in m.parts)) for _, messages in ctx.prompts) <= 3_000


async def test_an_agent_that_keeps_its_context_short_is_not_ended_by_its_window() -> None:
    def tidy(given: AgentInput) -> Act:
        if given.turn > 40:
            return DONE
        return prune(*(e.id for e in given.records)) if len(given.records) > 1 else SEARCH

    small = configured("small", "", "", replace(EDITING, window=6_000))
    ctx = run(engines={"agent": tidy}, budget=Budget(turns=60))
    state = await carry_out(ctx, small)
    assert ctx.report.reason == StopReason.ANSWERED
    assert len(state["records"]) <= 9


FAILURES = [
    (FailureKind.OUT_OF_BUDGET, "token_limit", StopReason.TOKEN_LIMIT),
    (FailureKind.INVALID_OUTPUT, "", StopReason.INVALID_OUTPUT),
    (FailureKind.OVERLOADED, "", StopReason.PROVIDER_DOWN),
    (FailureKind.CONTEXT_TOO_LONG, "", StopReason.CONTEXT_LIMIT),
]


@pytest.mark.parametrize(("kind", "stop", "reason"), FAILURES)
@pytest.mark.parametrize("flow", [graph, supo], ids=lambda g: g.name)
async def test_whatever_fails_there_is_a_partial_report_with_the_reason(
    flow: Any, kind: FailureKind, stop: str, reason: StopReason
) -> None:
    ctx = run(engines={"agent": failing(kind, stop)})
    await carry_out(ctx, flow)
    assert ctx.report.reason == reason
    assert ctx.report.status == "partial"


@pytest.mark.parametrize("asked", range(4))
async def test_every_node_asks_whether_to_stop_before_it_does_anything(asked: int) -> None:
    ctx = run(stops=[None] * asked + [StopReason.TOKEN_LIMIT], engines=acts(SEARCH))
    await carry_out(ctx, graph)
    expected = [StepKind.TURN, StepKind.TOOL] * 2
    assert [k for k in ctx.kinds() if k is not StepKind.REPORT] == expected[:asked]
    assert ctx.report.reason == StopReason.TOKEN_LIMIT


async def test_a_message_in_mid_run_stays_where_it_was_first_shown_and_puts_an_answer_off() -> None:
    def agent(given: AgentInput) -> Act:
        if given.turn == 2:
            ctx.say("Also say when the Heron departs last.")
        return {1: SEARCH, 2: DONE, 3: SEARCH}.get(given.turn, DONE)

    ctx = run(engines={"agent": agent}, forms={"agent": "plain"})
    await carry_out(ctx, graph)
    assert ctx.turns == 4
    assert len(rows(ctx.said)) == 1
    assert "Heron departs last" in ctx.said[2].messages[-1].text
    assert "not been handed over" in ctx.said[2].messages[-1].text
    assert ctx.report.reason == StopReason.ANSWERED


async def test_what_a_person_wrote_cannot_be_pruned() -> None:
    def agent(given: AgentInput) -> Act:
        if given.turn == 1:
            ctx.say("Mind the Heron.")
        return {1: SEARCH, 2: prune("r1"), 3: prune("r2")}.get(given.turn, DONE)

    ctx = run(engines={"agent": agent})
    await carry_out(ctx, graph)
    assert all("Mind the Heron." in "\n".join(m.text for m in messages) for _, messages in ctx.prompts[1:])


async def test_a_node_that_runs_again_is_given_what_it_was_given_the_first_time() -> None:
    ctx = run(engines=acts(SEARCH, SEARCH, prune("r1"), SEARCH, DONE))
    state = await carry_out(ctx, graph)
    first = ctx.given[-1][1]
    ctx.given.clear()

    class Runtime:
        context = ctx

    again: Any = {**state, "turn": state["turn"] - 1, "stop": ""}
    await Nodes(EDITING).agent(again, Runtime())  # type: ignore[arg-type]
    assert ctx.given[0][1] == first


async def test_nothing_of_an_earlier_question_is_in_a_later_run_of_the_thread() -> None:
    from langgraph.checkpoint.memory import InMemorySaver

    saver = InMemorySaver()
    await carry_out(run("When does the Heron depart first?"), graph, "thread", saver)
    second = run("What does a berth cost?")
    await carry_out(second, graph, "thread", saver)
    assert not any("Heron" in m.text for _, messages in second.prompts[:1] for m in messages)


# Without a model.


@pytest.mark.parametrize("flow", [graph, supo], ids=lambda g: g.name)
@pytest.mark.parametrize(("question", "wanted"), QUESTIONS)
async def test_a_question_about_the_documents_is_answered_without_a_model(
    flow: Any, question: str, wanted: str
) -> None:
    ctx = run(question)
    await carry_out(ctx, flow)
    assert ctx.report.answer
    assert wanted in ctx.report.answer.text
    assert ctx.report.answer.supported
    assert all(s.supported and not s.rejected for s in ctx.report.sentences())


async def test_without_a_model_a_full_context_is_pruned_to_what_tells_something() -> None:
    small = configured("small", "", "", replace(EDITING, window=2_400))
    ctx = run("What does a berth cost, how often is the tide gauge calibrated, and what is the wifi password?")
    await carry_out(ctx, small)
    (edit, *_) = [s.payload for s in ctx.steps if s.kind is StepKind.MEMORY]
    assert edit["deleted"]
    assert "[E" in edit["note"]
    assert ctx.report.answer
    assert "12 crowns" in ctx.report.answer.text
    assert "twice a year" in ctx.report.answer.text
    queries = [c.args["query"] for c in ctx.calls if c.tool == "search_library"]
    assert len(queries) == len(set(queries))


async def test_what_the_documents_do_not_say_is_said_to_be_missing() -> None:
    ctx = run("Who won the regatta of 1999?")
    await carry_out(ctx, graph)
    assert ctx.report.reason == StopReason.NOTHING_FOUND
    assert "Not found" in ctx.report.limits


# Summaries.


def summing(room: int, summaries: int = 7, question: str = QUESTION, specs: tuple[ToolSpec, ...] = LIBRARY) -> Graph:
    """The flow with room for so many tokens of records."""
    return configured("small", "", "", limits(room, summaries, question, specs))


def limits(room: int, summaries: int = 7, question: str = QUESTION, specs: tuple[ToolSpec, ...] = LIBRARY) -> Config:
    cards = tuple(Card(name=t.name, description=t.description, parameters=t.args.model_json_schema()) for t in specs)
    empty = AgentInput(question=question, tools=cards, window=10_000, edits=False, turn=1, remaining=1)
    full = chat.size(empty) + room
    return Config(full + TOKENS_FOR_A_SUMMARY, 400, False, full, summaries)


def summarising(turns: int) -> dict[str, Any]:
    """An agent that searches, sums up when asked, and answers in turn `turns`."""

    def agent(given: AgentInput) -> Act:
        if given.ask == "summary":
            return Act(summary=f"summary {given.stage} of [E1]")
        return DONE if given.turn >= turns else SEARCH

    return {"agent": agent}


async def test_a_full_context_is_summed_up_and_work_goes_on_from_question_and_latest_summary() -> None:
    flow = summing(1_200)
    ctx = run(engines=summarising(10), forms={"agent": "plain"})
    state = await carry_out(ctx, flow)
    assert ctx.report.reason == StopReason.ANSWERED
    assert state["summaries"] >= 2
    resets = [call for call in ctx.said if call.fracture is Fracture.COMPACTION]
    assert len(resets) == state["summaries"]
    start = ctx.said[0].messages
    for n, call in enumerate(resets, 1):
        assert len(call.messages) == 2
        assert call.messages[0] == start[0]
        assert call.messages[1].text.startswith(start[1].text)
        assert f"summary {n} of" in call.messages[1].text
        assert f"summary {n - 1} of" not in call.messages[1].text


async def test_no_prompt_is_longer_than_the_window_and_no_action_is_asked_for_in_a_full_context() -> None:
    for room in (500, 900, 2_000, 4_000):
        config = limits(room)
        ctx = run(engines=summarising(12), budget=Budget(turns=14))
        await carry_out(ctx, configured("small", "", "", config))
        for (_, asked), (_, messages) in zip(ctx.given, ctx.prompts, strict=True):
            length = tokens_of(*(p for m in messages for p in m.parts))
            assert length <= (config.window if asked.ask == "summary" else config.limit)


async def test_the_pair_that_did_not_fit_is_on_record_and_its_tool_ran_once() -> None:
    ctx = run(engines=summarising(10), forms={"agent": "plain"})
    await carry_out(ctx, summing(1_200))
    left_out = [s.payload for s in ctx.steps if s.kind is StepKind.MEMORY]
    assert left_out
    assert {p["op"] for p in left_out} == {"discard"}
    for payload in left_out:
        assert not payload["trainable"]
        pair = [ctx.steps[int(payload[name]) - 1].kind for name in ("action", "observation")]
        assert pair == [StepKind.TURN, StepKind.TOOL]
    assert len(ctx.calls) == sum(1 for call in ctx.said if call.text.startswith("<action>"))


async def test_summaries_close_their_segment_and_every_completion_is_in_one_segment() -> None:
    ctx = run(engines=summarising(10), forms={"agent": "plain"})
    state = await carry_out(ctx, summing(1_200))
    segments = rows(ctx.said)
    assert [text for row in segments for text in trained(row)] == [call.text for call in ctx.said]
    kinds = [[s.kind for call in row for s in call.spans] for row in segments]
    assert sum(k.count(SpanKind.SUMMARY) for k in kinds) == state["summaries"]
    assert all(SpanKind.SUMMARY not in k[:-1] for k in kinds)


async def test_after_the_last_summary_a_full_context_is_the_end() -> None:
    ctx = run(engines=summarising(99), budget=Budget(turns=40))
    state = await carry_out(ctx, summing(1_200, summaries=2))
    assert state["summaries"] == 2
    assert ctx.report.reason == StopReason.CONTEXT_LIMIT
    assert ctx.turns < 40


async def test_without_an_overflow_it_is_a_plain_loop_with_one_segment() -> None:
    ctx = run(engines=summarising(4), forms={"agent": "plain"})
    state = await carry_out(ctx, supo)
    assert state["summaries"] == 0
    assert len(rows(ctx.said)) == 1


async def test_something_else_than_the_summary_that_was_asked_for_ends_the_run() -> None:
    ctx = run(engines=acts(SEARCH), budget=Budget(turns=40))
    await carry_out(ctx, summing(1_200))
    assert ctx.report.reason == StopReason.INVALID_OUTPUT


async def test_who_sums_up_has_no_edits() -> None:
    ctx = run(engines=acts(SEARCH, prune("r1"), DONE))
    await carry_out(ctx, supo)
    assert not [t for t in ctx.given[0][1].tools if t.name in EDITS]
    assert [e.id for e in ctx.given[-1][1].records] == ["r1", "r2"]
    assert not ctx.given[-1][1].records[1].ok


def test_a_window_without_room_for_the_summary_is_refused() -> None:
    with pytest.raises(ValueError, match="window"):
        Config(window=1_000, observation=100, edits=False, full=900, summaries=1)
    assert SUMMING_UP.full
    assert SUMMING_UP.window - SUMMING_UP.full >= TOKENS_FOR_A_SUMMARY


# Forms.


REPORT = ReportDraft(
    title="Tides",
    answer="Twice a year. [E1]",
    sections=(DraftSection(heading="Found", sentences=(DraftSentence(text="So it is."),)),),
)
ACTS = [SEARCH, prune("r1", note='a "note"\nwith lines'), write("n"), Act(summary="s"), DONE, Act(answer=REPORT)]


def blank(**more: Any) -> AgentInput:
    return AgentInput(question=QUESTION, tools=(), window=9, edits=True, turn=1, remaining=1, **more)


@pytest.mark.parametrize("act", [*ACTS, Act(answer=REPORT, found=False)])
def test_what_is_written_is_read_back(act: Act) -> None:
    assert plain.parse(plain.write(act, blank()), blank()) == act
    assert parse_output(chat.as_json(act, blank()), Act) == act


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('<action>search_library {"query": "x"}</action>', SpanKind.ACTION),
        ('<think>hm</think>\n<memory>prune {"delete_ids": ["r1"]}</memory>', SpanKind.MEMORY_EDIT),
        ("<answer>\nTwice a year. [E1]\n</answer> ", SpanKind.ANSWER),
        ("<nothing_found>No.</nothing_found>", SpanKind.ANSWER),
        ("<summary>All of it.</summary>", SpanKind.SUMMARY),
    ],
)
def test_a_plain_text_is_read_strictly_and_kept_as_it_was_written(text: str, kind: SpanKind) -> None:
    act = plain.parse(text, blank())
    assert isinstance(act, Act)
    assert plain.write(act, blank()) == text
    (span,) = plain.spans(text)
    assert span.kind is kind
    assert text[span.start] == "<"
    assert text[span.end - 1] == ">"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "search_library",
        "<action></action>",
        '<action>search_library {"query": }</action>',
        "<action>search_library</action><answer>x</answer>",
        "Here: <answer>x</answer>",
        '<action>prune {"delete_ids": ["r1"]}</action>',
        '<memory>search_library {"query": "x"}</memory>',
        "<summary> </summary>",
        "<answer></answer>",
    ],
)
def test_a_plain_text_of_another_form_is_refused(text: str) -> None:
    assert isinstance(plain.parse(text, blank()), Unusable)


@settings(max_examples=60)
@given(st.text(max_size=60))
def test_no_text_breaks_a_parser(text: str) -> None:
    question = held_out(1)[0].question
    for form in (plain.FORM, compact.FORM):
        form.parse(text, blank().model_copy(update={"question": question}))
        form.spans(text)


def test_the_schema_that_a_model_is_shown_has_no_place_for_our_own_field() -> None:
    assert "written" not in Act.model_json_schema()["properties"]


@pytest.mark.parametrize("both", [{}, {"tool": "x", "summary": "s"}, {"summary": " "}])
def test_an_act_is_exactly_one_thing(both: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="exactly one"):
        Act.model_validate(both)


# The made-up world.

FACTS = (Known("teacher", "Karo", ("Mila",), True), Known("works", "Mila", (), True), Known("born", "X", ("9",), True))


def test_a_note_does_not_tell_in_which_order_arguments_were_kept() -> None:
    args = {"query": "tower", "limit": 12}
    ways = [args, dict(reversed(args.items()))]
    act = Act(tool="search_library", args=args)
    said = [Found(tool="search_library", args=way, status="ok", content={}) for way in ways]
    entries = [Entry(id="r1", turn=1, seq=3, act=act, observation="", fresh=True, found=found) for found in said]
    notes = [extractive.agent(blank(ask="summary", records=(entry,))).summary for entry in entries]
    assert notes[0] == notes[1]
    assert '"limit": 12' in notes[0]


def test_facts_in_a_note_are_read_back() -> None:
    assert facts_in(facts_text(FACTS)) == FACTS
    assert facts_in(facts_text(())) == ()
    assert facts_in("The teacher of it: unclear") == ()


async def compact_trial(flow: Any = graph, hops: int = 4, **more: Any) -> Trial:
    task = next(t for t in held_out(200) if t.hops == hops)
    return await trial(flow, task, "oracle", forms={"agent": "compact"}, **more)


async def test_the_compact_form_only_appends_within_a_segment_and_is_short() -> None:
    done = await compact_trial()
    assert done.right
    segments = rows(done.ctx.said)
    assert len(segments) == 2
    assert [text for row in segments for text in trained(row)] == [call.text for call in done.ctx.said]
    words = sum(len(call.text.split()) for call in done.ctx.said)
    new = words + sum(len(m.text.split()) for row in segments for m in row[-1].messages if m.role == "user")
    assert new <= 128


async def test_a_note_holds_what_the_oracle_still_needs_and_no_more() -> None:
    done = await compact_trial()
    (note,) = [s.payload["note"] for s in done.ctx.steps if s.kind is StepKind.MEMORY]
    facts = facts_in(note)
    assert facts == needed(done.task.question, facts)
    assert needed(done.task.question, (*facts, Known("home", "Nobody at all", ("x",), True))) == facts


async def test_the_world_can_be_summed_up() -> None:
    task = next(t for t in held_out(200) if t.hops == 4)
    for form in ("plain", "compact"):
        flow = summing(250, question=task.question, specs=SPECS)
        done = await trial(flow, task, "oracle", forms={"agent": form}, turns=30)
        assert done.right, [c.text for c in done.ctx.said]
        assert any(call.fracture is Fracture.COMPACTION for call in done.ctx.said)
        rows(done.ctx.said)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["", "plain", "compact"])
@pytest.mark.parametrize("flow", [graph, supo], ids=lambda g: g.name)
async def test_the_oracle_answers_and_a_random_planner_does_not(flow: Any, form: str) -> None:
    forms = {"agent": form} if form else {}
    assert await accuracy(flow, "oracle", forms=forms) >= 0.95
    assert await accuracy(flow, "random", forms=forms) < 0.25


def test_the_diagram_shows_the_loop() -> None:
    for flow in (graph, supo):
        drawn = flow.build().compile().get_graph().draw_mermaid()
        for edge in ("agent -.-> tool", "agent -.-> memory", "tool -.-> agent", "tool -.-> summarise"):
            assert edge in drawn
