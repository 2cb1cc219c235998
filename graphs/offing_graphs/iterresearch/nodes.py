"""The nodes of the graph.

Each node checks the limits, makes the same calls for the same state, and returns ids and
counters. No node decides by reading prose: stops and failures are values, and every exit
leads to a report.
"""

from typing import TYPE_CHECKING, Any

from offing.sdk import (
    BoundaryReason,
    DraftSection,
    EngineFailure,
    InvalidOutput,
    ReportDraft,
    RunContext,
    StepDraft,
    StepKind,
    StopReason,
    shorten_line,
)
from offing_graphs.extractive.report import EARLY_STOP_TEXTS
from offing_graphs.iterresearch.extractive import is_extractive_report
from offing_graphs.iterresearch.roles import RESEARCHERS_BY_PHASE
from offing_graphs.iterresearch.schemas import Round, TurnPhase
from offing_graphs.iterresearch.state import State, find_last_output, load_workspace
from offing_graphs.shared.depth import count_barren_turns, is_deep, is_saturated
from offing_graphs.shared.findings import passages_from_evidence
from offing_graphs.shared.fitted_calls import call_fitted
from offing_graphs.shared.follow_up import submit_findings
from offing_graphs.shared.memory import MAX_EVIDENCE, load_call_records
from offing_graphs.shared.report import add_title, build_quote_report
from offing_graphs.shared.state import StateUpdate
from offing_graphs.shared.stop_reasons import check_limits, stop_reason_from_failure
from offing_graphs.shared.task import find_last_message_seq, read_new_messages, task_from_run
from offing_graphs.shared.text_reports import parse_report

if TYPE_CHECKING:
    from langgraph.runtime import Runtime

UNFINISHED_HEADING = "The researcher's report when the run ended"


async def research(state: State, runtime: "Runtime[Any]") -> StateUpdate:
    """Begin a turn: rebuild the workspace and call the researcher once."""
    ctx: RunContext = runtime.context
    reason = _check_limits(ctx, state) or await _find_saturation(ctx, state)
    if reason and not _can_finish_early(reason, state):
        return {"stop": reason}
    turn = state["turn"] + 1
    await ctx.begin_turn(turn)
    last_message_seq = await read_new_messages(ctx, state["seen_message_seq"], turn)
    stage = _select_phase(ctx, state, turn, reason)
    inputs = await load_workspace(ctx, state, stage, last_message_seq)
    reset = BoundaryReason.WORKSPACE_RESET if state["round"] else None
    reply = await call_fitted(ctx, RESEARCHERS_BY_PHASE[stage], inputs, turn=turn, boundary=reset)
    if isinstance(reply, EngineFailure):
        return {"turn": turn, "seen_message_seq": last_message_seq, "stop": stop_reason_from_failure(reply)}
    await ctx.append_steps(_draft_report_note(reply.output, turn))
    newest = await find_last_message_seq(ctx, last_message_seq)
    stop = _resolve_stop_reason(
        reply.output, reason, ctx.run.budget.max_turns <= turn, has_new_message=newest > last_message_seq
    )
    return {"turn": turn, "round": reply.seq, "seen_message_seq": last_message_seq, "stop": stop}


async def act(state: State, runtime: "Runtime[Any]") -> StateUpdate:
    """Make the tool calls that the researcher requested, at the same time.

    A call that cannot be made gives an ordinary result. No call is made if an early finish was
    requested or if a user message arrived during an answer. The next turn then handles it.
    """
    ctx: RunContext = runtime.context
    reason = check_limits(ctx, state["turn"])
    if reason and reason is not StopReason.FINISH_REQUESTED:
        return {"stop": reason}
    last = await find_last_output(ctx, state)
    calls = [call.to_tool_call() for call in last.actions] if last else []
    if reason or not calls:
        return {"tool": 0, "more_tools": []}
    first, *more = await ctx.call_tools(calls, turn=state["turn"])
    return {"tool": first.seq, "more_tools": [result.seq for result in more]}


async def write(state: State, runtime: "Runtime[Any]") -> StateUpdate:
    """Submit the report, for any stop reason. This is the last action of the run."""
    ctx: RunContext = runtime.context
    reason = StopReason(state["stop"])
    last = await find_last_output(ctx, state)
    if last and last.answer:
        draft = _add_stop_reason(add_title(last.answer, ctx.run.question), reason)
        await submit_findings(ctx, RESEARCHERS_BY_PHASE[TurnPhase.FINAL], draft, reason)
    else:
        draft = await _build_unfinished_report(ctx, last, reason)
        writer = RESEARCHERS_BY_PHASE[TurnPhase.FINAL]
        await submit_findings(ctx, writer, _add_stop_reason(draft, reason), reason, is_checked=False)
    return {"stop": reason}


def _check_limits(ctx: RunContext, state: State) -> StopReason | None:
    """Check the limits. Unlike in other graphs, nothing extends a run beyond its turns."""
    reason = check_limits(ctx, state["turn"], begins_turn=True)
    return StopReason.TURN_LIMIT if reason and state["turn"] >= ctx.run.budget.max_turns else reason


async def _find_saturation(ctx: RunContext, state: State) -> StopReason | None:
    """Return the stop reason of a deep run whose latest turns brought nothing new. `None` means that it continues."""
    if not is_deep(ctx.run) or state["turn"] < count_barren_turns(ctx.run.budget.max_turns):
        return None
    if await find_last_message_seq(ctx, state["seen_message_seq"]) > state["seen_message_seq"]:
        return None
    records = await load_call_records(ctx, await ctx.get_evidence(MAX_EVIDENCE))
    return StopReason.SATURATED if is_saturated(ctx.run, state["turn"], 0, records, ()) else None


def _can_finish_early(reason: StopReason, state: State) -> bool:
    """Return whether the researcher can write the report of an early finish, or of a deep run that is saturated.

    This needs the output of an earlier turn.
    """
    return reason in {StopReason.FINISH_REQUESTED, StopReason.SATURATED} and state["round"] > 0


def _select_phase(ctx: RunContext, state: State, turn: int, reason: StopReason | None) -> TurnPhase:
    if reason or turn >= ctx.run.budget.max_turns or not ctx.tools:
        return TurnPhase.FINAL
    return TurnPhase.MIDDLE if state["round"] else TurnPhase.FIRST


def _resolve_stop_reason(output: Round, reason: StopReason | None, is_last_turn: bool, *, has_new_message: bool) -> str:
    """Return why the run ends after this turn.

    Empty means that it continues, which includes an answer during which a user message arrived.
    """
    if output.answer is None:
        return ""
    if reason is StopReason.SATURATED and not output.answered:
        return StopReason.NOTHING_FOUND
    if reason or is_last_turn:
        return reason or StopReason.TURN_LIMIT
    if has_new_message:
        return ""
    return StopReason.ANSWERED if output.answered else StopReason.NOTHING_FOUND


def _draft_report_note(output: Round, turn: int) -> StepDraft:
    """Return a step draft with a version of the report, which shows how the report changes."""
    first = next((line.strip(" #-*") for line in output.report.splitlines() if line.strip(" #-*")), "")
    payload = {"report": output.report, "round": turn}
    return StepDraft(StepKind.NOTE, shorten_line(first), payload, label="report", turn=turn)


async def _build_unfinished_report(ctx: RunContext, last: Round | None, reason: StopReason) -> ReportDraft:
    """Build a report of quotes, with the last report in front if a model wrote one."""
    evidence = await ctx.get_evidence(MAX_EVIDENCE)
    records = await load_call_records(ctx, evidence)
    draft = build_quote_report(task_from_run(ctx.run), passages_from_evidence(evidence), records, reason)
    sections = _split_unfinished_report(last.report) if last else ()
    return draft.model_copy(update={"sections": (*sections, *draft.sections)})


def _split_unfinished_report(report: str) -> tuple[DraftSection, ...]:
    """Split a report in prose into sections.

    Empty means that the model-free researcher wrote the report.
    """
    draft = None if is_extractive_report(report) else parse_report(report, UNFINISHED_HEADING)
    if draft is None or isinstance(draft, InvalidOutput):
        return ()
    lead = parse_report(f"## {UNFINISHED_HEADING}\n- {draft.answer}", UNFINISHED_HEADING) if draft.answer else None
    first = lead.sections if isinstance(lead, ReportDraft) else ()
    return (*first, *(s if s.heading else s.model_copy(update={"heading": UNFINISHED_HEADING}) for s in draft.sections))


def _add_stop_reason(draft: ReportDraft, reason: StopReason) -> ReportDraft:
    """Add to the limits of a draft why the run ended early."""
    early = EARLY_STOP_TEXTS.get(reason)
    notice = f"Collecting ended early: {early}." if early else ""
    if not notice or notice in draft.limits:
        return draft
    return draft.model_copy(update={"limits": f"{notice} {draft.limits}".strip()})
