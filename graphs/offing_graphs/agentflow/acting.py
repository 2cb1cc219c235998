"""What a turn does and how a run's work is handed over, for every flow with these roles. Knows no state."""

from collections.abc import Sequence

from offing.sdk import EngineFailure, Evidence, RunContext, StopReason, ToolCall, ToolResult
from offing_graphs.agentflow import memory, roles
from offing_graphs.agentflow.extractive import model_free_report
from offing_graphs.agentflow.shapes import ExecutorInput, Verdict
from offing_graphs.parts.ending import NO_MODEL, reason_of
from offing_graphs.parts.findings import brought_back
from offing_graphs.parts.shapes import Card, Piece, Plan, Record, WriterInput


async def command(
    ctx: RunContext,
    question: str,
    plan: Plan,
    cards: Sequence[Card],
    records: tuple[Record, ...],
    evidence: tuple[Piece, ...],
    turn: int,
) -> ToolCall | EngineFailure:
    """The executor's call. An unknown tool is passed on as it is, to be refused and recorded."""
    card = next((c for c in cards if c.name == plan.tool), None)
    if card is None:
        return ToolCall(plan.tool, {})
    given = ExecutorInput(question=question, plan=plan, tool=card, memory=records, evidence=evidence)
    reply = await ctx.call(roles.EXECUTOR, given, turn=turn)
    return reply if isinstance(reply, EngineFailure) else ToolCall(reply.output.tool, dict(reply.output.args))


async def remember(
    ctx: RunContext, records: Sequence[Record], verdict: Verdict | None, plan: Plan, result: ToolResult, turn: int
) -> tuple[Evidence, ...]:
    """Record what a call did, and return what it brought back."""
    back = brought_back(result, await ctx.evidence(memory.SEEN))
    known = {id for record in records for id in record.evidence}
    fresh = sum(e.id not in known for e in back)
    await ctx.record(memory.step_of(memory.record_of(plan, result, back, fresh, turn, verdict)))
    return back


async def hand_over(ctx: RunContext, given: WriterInput, reason: StopReason, *, found: bool) -> StopReason:
    """Deliver the report, written by the generator where it can be; why the run ends. The run's last act.

    `found`: there is something to write about.
    """
    if reason in NO_MODEL or not found:
        await ctx.deliver(model_free_report(given), reason)
        return reason
    reply = await ctx.call(roles.GENERATOR, given)
    if isinstance(reply, EngineFailure):
        reason = reason_of(reply)
        await ctx.deliver(model_free_report(given.model_copy(update={"reason": reason})), reason)
        return reason
    await ctx.deliver(reply.output, reason)
    return reason
