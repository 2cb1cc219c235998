"""The graph's nodes. Each asks whether to stop, makes the same calls for the same state, and returns ids and counters.

Nothing here decides by reading prose: stops are values, failures are values, and every exit leads to a report.
"""

from typing import TYPE_CHECKING, Any

from offing.sdk import (
    EngineFailure,
    Fracture,
    ReportDraft,
    RunContext,
    StepDraft,
    StepKind,
    StopReason,
    ToolCall,
    shortened,
)
from offing_graphs.iterresearch.endings import ended_early, unfinished
from offing_graphs.iterresearch.roles import RESEARCHERS
from offing_graphs.iterresearch.shapes import Round, Stage
from offing_graphs.iterresearch.state import State
from offing_graphs.iterresearch.workspace import asked_call, latest_round, workspace
from offing_graphs.parts.ending import halted, reason_of
from offing_graphs.parts.messages import newest_message

if TYPE_CHECKING:
    from langgraph.runtime import Runtime

Update = dict[str, Any]


async def research(state: State, runtime: "Runtime[Any]") -> Update:
    """One round: the workspace built anew, and one answer to it."""
    ctx: RunContext = runtime.context
    reason = _halted(ctx, state)
    if reason and not _writes_after(reason, state):
        return {"stop": reason}
    turn = state["turn"] + 1
    await ctx.begin_turn(turn)
    heard = await newest_message(ctx, state["heard"])
    stage = _stage(ctx, state, turn, reason)
    given = await workspace(ctx, state, stage, heard)
    reset = Fracture.WORKSPACE_RESET if state["round"] else None
    reply = await ctx.call(RESEARCHERS[stage], given, turn=turn, fracture=reset)
    if isinstance(reply, EngineFailure):
        return {"turn": turn, "heard": heard, "stop": reason_of(reply)}
    await ctx.record(_report_step(reply.output, turn))
    newest = await newest_message(ctx, heard)
    stop = _ending(reply.output, reason, ctx.run.budget.turns <= turn, spoken_to=newest > heard)
    return {"turn": turn, "round": reply.seq, "heard": heard, "stop": stop}


async def act(state: State, runtime: "Runtime[Any]") -> Update:
    """The tool call that the round asked for. One that cannot be made is a result like any other.

    None is made where a person asks for what there is, or wrote while a round answered: the next round sees to it.
    """
    ctx: RunContext = runtime.context
    reason = halted(ctx, state["turn"])
    if reason and reason is not StopReason.ASKED_TO_WRITE:
        return {"stop": reason}
    call = await asked_call(ctx, state)
    if reason or call is None:
        return {"tool": 0}
    result = await ctx.use(ToolCall(call.tool, dict(call.args)), turn=state["turn"])
    return {"tool": result.seq}


async def write(state: State, runtime: "Runtime[Any]") -> Update:
    """The report, whatever ended the run; its delivery is the run's last act."""
    ctx: RunContext = runtime.context
    reason = StopReason(state["stop"])
    last = await latest_round(ctx, state)
    draft = _titled(last.answer, ctx.run.question) if last and last.answer else await unfinished(ctx, state, reason)
    await ctx.deliver(ended_early(draft, reason), reason)
    return {"stop": reason}


def _halted(ctx: RunContext, state: State) -> StopReason | None:
    """As everywhere, but that nothing lengthens a run past its turns."""
    reason = halted(ctx, state["turn"], begins_turn=True)
    return StopReason.TURN_LIMIT if reason and state["turn"] >= ctx.run.budget.turns else reason


def _writes_after(reason: StopReason, state: State) -> bool:
    """A person who asks for what there is gets it from the researcher, if there is anything."""
    return reason is StopReason.ASKED_TO_WRITE and state["round"] > 0


def _stage(ctx: RunContext, state: State, turn: int, reason: StopReason | None) -> Stage:
    if reason or turn >= ctx.run.budget.turns or not ctx.tools:
        return Stage.FINAL
    return Stage.MIDDLE if state["round"] else Stage.FIRST


def _ending(output: Round, reason: StopReason | None, last: bool, *, spoken_to: bool) -> str:
    """Why the run ends after this round. Empty: it goes on, also when a person wrote during a round that answered."""
    if output.answer is None:
        return ""
    if reason or last:
        return reason or StopReason.TURN_LIMIT
    if spoken_to:
        return ""
    return StopReason.ANSWERED if output.answered else StopReason.NOTHING_FOUND


def _report_step(output: Round, turn: int) -> StepDraft:
    """A version of the report, for those who watch how it changes."""
    first = next((line.strip(" #-*") for line in output.report.splitlines() if line.strip(" #-*")), "")
    payload = {"report": output.report, "round": turn}
    return StepDraft(StepKind.NOTE, shortened(first), payload, label="report", turn=turn)


def _titled(draft: ReportDraft, question: str) -> ReportDraft:
    return draft if draft.title.strip() else draft.model_copy(update={"title": shortened(question.strip(), 120)})
