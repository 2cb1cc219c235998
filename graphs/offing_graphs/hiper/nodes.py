"""The graph's nodes. Each asks whether to stop, makes the same calls for the same state, and returns ids and counters.

Nothing here decides by reading prose: stops are actions and reasons, failures are values.
"""

from typing import TYPE_CHECKING, Any

from offing.sdk import EngineFailure, ReportDraft, RunContext, StopReason, ToolCall, shortened
from offing_graphs.hiper.extractive import model_free_report
from offing_graphs.hiper.reading import SEEN, bare, read, recorded, said, step_of, used
from offing_graphs.hiper.roles import AGENT
from offing_graphs.hiper.shapes import ANSWER, AgentInput, Turn
from offing_graphs.hiper.state import State
from offing_graphs.parts.ending import halted, reason_of
from offing_graphs.parts.messages import newest_message

if TYPE_CHECKING:
    from langgraph.runtime import Runtime

Update = dict[str, Any]

FORCED = frozenset({StopReason.TURN_LIMIT, StopReason.ASKED_TO_WRITE})
"""Reasons after which the agent is asked once more, for an answer alone."""


async def agent(state: State, runtime: "Runtime[Any]") -> Update:
    """One turn: keep or switch, and an action."""
    ctx: RunContext = runtime.context
    if reason := halted(ctx, state["turn"], begins_turn=True):
        return {"stop": reason}
    turn = state["turn"] + 1
    await ctx.begin_turn(turn)
    heard = await newest_message(ctx, state["heard"])
    given = await read(ctx, state, turn=turn, heard=heard)
    reply = await ctx.call(AGENT, given, turn=turn)
    if isinstance(reply, EngineFailure):
        return {"turn": turn, "heard": heard, "stop": reason_of(reply)}
    update = {"turn": turn, "said": reply.seq, "heard": heard}
    if not reply.output.action.ends:
        return update
    await _record_end(ctx, given, reply.output, reply.seq, turn)
    spoken_to = await newest_message(ctx, heard) > heard
    return {**update, "answer": reply.seq, "stop": "" if spoken_to else _ending(reply.output)}


async def act(state: State, runtime: "Runtime[Any]") -> Update:
    """The tool call that the turn decided on, and the turn's record."""
    ctx: RunContext = runtime.context
    turn, seq = state["turn"], state["said"]
    output, before = await said(ctx, seq), await recorded(ctx, turn)
    if reason := halted(ctx, turn):
        left = f"Not made: {reason.replace('_', ' ')}."
        await ctx.record(step_of(bare(output, seq, before, turn, "not_made", left)))
        return {"stop": reason}
    result = await ctx.use(ToolCall(output.action.tool, dict(output.action.args)), turn=turn)
    await ctx.record(step_of(used(output, seq, result, await ctx.evidence(SEEN), before, turn)))
    return {}


async def report(state: State, runtime: "Runtime[Any]") -> Update:
    """The report, whatever ended the run; its delivery is the run's last act."""
    ctx: RunContext = runtime.context
    heard = await newest_message(ctx, state["heard"])
    given = await read(ctx, state, turn=state["turn"] + 1, heard=heard, reason=state["stop"])
    reason = _final_reason(given, StopReason(state["stop"]))
    if state["answer"] and state["answer"] == state["said"] and reason not in FORCED:
        return await _delivered(ctx, (await said(ctx, state["answer"])).action.report, reason)
    if reason not in FORCED or not _found(given):
        return await _delivered(ctx, model_free_report(given, reason), reason)
    reply = await ctx.call(AGENT, given)
    if isinstance(reply, EngineFailure):
        reason = reason_of(reply)
        return await _delivered(ctx, model_free_report(given, reason), reason)
    await _record_end(ctx, given, reply.output, reply.seq, 0)
    return await _delivered(ctx, reply.output.action.report or model_free_report(given, reason), reason)


async def _record_end(ctx: RunContext, given: AgentInput, output: Turn, seq: int, turn: int) -> None:
    said = output.action.report.answer if output.action.report else "A tool, where only an answer was asked for."
    status = "ok" if output.action.ends else "not_made"
    await ctx.record(step_of(bare(output, seq, given.memory, turn, status, shortened(said))))


async def _delivered(ctx: RunContext, draft: ReportDraft | None, reason: StopReason) -> Update:
    assert draft is not None
    titled = draft if draft.title.strip() else draft.model_copy(update={"title": shortened(ctx.run.question, 120)})
    await ctx.deliver(titled, reason)
    return {"stop": reason}


def _ending(output: Turn) -> StopReason:
    return StopReason.ANSWERED if output.action.tool == ANSWER else StopReason.NOTHING_FOUND


def _found(given: AgentInput) -> bool:
    """There is something to write about: a passage, or a result that is no passage, such as a number."""
    return bool(given.evidence) or any(r.value for r in given.memory)


def _final_reason(given: AgentInput, reason: StopReason) -> StopReason:
    """The reason as the report states it: a run that has nothing to stand on says so."""
    looked = any(r.status == "ok" for r in given.memory)
    ended = reason is StopReason.ANSWERED or (reason is StopReason.TURN_LIMIT and looked)
    return StopReason.NOTHING_FOUND if ended and not _found(given) else reason
