"""The research team: parts, a plan that a person may change, colleagues or a sequence, and one report of it all."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any
from uuid import UUID

from langgraph.checkpoint.memory import InMemorySaver

from offing.core.model import FailureKind
from offing.core.run import Budget, StopReason
from offing.core.step import StepKind
from offing.core.tool import SourceSpan
from offing.sdk import (
    ChildFinding,
    ChildRequest,
    ChildResult,
    DraftCitation,
    DraftSection,
    DraftSentence,
    PlanProposal,
    PlanReview,
    ReportDraft,
    ReviewDecision,
    RunStatus,
    RunUsage,
)
from offing_graphs.research_team import graph, reviewed
from offing_graphs.research_team.graph import configure_graph
from offing_graphs.research_team.nodes import TeamConfig, record_from_child
from offing_graphs.research_team.state import State
from offing_graphs.shared.schemas import Analysis
from tests.graphs.corpus import harbour
from tests.graphs.in_memory_context import Engine, InMemoryContext, Library, Team, carry_out, failing
from tests.graphs.world_runs import accuracy

ONE = "How often is the tide gauge calibrated?"
TWO = "What does a berth cost and how can one pay?"


def run(question: str = TWO, **more: Any) -> InMemoryContext:
    return InMemoryContext(harbour(), question, **more)


def team(library: Library, *, turns: int = 2, status: RunStatus = RunStatus.DONE) -> Team:
    """Colleagues who find the best passage for each part."""

    def work(request: ChildRequest) -> tuple[ChildResult, Sequence[SourceSpan]]:
        document, span, _ = library.search(request.question, 1)[0]
        finding = ChildFinding(f"{document.title} says so.")
        spent = RunUsage(turns=turns)
        stop = StopReason.ANSWERED if status is RunStatus.DONE else StopReason.CANCELLED
        result = ChildResult(0, UUID(int=1), request.question, status, stop, spent, "So.", "", (), (finding,))
        deleted = status is not RunStatus.DONE
        return result, () if deleted else (span,)

    return work


def parts(*named: str) -> Engine:
    return lambda _inputs: Analysis(summary="A question in parts.", sub_questions=named)


def questions_of(ctx: InMemoryContext, role: str) -> list[str]:
    return [inputs.question for name, inputs in ctx.role_inputs if name == role]


def never(_inputs: Any) -> Any:
    return _verdict(False)


async def test_alone_each_part_is_worked_on_before_the_whole_is_verified() -> None:
    ctx = run()
    state = await carry_out(ctx, graph)
    assert len(ctx.sent) == 2
    assert state["team"] == 0
    questions = questions_of(ctx, "planner")
    assert len(set(questions)) == 2
    assert questions_of(ctx, "verifier")[-1] == TWO
    assert ctx.report.stop_reason == StopReason.ANSWERED
    assert all(s.is_supported for s in ctx.report.sentences())


async def test_a_part_sees_nothing_of_the_others() -> None:
    ctx = run()
    await carry_out(ctx, graph)
    planners = [inputs for name, inputs in ctx.role_inputs if name == "planner"]
    second = next(inputs for inputs in planners if inputs.question != planners[0].question)
    assert second.memory == ()
    assert second.analysis.sub_questions == (second.question,)


async def test_a_part_has_its_share_of_the_turns() -> None:
    engines = {"lead": parts("berth costs", "ways to pay"), "verifier": never}
    ctx = run(budget=Budget(max_turns=6), engines=engines)
    await carry_out(ctx, graph)
    questions = questions_of(ctx, "planner")
    assert questions == ["berth costs"] * 3 + ["ways to pay"] * 3
    assert ctx.report.stop_reason == StopReason.TURN_LIMIT


async def test_one_part_is_the_question_itself_and_nobody_else_is_asked() -> None:
    ctx = run(ONE)
    await carry_out(ctx, graph)
    assert ctx.sent == []
    assert set(questions_of(ctx, "planner")) == {ONE}
    assert ctx.report.answer
    assert "twice a year" in ctx.report.answer.text


async def test_colleagues_work_on_the_parts_and_their_passages_are_cited() -> None:
    library = harbour()
    ctx = InMemoryContext(library, TWO, team=team(library))
    state = await carry_out(ctx, graph)
    assert [r.question for r in ctx.sent] == list(_parts(ctx))
    assert {r.graph for r in ctx.sent} == {"agentflow"}
    assert (state["team"], state["turn"], ctx.calls) == (2, 4, [])
    assert ctx.report.citations
    assert {c.span.text_id for c in ctx.report.citations} <= {e.span.text_id for e in ctx.collected}
    assert ctx.report.stop_reason == StopReason.ANSWERED


async def test_what_colleagues_bring_can_be_cited_by_a_model_by_the_ids_it_was_shown() -> None:
    library = harbour()

    def write(inputs: Any) -> ReportDraft:
        piece = inputs.evidence[-1]
        text = DraftSentence(
            text="It is so.", citations=(DraftCitation(evidence=piece.id, quote=piece.text.split(".")[0]),)
        )
        return ReportDraft(title="t", sections=(DraftSection(heading="h", sentences=(text,)),))

    ctx = InMemoryContext(library, TWO, team=team(library), engines={"generator": write})
    await carry_out(ctx, graph)
    assert ctx.report.sentences()[0].is_supported
    (rendered,) = [inputs for name, inputs in ctx.role_inputs if name == "generator"]
    assert all("[E" in record.finding for record in rendered.memory)


def team_that_cites(library: Library, *, read: int = 12) -> Team:
    """Colleagues who bring four passages of those that they read, quote the first, and name the second."""
    numbers = count()

    def work(request: ChildRequest) -> tuple[ChildResult, Sequence[SourceSpan]]:
        result, _ = team(library)(request)
        finding = ChildFinding("It is so.", ("0", "1"))
        fields: dict[str, Any] = {"cited": ("0", "1"), "quoted": ("0",), "read_passages": read, "findings": (finding,)}
        fields |= {"limits": "Nobody says since when.", "open_points": ("How one pays: in cash?",)}
        first = 4 * next(numbers)
        spans = [span for _, span, *_ in library.passages[first : first + 4]]
        return replace(result, stop=StopReason.TURN_LIMIT, **fields), spans

    return work


async def test_what_children_left_open_and_why_they_stopped_reaches_the_lead() -> None:
    library = harbour()
    ctx = InMemoryContext(library, TWO, team=team_that_cites(library), engines={"verifier": lambda _: _verdict(True)})
    await carry_out(ctx, graph)
    for role in ("verifier", "generator"):
        (prompt,) = ["\n".join(m.text for m in messages) for name, messages in ctx.prompts if name == role]
        assert prompt.count("It ended: turn limit. It read 12 passages and cited 2.") == 2
        assert prompt.count("Nobody says since when.") == 2
        assert prompt.count("How one pays: in cash?") == 2


async def test_the_writer_gets_what_children_cited_and_every_other_passage_is_counted() -> None:
    library = harbour()
    ctx = InMemoryContext(library, TWO, team=team_that_cites(library), engines={"verifier": lambda _: _verdict(True)})
    await carry_out(ctx, graph)
    (inputs,) = [inputs for name, inputs in ctx.role_inputs if name == "generator"]
    (messages,) = [messages for name, messages in ctx.prompts if name == "generator"]
    prompt = "\n".join(m.text for m in messages)
    children = [record.child for record in inputs.memory]
    cited = {id for child in children for id in child.cited}
    shown_ids = re.findall(r"^Passage (E\d+) ", prompt, re.MULTILINE)
    (uncited,) = map(int, re.findall(r"(\d+) more passages were read", prompt))
    assert set(shown_ids) == cited
    assert set(shown_ids[:2]) == {id for child in children for id in child.quoted}
    assert sum(child.read_passages for child in children) == uncited + sum(len(child.cited) for child in children)
    assert sum(m.omitted_passages for m in messages) == uncited == 20
    verifier = next(inputs for name, inputs in ctx.role_inputs if name == "verifier")
    assert len(verifier.evidence) > len(shown_ids)


async def test_the_passages_of_a_child_without_a_report_stay() -> None:
    library = harbour()

    def work(request: ChildRequest) -> tuple[ChildResult, Sequence[SourceSpan]]:
        result, _ = team(library, status=RunStatus.CANCELLED)(request)
        return replace(result, findings=()), [span for _, span, _ in library.search(request.question, 2)]

    ctx = InMemoryContext(library, TWO, team=work, engines={"verifier": lambda _: _verdict(True)})
    await carry_out(ctx, graph)
    (inputs,) = [inputs for name, inputs in ctx.role_inputs if name == "generator"]
    assert len(inputs.evidence) == len(ctx.collected) > 0
    assert inputs.uncited_passages == 0


async def test_a_long_report_of_a_child_says_how_many_sentences_are_not_shown() -> None:
    result = replace(
        team(harbour())(ChildRequest(ONE))[0],
        findings=tuple(ChildFinding(f"Sentence {n} of the report of a child run.") for n in range(80)),
    )
    finding = record_from_child(result, 3).finding
    sentence_count = finding.count("Sentence ")
    assert f"({80 - sentence_count} more sentences of its report are not shown here.)" in finding
    assert len(finding) < 1_700


async def test_where_something_is_missing_the_loop_continues_with_the_whole_question() -> None:
    library = harbour()
    messages = [False, True]
    ctx = InMemoryContext(library, TWO, team=team(library), engines={"verifier": lambda _g: _verdict(messages.pop(0))})
    await carry_out(ctx, graph)
    assert questions_of(ctx, "planner") == [TWO]
    first = next(inputs for name, inputs in ctx.role_inputs if name == "planner")
    assert (first.turn, len(first.memory)) == (5, 2)


async def test_colleagues_have_three_quarters_of_the_turns() -> None:
    ctx = run(budget=Budget(max_turns=16))
    await carry_out(ctx, graph)
    assert [r.budget and r.budget.max_turns for r in ctx.sent] == [6, 6]


async def test_colleagues_who_bring_nothing_leave_a_report_that_says_so() -> None:
    library = harbour()
    ctx = InMemoryContext(library, TWO, team=team(library, status=RunStatus.CANCELLED), budget=Budget(max_turns=4))
    await carry_out(ctx, graph)
    assert ctx.report.stop_reason != StopReason.ANSWERED


async def test_a_person_edits_the_plan_and_the_team_follows_it() -> None:
    edited = PlanReview(
        ReviewDecision.EDITED, PlanProposal(("What does a berth cost?", "  ", "When does the Heron sail?"))
    )
    ctx = run(reviews=[edited])
    await carry_out(ctx, reviewed)
    assert [r.question for r in ctx.sent] == ["What does a berth cost?", "When does the Heron sail?"]
    assert ctx.proposals[0].goal == TWO


async def test_a_comment_asks_for_another_plan_and_the_lead_reads_it() -> None:
    comment = PlanReview(ReviewDecision.COMMENTED, PlanProposal(()), "Only the money, please.")
    ctx = run(reviews=[comment])
    await carry_out(ctx, reviewed)
    leads = [inputs for name, inputs in ctx.role_inputs if name == "lead"]
    assert [inputs.user_messages for inputs in leads] == [(), ("Only the money, please.",)]
    assert len(ctx.proposals) == 2


async def test_without_a_person_the_plan_stays_and_comments_end() -> None:
    ctx = run()
    await carry_out(ctx, reviewed)
    assert (len(ctx.proposals), ctx.report.stop_reason) == (1, StopReason.ANSWERED)
    forever = run(reviews=[PlanReview(ReviewDecision.COMMENTED, PlanProposal(()), "Again.") for _ in range(9)])
    await carry_out(forever, reviewed)
    assert len(forever.proposals) == 4
    assert forever.reports


async def test_without_a_review_nobody_is_shown_the_plan() -> None:
    ctx = run(reviews=[PlanReview(ReviewDecision.COMMENTED, PlanProposal(()), "Stop.")])
    await carry_out(ctx, graph)
    assert ctx.proposals == []


async def test_a_failing_lead_ends_in_a_report_that_says_why() -> None:
    ctx = run(engines={"lead": failing(FailureKind.OVERLOADED)})
    await carry_out(ctx, graph)
    assert ctx.report.stop_reason == StopReason.PROVIDER_DOWN


async def test_the_state_holds_numbers_and_reasons_only_and_start_sets_all_of_them() -> None:
    ctx = run()
    state = await carry_out(ctx, graph)
    assert set(state) == set(graph.initial_state(ctx.run)) == set(State.__annotations__)
    assert all(isinstance(v, int) or len(v) < 20 for v in state.values())


async def test_a_second_question_of_the_thread_starts_anew() -> None:
    saver = InMemorySaver()
    await carry_out(run(TWO), graph, saver=saver)
    second = run(ONE)
    await carry_out(second, graph, saver=saver)
    assert second.kinds()[0] is StepKind.ANALYSIS
    assert second.report.stop_reason == StopReason.ANSWERED


async def test_in_a_world_the_oracle_is_right_and_chance_is_not() -> None:
    assert await accuracy(graph, "oracle", 40) >= 0.95
    assert await accuracy(graph, "random", 40) < 0.4


async def test_a_team_that_may_not_be_sent_is_not_asked_for() -> None:
    ctx = run()
    await carry_out(ctx, configure_graph("alone", TeamConfig(team=False)))
    assert ctx.sent == []
    assert ctx.report.citations


def _parts(ctx: InMemoryContext) -> tuple[str, ...]:
    (analysis,) = (s for s in ctx.steps if s.kind is StepKind.ANALYSIS)
    return tuple(analysis.payload["output"]["sub_questions"])


def _verdict(stop: bool) -> Any:
    from offing_graphs.agentflow.schemas import Verdict as Said
    from offing_graphs.shared.schemas import Coverage

    return Said(analysis="So.", coverage=(Coverage(sub_question="q", covered=stop),), stop=stop)
