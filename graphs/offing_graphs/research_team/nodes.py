"""The graph's nodes. Each asks whether to stop, makes the same calls for the same state, and returns ids and counters.

A part is worked on by a loop of its own and closed by its verifier or by its share of the turns; the whole question is
verified after the last part, and worked on further where something is missing.
"""

from typing import TYPE_CHECKING, Any

from offing.sdk import (
    EngineFailure,
    NoChildren,
    RunContext,
    StepDraft,
    StepKind,
    StopReason,
    ToolResult,
    asking,
)
from offing_graphs.agentflow import memory
from offing_graphs.agentflow.acting import command, hand_over, remember
from offing_graphs.agentflow.endings import ending, final_reason
from offing_graphs.agentflow.reading import output_of
from offing_graphs.agentflow.shapes import AnalystInput, PlannerInput, VerifierInput
from offing_graphs.parts.ending import halted, reason_of
from offing_graphs.parts.judge import judged
from offing_graphs.parts.messages import newest_message
from offing_graphs.parts.shapes import Analysis, Plan, WriterInput
from offing_graphs.research_team import roles
from offing_graphs.research_team.config import Config
from offing_graphs.research_team.reading import Table, of_part, past, read
from offing_graphs.research_team.state import State
from offing_graphs.research_team.team import brought, requests_for

if TYPE_CHECKING:
    from langgraph.runtime import Runtime

Update = dict[str, Any]

PATIENCE = 1_800.0
"""Seconds after which a plan that nobody looked at stands."""
REPLANS = 3
"""Other plans that a person may ask for."""
MOST_PARTS = 8


class Nodes:
    """The nodes of one variant."""

    def __init__(self, config: Config) -> None:
        self._config = config

    async def plan(self, state: State, runtime: "Runtime[Any]") -> Update:
        """The question in parts. One part is the question itself."""
        ctx: RunContext = runtime.context
        if reason := halted(ctx, state["turn"], begins_turn=True):
            return {"stop": reason}
        heard = await newest_message(ctx, state["heard"])
        table = await read(ctx, state, heard=heard)
        reply = await ctx.call(roles.LEAD, AnalystInput(**table.case(), tools=table.cards))
        if isinstance(reply, EngineFailure):
            return {"stop": reason_of(reply), "heard": heard}
        count = len(reply.output.sub_questions)
        return {"analysis": reply.seq, "heard": heard, "replan": 0, **_begun(count)}

    async def review(self, state: State, runtime: "Runtime[Any]") -> Update:
        """What a person makes of the plan; nobody there, it stands. A comment asks for another plan, a few times."""
        ctx: RunContext = runtime.context
        if not self._config.review:
            return {}
        if reason := halted(ctx, state["turn"], begins_turn=True):
            return {"stop": reason}
        table = await read(ctx, state)
        shown = asking.Plan(table.parts, goal=table.question)
        said = await ctx.review(shown, default=asking.Verdict.APPROVED, within=PATIENCE)
        if not said.accepted and state["reviews"] < REPLANS:
            note = {"comment": said.comment}
            await ctx.record(StepDraft(StepKind.NOTE, "Another plan was asked for", note, "review", said.comment))
            return {"replan": 1, "reviews": state["reviews"] + 1}
        parts = tuple(step.strip() for step in said.plan.steps if step.strip())[:MOST_PARTS]
        if not parts or parts == table.parts:
            return {}
        analysis = Analysis(summary=table.analysis.summary, sub_questions=parts)
        await ctx.record(StepDraft(StepKind.ANALYSIS, "The plan as a person edited it", analysis.model_dump(), "lead"))
        (edited,) = await ctx.recall(StepKind.ANALYSIS, 1)
        return {"analysis": edited.seq, **_begun(len(parts))}

    async def delegate(self, state: State, runtime: "Runtime[Any]") -> Update:
        """Each part to a run of its own, and what they brought into the memory. Alone, it is done in sequence."""
        ctx: RunContext = runtime.context
        if not self._config.team or state["part"] >= state["parts"]:
            return {}
        if reason := halted(ctx, state["turn"], begins_turn=True):
            return {"stop": reason}
        table = await read(ctx, state)
        results = await ctx.children(requests_for(table.parts, ctx.run.budget.turns - state["turn"]))
        if isinstance(results, NoChildren):
            return {}
        turn = state["turn"] + sum(result.spent.turns for result in results)
        for result in results:
            await ctx.record(memory.step_of(brought(result, turn)))
        return {"turn": turn, "since": turn, "part": state["parts"], "team": len(results)}

    async def planner(self, state: State, runtime: "Runtime[Any]") -> Update:
        """The next step on the current part, as the first of a turn."""
        ctx: RunContext = runtime.context
        if reason := halted(ctx, state["turn"], begins_turn=True):
            return {"stop": reason}
        turn = state["turn"] + 1
        await ctx.begin_turn(turn)
        table = of_part(await read(ctx, state, before=turn), state)
        given = PlannerInput(
            **table.seen(),
            tools=table.cards,
            verdict=table.verdict,
            past=await past(ctx, state, turn),
            turn=turn,
            remaining=ctx.run.budget.turns - state["turn"],
        )
        reply = await ctx.call(roles.PLANNER, given, turn=turn)
        if isinstance(reply, EngineFailure):
            return {"turn": turn, "stop": reason_of(reply)}
        return {"turn": turn, "plan": reply.seq}

    async def executor(self, state: State, runtime: "Runtime[Any]") -> Update:
        """One validated tool call, judged, and its record in the run's memory."""
        ctx: RunContext = runtime.context
        turn = state["turn"]
        if reason := halted(ctx, turn):
            return {"stop": reason}
        table = of_part(await read(ctx, state, before=turn), state)
        plan = output_of((await ctx.fetch([state["plan"]]))[0], Plan)
        call = await command(ctx, table.question, plan, table.cards, table.memory, table.evidence, turn)
        if isinstance(call, EngineFailure):
            return {"stop": reason_of(call)}
        result = await ctx.use(call, turn=turn)
        failed = await self._remembered(ctx, table, plan, result, turn)
        return {"tool": result.seq, "stop": reason_of(failed) if failed else ""}

    async def assess(self, state: State, runtime: "Runtime[Any]") -> Update:
        """Whether this part has what it needs, or has had its share; then the next one."""
        ctx: RunContext = runtime.context
        if reason := halted(ctx, state["turn"]):
            return {"stop": reason}
        table = await read(ctx, state, before=state["turn"] + 1)
        reply = await ctx.call(
            roles.VERIFIER, _verifying(ctx, of_part(table, state), state["turn"]), turn=state["turn"]
        )
        heard = await newest_message(ctx, state["heard"])
        if isinstance(reply, EngineFailure):
            return {"stop": reason_of(reply), "heard": heard}
        share = _share(ctx.run.budget.turns - state["since"], len(table.parts) - state["part"])
        if reply.output.stop or state["turn"] - state["since"] >= share:
            return {"part": state["part"] + 1, "since": state["turn"], "verdict": 0, "heard": heard}
        return {"verdict": reply.seq, "heard": heard}

    async def verify(self, state: State, runtime: "Runtime[Any]") -> Update:
        """Whether all that was brought together is enough for the question as a whole."""
        ctx: RunContext = runtime.context
        if reason := halted(ctx, state["turn"]):
            return {"stop": reason}
        table = await read(ctx, state, before=state["turn"] + 1)
        reply = await ctx.call(roles.VERIFIER, _verifying(ctx, table, state["turn"]), turn=state["turn"])
        heard = await newest_message(ctx, state["heard"])
        if isinstance(reply, EngineFailure):
            return {"stop": reason_of(reply), "heard": heard}
        spoken_to = heard > state["heard"]
        stop = ending(reply.output) if reply.output.stop and not spoken_to else ""
        return {"verdict": reply.seq, "heard": heard, "stop": stop}

    async def write(self, state: State, runtime: "Runtime[Any]") -> Update:
        """The report, whatever ended the run; its delivery is the run's last act."""
        ctx: RunContext = runtime.context
        table = await read(ctx, state)
        reason = final_reason(table, StopReason(state["stop"]))
        given = WriterInput(**table.seen(), reason=reason)
        return {"stop": await hand_over(ctx, given, reason, found=table.found)}

    async def _remembered(
        self, ctx: RunContext, table: Table, plan: Plan, result: ToolResult, turn: int
    ) -> EngineFailure | None:
        """Record what a call did and found. A failure: nobody could judge it."""
        back = await remember(ctx, table.memory, table.verdict, plan, result, turn)
        if not self._config.judge:
            return None
        reply = await judged(ctx, table.question, plan.sub_goal, result, back, turn)
        return reply if isinstance(reply, EngineFailure) else None


def _begun(count: int) -> Update:
    """A plan with so many parts, none of them worked on. One part is the whole question."""
    return {"parts": count, "part": 1 if count == 1 else 0}


def _verifying(ctx: RunContext, table: Table, turn: int) -> VerifierInput:
    return VerifierInput(**table.seen(), tools=table.cards, turn=turn, remaining=ctx.run.budget.turns - turn)


def _share(turns: int, parts: int) -> int:
    """Turns of one of so many parts that are left; at least one."""
    return max(1, turns // max(1, parts))
