"""The router's own nodes: choosing a mode, and looking with the question's own words. The others are AgentFlow's.

A look is a planned step like any other in the run's memory, so that the loop goes on from it where it did not do.
"""

from typing import TYPE_CHECKING, Any

from offing.sdk import EngineFailure, RunContext, StepDraft, StepKind, StopReason, ToolCall
from offing_graphs.agentflow import memory
from offing_graphs.agentflow.reading import Table, read
from offing_graphs.extractive.agenda import agenda, standings
from offing_graphs.extractive.analysis import analysis_of
from offing_graphs.extractive.arguments import arguments
from offing_graphs.parts.ending import halted, reason_of
from offing_graphs.parts.findings import brought_back, pieces
from offing_graphs.parts.shapes import Case, Plan
from offing_graphs.router import roles
from offing_graphs.router.modes import Mode, Worth, offers, weighed
from offing_graphs.router.roles import RouterInput
from offing_graphs.router.state import State

if TYPE_CHECKING:
    from langgraph.runtime import Runtime

Update = dict[str, Any]


async def route(state: State, runtime: "Runtime[Any]") -> Update:
    """Which mode is worth most, and on record why."""
    ctx: RunContext = runtime.context
    if reason := halted(ctx, state["turn"], begins_turn=True):
        return {"stop": reason}
    if ctx.run.earlier:
        await ctx.conversation(ctx.run.question)  # what the thread has quoted already can be cited again
    table = await read(ctx, state)
    parts = analysis_of(Case(**table.case())).sub_questions
    offered = offers(len(parts), ctx.run.budget.turns, table.cards)
    reply = await ctx.call(roles.ROUTER, RouterInput(**table.case(), parts=parts, offers=offered))
    if isinstance(reply, EngineFailure):
        return {"stop": reason_of(reply)}
    ranked = weighed(offered, reply.output.by_mode())
    await ctx.record(_chosen(ranked, reply.output.why))
    return {"mode": ranked[0].mode.value}


async def look(state: State, runtime: "Runtime[Any]") -> Update:
    """A turn of one search: for the whole question, or for its next part. After the last one, enough or go on."""
    ctx: RunContext = runtime.context
    if reason := halted(ctx, state["turn"], begins_turn=True):
        return {"stop": reason}
    turn = state["turn"] + 1
    await ctx.begin_turn(turn)
    table = await read(ctx, state, before=turn)
    parts = _parts(state, table)
    await _looked(ctx, table, parts[state["turn"]], turn)
    if turn < len(parts):
        return {"turn": turn}
    return {"turn": turn, **await _enough(ctx, state, turn)}


async def _looked(ctx: RunContext, table: Table, part: str, turn: int) -> None:
    """Make the look, and remember it as a step that was planned."""
    moves = agenda(table.question, (part,), (), (), table.cards).moves
    if not moves:
        return  # the tools leave nothing to look with: the loop will say so
    plan = Plan(justification=moves[0].why, context=moves[0].context, sub_goal=moves[0].sub_goal, tool=moves[0].tool)
    card = next(card for card in table.cards if card.name == plan.tool)
    result = await ctx.use(ToolCall(plan.tool, arguments(plan, card, ())), turn=turn)
    back = brought_back(result, await ctx.evidence(memory.SEEN))
    known = {id for record in table.memory for id in record.evidence}
    fresh = sum(e.id not in known for e in back)
    await ctx.record(memory.step_of(memory.record_of(plan, result, back, fresh, turn, None)))


async def _enough(ctx: RunContext, state: State, turn: int) -> Update:
    """An answer, where passages hold each part's words; else the loop goes on from here."""
    now_at: State = {**state, "turn": turn}
    table = await read(ctx, now_at, before=turn + 1)
    parts = _parts(state, table)
    now = standings(parts, (), pieces(table.evidence), table.memory)
    if all(s.covered for s in now):
        return {"stop": StopReason.ANSWERED.value}
    open_ones = [s.part for s in now if not s.covered]
    payload = {"mode": Mode.AGENTIC.value, "from": state["mode"], "open": open_ones}
    await ctx.record(StepDraft(StepKind.NOTE, "Goes on as agentic", payload, "route", f"open: {' · '.join(open_ones)}"))
    return {"mode": Mode.AGENTIC.value}


def _parts(state: State, table: Table) -> tuple[str, ...]:
    """What is looked for. The whole question, where it is to be answered at once."""
    return (table.question,) if state["mode"] == Mode.INSTANT else table.analysis.sub_questions


def _chosen(ranked: tuple[Worth, ...], why: str) -> StepDraft:
    best = ranked[0]
    payload = {
        "mode": best.mode.value,
        "why": why,
        "weighed": [{"mode": w.mode.value, "chance": w.chance, "calls": w.calls, "worth": w.worth} for w in ranked],
    }
    detail = " · ".join(f"{w.mode} {w.chance:.0%} for {w.calls} calls" for w in ranked)
    return StepDraft(StepKind.NOTE, f"Mode: {best.mode}", payload, "route", detail)
