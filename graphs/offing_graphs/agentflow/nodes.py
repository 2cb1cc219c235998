"""The graph's nodes. Each asks whether to stop, makes the same calls for the same state, and returns ids and counters.

Nothing here decides by reading prose: stops are booleans and reasons, failures are values.
"""

from typing import TYPE_CHECKING, Any

from offing.sdk import (
    EngineFailure,
    RunContext,
    StopReason,
)
from offing_graphs.agentflow import roles
from offing_graphs.agentflow.acting import command, hand_over, remember
from offing_graphs.agentflow.endings import ending, final_reason
from offing_graphs.agentflow.reading import planned, read
from offing_graphs.agentflow.shapes import AnalystInput, PlannerInput, VerifierInput
from offing_graphs.agentflow.state import State
from offing_graphs.parts.ending import halted, reason_of
from offing_graphs.parts.findings import pieces
from offing_graphs.parts.messages import newest_message
from offing_graphs.parts.shapes import WriterInput

if TYPE_CHECKING:
    from langgraph.runtime import Runtime

Update = dict[str, Any]


async def analyse(state: State, runtime: "Runtime[Any]") -> Update:
    """What is asked, in parts."""
    ctx: RunContext = runtime.context
    if reason := halted(ctx, state["turn"], begins_turn=True):
        return {"stop": reason}
    heard = await newest_message(ctx, state["heard"])
    table = await read(ctx, state, heard=heard)
    reply = await ctx.call(roles.ANALYST, AnalystInput(**table.case(), tools=table.cards))
    if isinstance(reply, EngineFailure):
        return {"stop": reason_of(reply), "heard": heard}
    return {"analysis": reply.seq, "heard": heard}


async def planner(state: State, runtime: "Runtime[Any]") -> Update:
    """The next step, as the first part of a turn."""
    ctx: RunContext = runtime.context
    if reason := halted(ctx, state["turn"], begins_turn=True):
        return {"stop": reason}
    turn = state["turn"] + 1
    await ctx.begin_turn(turn)
    table = await read(ctx, state, before=turn)
    given = PlannerInput(
        **table.case(),
        analysis=table.analysis,
        tools=table.cards,
        memory=table.memory,
        evidence=pieces(table.evidence),
        verdict=table.verdict,
        past=await planned(ctx, turn),
        turn=turn,
        remaining=ctx.run.budget.turns - state["turn"],
    )
    reply = await ctx.call(roles.PLANNER, given, turn=turn)
    if isinstance(reply, EngineFailure):
        return {"turn": turn, "stop": reason_of(reply)}
    return {"turn": turn, "plan": reply.seq}


async def executor(state: State, runtime: "Runtime[Any]") -> Update:
    """One validated tool call, and its record in the run's memory."""
    ctx: RunContext = runtime.context
    turn = state["turn"]
    if reason := halted(ctx, state["turn"]):
        return {"stop": reason}
    table = await read(ctx, state, before=turn)
    plan = await table.plan(ctx)
    found = pieces(table.evidence)
    call = await command(ctx, ctx.run.question, plan, table.cards, table.memory, found, turn)
    if isinstance(call, EngineFailure):
        return {"stop": reason_of(call)}
    result = await ctx.use(call, turn=turn)
    await remember(ctx, table.memory, table.verdict, plan, result, turn)
    return {"tool": result.seq}


async def verifier(state: State, runtime: "Runtime[Any]") -> Update:
    """Whether what has been retrieved is enough."""
    ctx: RunContext = runtime.context
    turn = state["turn"]
    if reason := halted(ctx, state["turn"]):
        return {"stop": reason}
    table = await read(ctx, state, before=turn + 1)
    given = VerifierInput(
        **table.case(),
        analysis=table.analysis,
        tools=table.cards,
        memory=table.memory,
        evidence=pieces(table.evidence),
        turn=turn,
        remaining=ctx.run.budget.turns - turn,
    )
    reply = await ctx.call(roles.VERIFIER, given, turn=turn)
    heard = await newest_message(ctx, state["heard"])
    if isinstance(reply, EngineFailure):
        return {"stop": reason_of(reply), "heard": heard}
    spoken_to = heard > state["heard"]
    stop = ending(reply.output) if reply.output.stop and not spoken_to else ""
    return {"verdict": reply.seq, "heard": heard, "stop": stop}


async def generator(state: State, runtime: "Runtime[Any]") -> Update:
    """The report, whatever ended the run; its delivery is the run's last act."""
    ctx: RunContext = runtime.context
    table = await read(ctx, state)
    reason = final_reason(table, StopReason(state["stop"]))
    given = WriterInput(
        **table.case(),
        analysis=table.analysis,
        memory=table.memory,
        evidence=pieces(table.evidence),
        reason=reason,
    )
    return {"stop": await hand_over(ctx, given, reason, found=table.found)}
