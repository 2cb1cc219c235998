"""The router's own nodes: the choice of a mode, and searches with the words of the question.

All other nodes are AgentFlow's. The role only estimates, and this module ranks the modes. A
search is recorded as a planned step, so that the loop can continue from it if it was not
sufficient.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from offing.sdk import EngineFailure, RunContext, StepDraft, StepKind, StopReason, ToolCall
from offing_graphs.agentflow.state import NodeInputs, load_inputs
from offing_graphs.extractive.agenda import build_agenda
from offing_graphs.extractive.analysis import analyze_task
from offing_graphs.extractive.arguments import build_arguments
from offing_graphs.extractive.coverage import assess_parts
from offing_graphs.extractive.tool_names import CALCULATE, SEARCH_LIBRARY, SEARCH_WEB
from offing_graphs.router import roles
from offing_graphs.router.schemas import Mode, ModeOption, RankedMode, RouterInput
from offing_graphs.router.state import State
from offing_graphs.shared.depth import is_deep
from offing_graphs.shared.fitted_calls import call_fitted
from offing_graphs.shared.memory import append_record
from offing_graphs.shared.schemas import ToolCard
from offing_graphs.shared.state import StateUpdate
from offing_graphs.shared.stop_reasons import check_limits, stop_reason_from_failure

if TYPE_CHECKING:
    from langgraph.runtime import Runtime

DIRECT_TOOLS = frozenset({SEARCH_LIBRARY, SEARCH_WEB, CALCULATE})
"""Tools that can be called with the words of the question."""
CALLS_PER_TURN = 4
"""Calls per turn of the whole loop: planner, executor, tool and verifier."""
TURNS_PER_PART = 3


async def route(state: State, runtime: "Runtime[Any]") -> StateUpdate:
    """Choose the mode with the highest expected gain and record the reasons."""
    ctx: RunContext = runtime.context
    if reason := check_limits(ctx, state["turn"], begins_turn=True):
        return {"stop": reason}
    if ctx.run.prior_exchanges:
        await ctx.search_thread(ctx.run.question)  # evidence that the thread has quoted before can be cited again
    node_inputs = await load_inputs(ctx, state)
    parts = analyze_task(node_inputs.task).sub_questions
    options = list_modes(len(parts), ctx.run.budget.max_turns, node_inputs.cards, deep=is_deep(ctx.run))
    reply = await call_fitted(ctx, roles.ROUTER, RouterInput(**dict(node_inputs.task), parts=parts, options=options))
    if isinstance(reply, EngineFailure):
        return {"stop": stop_reason_from_failure(reply)}
    ranked = rank_modes(options, reply.output.chances_by_mode())
    await ctx.append_steps(_draft_mode_step(ranked, reply.output.why))
    return {"mode": ranked[0].mode.value}


async def search(state: State, runtime: "Runtime[Any]") -> StateUpdate:
    """Make one search in a turn: for the whole question or for its next part.

    After the last search, either answer or continue with the loop.
    """
    ctx: RunContext = runtime.context
    if reason := check_limits(ctx, state["turn"], begins_turn=True):
        return {"stop": reason}
    turn = state["turn"] + 1
    await ctx.begin_turn(turn)
    node_inputs = await load_inputs(ctx, state, before_turn=turn)
    parts = _list_parts(state, node_inputs)
    await _run_search(ctx, node_inputs, parts[state["turn"]], turn)
    if turn < len(parts):
        return {"turn": turn}
    return {"turn": turn, **await _decide_next(ctx, state, turn)}


async def _run_search(ctx: RunContext, node_inputs: NodeInputs, part: str, turn: int) -> None:
    """Make the search and append its memory record as a planned step."""
    moves = build_agenda(node_inputs.question, (part,), (), (), node_inputs.cards).actions
    if not moves:
        return  # no tool is left to search with, which the loop reports
    plan = moves[0].to_plan()
    card = next(card for card in node_inputs.cards if card.name == plan.tool)
    result = await ctx.call_tool(ToolCall(plan.tool, build_arguments(plan, card, ())), turn=turn)
    await append_record(ctx, plan, result, node_inputs.memory, turn)


async def _decide_next(ctx: RunContext, state: State, turn: int) -> StateUpdate:
    """Answer if the passages cover every part, else continue with the loop."""
    now_at: State = {**state, "turn": turn}
    node_inputs = await load_inputs(ctx, now_at, before_turn=turn + 1)
    parts = _list_parts(state, node_inputs)
    part_statuses = assess_parts(parts, (), node_inputs.evidence, node_inputs.memory)
    if all(s.covered for s in part_statuses):
        return {"stop": StopReason.ANSWERED.value}
    open_ones = [s.part for s in part_statuses if not s.covered]
    payload = {"mode": Mode.AGENTIC.value, "from": state["mode"], "open": open_ones}
    await ctx.append_steps(
        StepDraft(StepKind.NOTE, "Continues as agentic", payload, "route", f"open: {' · '.join(open_ones)}")
    )
    return {"mode": Mode.AGENTIC.value}


def _list_parts(state: State, node_inputs: NodeInputs) -> tuple[str, ...]:
    """Return the parts to search for. In mode `instant` this is the whole question."""
    return (node_inputs.question,) if state["mode"] == Mode.INSTANT else node_inputs.analysis.sub_questions


def list_modes(parts: int, turns: int, tools: Iterable[ToolCard], *, deep: bool = False) -> tuple[ModeOption, ...]:
    """Return the modes that a run with `turns` turns can take, cheapest first. A deep run always takes the loop.

    `parts` is the number of parts of the question.
    """
    loop = ModeOption(mode=Mode.AGENTIC, calls=2 + CALLS_PER_TURN * min(turns, TURNS_PER_PART * parts))
    if deep or not any(tool.name in DIRECT_TOOLS for tool in tools):
        return (loop,)
    instant = ModeOption(mode=Mode.INSTANT, calls=2)
    by_parts = (ModeOption(mode=Mode.REASONING, calls=parts + 2),) if 1 < parts <= turns else ()
    return instant, *by_parts, loop


def rank_modes(options: Sequence[ModeOption], chances: dict[Mode, float]) -> tuple[RankedMode, ...]:
    """Rank the options by expected gain, and equal ones by cost.

    An option without an estimate has probability 0.
    """
    worths = [RankedMode(mode=o.mode, chance=chances.get(o.mode, 0.0), calls=o.calls) for o in options]
    return tuple(sorted(worths, key=lambda w: (-round(w.expected_gain, 9), w.calls)))


def _draft_mode_step(ranked_modes: tuple[RankedMode, ...], why: str) -> StepDraft:
    best = ranked_modes[0]
    payload = {
        "mode": best.mode.value,
        "why": why,
        "weighed": [
            {"mode": w.mode.value, "chance": w.chance, "calls": w.calls, "worth": w.expected_gain} for w in ranked_modes
        ],
    }
    detail = " · ".join(f"{w.mode} {w.chance:.0%} for {w.calls} calls" for w in ranked_modes)
    return StepDraft(StepKind.NOTE, f"Mode: {best.mode}", payload, "route", detail)
