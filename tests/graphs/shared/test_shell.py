"""What every graph is built on: an empty state, the task, records of calls, and a report without a model."""

from typing import Any

from offing.core.run import Budget
from offing.core.tool import ToolResult, ToolStatus
from offing.sdk import DraftSection, ReportDraft, StepDraft, StepKind, ToolCall
from offing_graphs.hiper.state import State as HiperState
from offing_graphs.memact.state import State as MemactState
from offing_graphs.shared.graph import compute_version
from offing_graphs.shared.memory import (
    append_record,
    build_result_fields,
    draft_record,
    load_call_records,
    load_records,
)
from offing_graphs.shared.report import add_title, build_fallback_report, build_quote_report
from offing_graphs.shared.schemas import MemoryRecord, Plan, TaskContext
from offing_graphs.shared.state import build_initial_state, find_output
from offing_graphs.shared.task import MAX_USER_MESSAGES, find_last_message_seq, load_task
from tests.graphs.corpus import harbour
from tests.graphs.in_memory_context import InMemoryContext

PLAN = Plan(justification="j", context="query: berth", sub_goal="Find\nberths", tool="search_library")


def context(question: str = "What does a berth cost?") -> Any:
    """The stand-in, which lacks what these functions do not use."""
    return InMemoryContext(harbour(), question, Budget(max_turns=4), earlier=(("Before?", "Yes."),))


def record(turn: int, **more: Any) -> MemoryRecord:
    fields: dict[str, Any] = {"sub_goal": "g", "tool": "t", "args": {}, "status": "ok", "finding": "f"}
    return MemoryRecord(turn=turn, **fields | more)


def test_an_initial_state_has_every_key_with_its_empty_value() -> None:
    run = context().run
    assert build_initial_state(HiperState)(run) == {
        "turn": 0,
        "seen_message_seq": 0,
        "stop": "",
        "output_seq": 0,
        "answer": 0,
    }
    first, second = build_initial_state(MemactState)(run), build_initial_state(MemactState)(run)
    assert first["records"] == []
    first["records"].append(1)
    assert second["records"] == []


def test_a_version_covers_the_packages_that_a_graph_names() -> None:
    versions = {compute_version("agentflow"), compute_version("router"), compute_version("router", "agentflow")}
    assert len(versions) == 3


async def test_a_task_holds_the_latest_messages_up_to_a_step() -> None:
    ctx = context()
    for n in range(MAX_USER_MESSAGES + 3):
        ctx.say(f"m{n}")
    task = await load_task(ctx, MAX_USER_MESSAGES + 1)
    assert task.user_messages == tuple(f"m{n}" for n in range(1, MAX_USER_MESSAGES + 1))
    assert [e.question for e in task.earlier] == ["Before?"]
    assert await find_last_message_seq(ctx, 0) == MAX_USER_MESSAGES + 3
    assert await find_last_message_seq(ctx, 99) == 99


async def test_an_output_is_absent_while_the_state_names_no_step() -> None:
    ctx = context()
    (seq,) = await ctx.append_steps(StepDraft(StepKind.PLAN, "p", {"output": PLAN.model_dump()}))
    assert await find_output(ctx, 0, Plan) is None
    assert await find_output(ctx, seq, Plan) == PLAN


async def test_a_record_counts_the_passages_that_no_earlier_record_returned() -> None:
    ctx = context()
    result = await ctx.call_tool(ToolCall("search_library", {"query": "ferry tern reserve"}), turn=1)
    returned = await append_record(ctx, PLAN, result, (record(1, evidence=("E1",)),), 2, "half\nof it")
    (stored,) = await load_records(ctx, None, MemoryRecord)
    assert stored.evidence == tuple(e.id for e in returned)
    assert len(returned) > 1
    assert stored.fresh == len(returned) - 1
    assert (stored.sub_goal, stored.verdict_before) == ("Find berths", "half of it")


async def test_records_of_the_current_turn_are_not_loaded() -> None:
    ctx = context()
    await ctx.append_steps(*(draft_record(record(turn)) for turn in (1, 2, 3)))
    assert [r.turn for r in await load_records(ctx, 3, MemoryRecord)] == [1, 2]
    assert [r.turn for r in await load_records(ctx, None, MemoryRecord)] == [1, 2, 3]


async def test_calls_become_records_for_graphs_that_store_none() -> None:
    ctx = context()
    for query in ("berth", "berth", "nothing like it"):
        await ctx.call_tool(ToolCall("search_library", {"query": query}), turn=1)
    await ctx.call_tool(ToolCall("calculate", {"expression": "1 + 1"}), turn=2)
    first, again, other, sum_ = await load_call_records(ctx, await ctx.get_evidence(100))
    assert (first.sub_goal, other.sub_goal, sum_.sub_goal) == ("berth", "nothing like it", "1 + 1")
    assert first.fresh == len(first.evidence) > 0
    assert again.fresh == 0
    assert sum_.value == "1 + 1 = 2"


def test_a_failed_call_is_shown_with_its_reason() -> None:
    draft = draft_record(record(1, status="failed", finding="It is down."), "No subgoal", "subgoal")
    assert (draft.title, draft.label, draft.detail, draft.ok) == ("No subgoal", "subgoal", "It is down.", False)


async def test_a_report_of_quotes_needs_neither_a_model_nor_evidence() -> None:
    ctx = context()
    assert build_fallback_report(ctx.run, ()).answer
    await ctx.call_tool(ToolCall("search_library", {"query": ctx.question}), turn=1)
    draft = build_fallback_report(ctx.run, tuple(ctx.collected))
    assert "12 crowns" in draft.answer
    assert "ended early" not in draft.limits
    task = TaskContext(question=ctx.question)
    assert "the limit on turns was reached" in build_quote_report(task, (), reason="turn_limit").limits


def test_only_a_report_without_a_title_gets_the_question() -> None:
    empty = ReportDraft(title=" ", sections=(DraftSection(heading="h", sentences=()),))
    assert add_title(empty, "What\nis it?").title == "What is it?"
    assert add_title(empty.model_copy(update={"title": "T"}), "What?").title == "T"


def test_a_failed_result_has_no_value() -> None:
    result = ToolResult(1, "look", {"a": 1}, ToolStatus.FAILED, {"x": 1}, "It broke.")
    fields = build_result_fields("g", result, (), ())
    assert (fields["status"], fields["finding"], fields["value"]) == ("failed", "It broke.", "")
