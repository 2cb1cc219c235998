"""The nodes of the graph.

Each node checks the limits, makes the same calls for the same state, and returns ids and
counters. No node decides by reading prose: stops are actions and stop reasons, and failures
are values.
"""

from typing import TYPE_CHECKING, Any

from offing.sdk import EngineFailure, ReportDraft, RunContext, StopReason, ToolCall, shorten_line
from offing_graphs.hiper.roles import AGENT
from offing_graphs.hiper.schemas import ANSWER, AgentInput, Turn
from offing_graphs.hiper.segments import build_empty_record, build_tool_record, draft_turn_record
from offing_graphs.hiper.state import State, load_inputs, load_turn_records
from offing_graphs.shared.fitted_calls import call_fitted
from offing_graphs.shared.follow_up import submit_findings
from offing_graphs.shared.memory import MAX_EVIDENCE, has_findings
from offing_graphs.shared.report import add_title, build_quote_report
from offing_graphs.shared.state import StateUpdate, load_output
from offing_graphs.shared.stop_reasons import FINAL_ANSWER_REASONS, check_limits, stop_reason_from_failure
from offing_graphs.shared.task import find_last_message_seq, read_new_messages

if TYPE_CHECKING:
    from langgraph.runtime import Runtime


async def agent(state: State, runtime: "Runtime[Any]") -> StateUpdate:
    """Begin a turn: keep or switch the subgoal and choose an action."""
    ctx: RunContext = runtime.context
    if reason := check_limits(ctx, state["turn"], begins_turn=True):
        return {"stop": reason}
    turn = state["turn"] + 1
    await ctx.begin_turn(turn)
    last_message_seq = await read_new_messages(ctx, state["seen_message_seq"], turn)
    inputs = await load_inputs(ctx, state, turn=turn, last_message_seq=last_message_seq)
    reply = await call_fitted(ctx, AGENT, inputs, turn=turn)
    if isinstance(reply, EngineFailure):
        return {"turn": turn, "seen_message_seq": last_message_seq, "stop": stop_reason_from_failure(reply)}
    update = {"turn": turn, "output_seq": reply.seq, "seen_message_seq": last_message_seq}
    if not reply.output.action.is_final:
        return update
    await _append_final_record(ctx, inputs, reply.output, reply.seq, turn)
    has_new_message = await find_last_message_seq(ctx, last_message_seq) > last_message_seq
    return {**update, "answer": reply.seq, "stop": "" if has_new_message else _classify_answer(reply.output)}


async def act(state: State, runtime: "Runtime[Any]") -> StateUpdate:
    """Make the tool call of the turn and append the turn's record."""
    ctx: RunContext = runtime.context
    turn, seq = state["turn"], state["output_seq"]
    output, before = await load_output(ctx, seq, Turn), await load_turn_records(ctx, turn)
    if reason := check_limits(ctx, turn):
        finding = f"Not made: {reason.replace('_', ' ')}."
        await ctx.append_steps(draft_turn_record(build_empty_record(output, seq, before, turn, "not_made", finding)))
        return {"stop": reason}
    result = await ctx.call_tool(ToolCall(output.action.tool, dict(output.action.args)), turn=turn)
    evidence = await ctx.get_evidence(MAX_EVIDENCE)
    await ctx.append_steps(draft_turn_record(build_tool_record(output, seq, result, evidence, before, turn)))
    return {}


async def report(state: State, runtime: "Runtime[Any]") -> StateUpdate:
    """Submit the report, for any stop reason. This is the last action of the run."""
    ctx: RunContext = runtime.context
    last_message_seq = await read_new_messages(ctx, state["seen_message_seq"], state["turn"])
    inputs = await load_inputs(
        ctx, state, turn=state["turn"] + 1, last_message_seq=last_message_seq, reason=state["stop"]
    )
    reason = _resolve_final_reason(inputs, StopReason(state["stop"]))
    if state["answer"] and state["answer"] == state["output_seq"] and reason not in FINAL_ANSWER_REASONS:
        answer = await load_output(ctx, state["answer"], Turn)
        return await _submit_report(ctx, inputs, answer.action.report, reason)
    if reason not in FINAL_ANSWER_REASONS or not has_findings(inputs.evidence, inputs.memory):
        return await _submit_report(ctx, inputs, None, reason)
    reply = await call_fitted(ctx, AGENT, inputs)
    if isinstance(reply, EngineFailure):
        return await _submit_report(ctx, inputs, None, stop_reason_from_failure(reply))
    await _append_final_record(ctx, inputs, reply.output, reply.seq, 0)
    return await _submit_report(ctx, inputs, reply.output.action.report, reason)


async def _append_final_record(ctx: RunContext, inputs: AgentInput, output: Turn, seq: int, turn: int) -> None:
    summary = output.action.report.answer if output.action.report else "A tool, where only an answer was asked for."
    status = "ok" if output.action.is_final else "not_made"
    record = build_empty_record(output, seq, inputs.memory, turn, status, shorten_line(summary))
    await ctx.append_steps(draft_turn_record(record))


async def _submit_report(
    ctx: RunContext, inputs: AgentInput, draft: ReportDraft | None, reason: StopReason
) -> StateUpdate:
    """Submit a report. `None` means that the agent wrote none, so that a report of quotes is submitted."""
    if draft is None:
        quotes = build_quote_report(inputs, inputs.evidence, inputs.memory, reason)
        await submit_findings(ctx, AGENT, add_title(quotes, ctx.run.question), reason, is_checked=False)
    else:
        await submit_findings(ctx, AGENT, add_title(draft, ctx.run.question), reason)
    return {"stop": reason}


def _classify_answer(output: Turn) -> StopReason:
    return StopReason.ANSWERED if output.action.tool == ANSWER else StopReason.NOTHING_FOUND


def _resolve_final_reason(inputs: AgentInput, reason: StopReason) -> StopReason:
    """Return the reason that the report states.

    Without findings it is `NOTHING_FOUND` if the run answered, or if it reached its turn limit
    after a successful tool call.
    """
    looked = any(r.status == "ok" for r in inputs.memory)
    ended = reason is StopReason.ANSWERED or (reason is StopReason.TURN_LIMIT and looked)
    return StopReason.NOTHING_FOUND if ended and not has_findings(inputs.evidence, inputs.memory) else reason
