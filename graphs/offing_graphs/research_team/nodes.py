"""The nodes of the graph.

Each node checks the limits, makes the same calls for the same state, and returns ids and
counters. Each part has its own loop, which ends when its verifier stops or when its
share of the turns is used. The whole question is verified after the last part, and research
continues if something is missing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from offing.sdk import (
    CHILD_RUN,
    Budget,
    ChildRequest,
    ChildResult,
    ChildRunsUnavailable,
    Depth,
    EngineFailure,
    RunContext,
    RunStatus,
    StepDraft,
    StepKind,
    StopReason,
    ToolResult,
    ToolStatus,
    human_input,
    shorten_line,
)
from offing_graphs.agentflow.nodes import (
    build_verifier_input,
    plan_turn,
    request_tool_call,
    submit_report,
    verify_question,
)
from offing_graphs.agentflow.schemas import AnalystInput
from offing_graphs.agentflow.state import NodeInputs, load_past_turns
from offing_graphs.research_team import roles
from offing_graphs.research_team.state import State, count_child_passages, drop_uncited, load_inputs, narrow_to_part
from offing_graphs.shared.findings import MAX_FINDING_CHARS
from offing_graphs.shared.fitted_calls import call_fitted
from offing_graphs.shared.judge import judge_result
from offing_graphs.shared.memory import append_record, draft_record
from offing_graphs.shared.schemas import Analysis, ChildOutcome, MemoryRecord, Plan
from offing_graphs.shared.state import StateUpdate, load_output
from offing_graphs.shared.stop_reasons import check_limits, stop_reason_from_failure
from offing_graphs.shared.task import read_new_messages

if TYPE_CHECKING:
    from langgraph.runtime import Runtime

CHILD_GRAPH = "agentflow"
"""The graph of the child runs."""
REVIEW_TIMEOUT_SECONDS = 1_800.0
"""Seconds after which a plan without a review is approved."""
MAX_REPLANS = 3
"""Maximum number of other plans that a person may request."""
MAX_PARTS = 8
MAX_LIMITS_CHARS = 800
"""Maximum number of characters of a child's limits in its record."""


@dataclass(frozen=True, slots=True)
class TeamConfig:
    """Options of one variant of the graph."""

    judge: bool = True
    """Whether the run judges each of its observations and discards what does not help."""
    team: bool = True
    """Whether parts are delegated to child runs.

    False means that they are researched in sequence, as is also done if the run may not start
    child runs.
    """
    review: bool = False
    """Whether a person reviews the plan before research begins, and may edit or reject it."""


@dataclass(frozen=True, slots=True)
class TeamNodes:
    """The nodes of one variant."""

    config: TeamConfig

    async def plan(self, state: State, runtime: "Runtime[Any]") -> StateUpdate:
        """Split the question into parts. A single part is the question itself."""
        ctx: RunContext = runtime.context
        if reason := check_limits(ctx, state["turn"], begins_turn=True):
            return {"stop": reason}
        last_message_seq = await read_new_messages(ctx, state["seen_message_seq"], 0)
        inputs = await load_inputs(ctx, state, last_message_seq=last_message_seq)
        reply = await call_fitted(ctx, roles.LEAD, AnalystInput(**dict(inputs.task), tools=inputs.cards))
        if isinstance(reply, EngineFailure):
            return {"stop": stop_reason_from_failure(reply), "seen_message_seq": last_message_seq}
        count = len(reply.output.sub_questions)
        return {"analysis": reply.seq, "seen_message_seq": last_message_seq, "replan": 0, **_build_part_state(count)}

    async def review(self, state: State, runtime: "Runtime[Any]") -> StateUpdate:
        """Request a review of the plan. Without a response the plan is approved.

        A comment requests another plan, at most `MAX_REPLANS` times.
        """
        ctx: RunContext = runtime.context
        if not self.config.review:
            return {}
        if reason := check_limits(ctx, state["turn"], begins_turn=True):
            return {"stop": reason}
        inputs = await load_inputs(ctx, state)
        planned = inputs.analysis.sub_questions
        proposal = human_input.PlanProposal(planned, goal=inputs.question)
        review = await ctx.review(
            proposal, default=human_input.ReviewDecision.APPROVED, timeout_seconds=REVIEW_TIMEOUT_SECONDS
        )
        if not review.is_accepted and state["reviews"] < MAX_REPLANS:
            note = {"comment": review.comment}
            await ctx.append_steps(
                StepDraft(StepKind.NOTE, "Another plan was requested", note, "review", review.comment)
            )
            return {"replan": 1, "reviews": state["reviews"] + 1}
        parts = tuple(step.strip() for step in review.plan.steps if step.strip())[:MAX_PARTS]
        if not parts or parts == planned:
            return {}
        analysis = Analysis(summary=inputs.analysis.summary, sub_questions=parts)
        await ctx.append_steps(
            StepDraft(StepKind.ANALYSIS, "The plan, edited by a person", analysis.model_dump(), "lead")
        )
        (edited,) = await ctx.last_steps(StepKind.ANALYSIS, 1)
        return {"analysis": edited.seq, **_build_part_state(len(parts))}

    async def delegate(self, state: State, runtime: "Runtime[Any]") -> StateUpdate:
        """Delegate each part to a child run and append the results to the memory.

        Without child runs the parts are researched in sequence.
        """
        ctx: RunContext = runtime.context
        if not self.config.team or state["part"] >= state["parts"]:
            return {}
        if reason := check_limits(ctx, state["turn"], begins_turn=True):
            return {"stop": reason}
        inputs = await load_inputs(ctx, state)
        results = await ctx.run_children(
            build_child_requests(
                inputs.analysis.sub_questions, ctx.run.budget.max_turns - state["turn"], ctx.run.budget.depth
            )
        )
        if isinstance(results, ChildRunsUnavailable):
            return {}
        turn = state["turn"] + sum(result.usage.turns for result in results)
        for result in results:
            await ctx.append_steps(draft_record(record_from_child(result, turn)))
        return {"turn": turn, "since": turn, "part": state["parts"], "team": len(results)}

    async def planner(self, state: State, runtime: "Runtime[Any]") -> StateUpdate:
        """Begin a turn and plan the next step for the current part."""
        ctx: RunContext = runtime.context
        if reason := check_limits(ctx, state["turn"], begins_turn=True):
            return {"stop": reason}
        turn = state["turn"] + 1
        await ctx.begin_turn(turn)
        inputs = narrow_to_part(await load_inputs(ctx, state, before_turn=turn), state)
        past = await load_past_turns(ctx, turn, after_turn=state["since"])
        return await plan_turn(ctx, inputs, past, turn)

    async def executor(self, state: State, runtime: "Runtime[Any]") -> StateUpdate:
        """Make one validated tool call, append its memory record and judge the result."""
        ctx: RunContext = runtime.context
        turn = state["turn"]
        if reason := check_limits(ctx, turn):
            return {"stop": reason}
        inputs = narrow_to_part(await load_inputs(ctx, state, before_turn=turn), state)
        plan = await load_output(ctx, state["plan"], Plan)
        call = await request_tool_call(ctx, inputs, plan, turn)
        if isinstance(call, EngineFailure):
            return {"stop": stop_reason_from_failure(call)}
        result = await ctx.call_tool(call, turn=turn)
        failed = await self._record_and_judge(ctx, inputs, plan, result, turn)
        return {"tool": result.seq, "stop": stop_reason_from_failure(failed) if failed else ""}

    async def assess(self, state: State, runtime: "Runtime[Any]") -> StateUpdate:
        """Check whether the current part is covered or has used its share of the turns.

        If so, begin the next part.
        """
        ctx: RunContext = runtime.context
        if reason := check_limits(ctx, state["turn"]):
            return {"stop": reason}
        inputs = await load_inputs(ctx, state, before_turn=state["turn"] + 1)
        reply = await call_fitted(
            ctx,
            roles.VERIFIER,
            build_verifier_input(ctx, narrow_to_part(inputs, state), state["turn"]),
            turn=state["turn"],
        )
        last_message_seq = await read_new_messages(ctx, state["seen_message_seq"], state["turn"])
        if isinstance(reply, EngineFailure):
            return {"stop": stop_reason_from_failure(reply), "seen_message_seq": last_message_seq}
        share = _compute_turn_share(ctx.run.budget.max_turns - state["since"], state["parts"] - state["part"])
        if reply.output.stop or state["turn"] - state["since"] >= share:
            return {
                "part": state["part"] + 1,
                "since": state["turn"],
                "verdict": 0,
                "seen_message_seq": last_message_seq,
            }
        return {"verdict": reply.seq, "seen_message_seq": last_message_seq}

    async def verify(self, state: State, runtime: "Runtime[Any]") -> StateUpdate:
        """Check whether the collected evidence is sufficient for the whole question."""
        ctx: RunContext = runtime.context
        if reason := check_limits(ctx, state["turn"]):
            return {"stop": reason}
        inputs = await load_inputs(ctx, state, before_turn=state["turn"] + 1)
        return await verify_question(ctx, state, inputs, roles.VERIFIER)

    async def write(self, state: State, runtime: "Runtime[Any]") -> StateUpdate:
        """Submit the report, for any stop reason. This is the last action of the run."""
        ctx: RunContext = runtime.context
        inputs = await load_inputs(ctx, state)
        return await submit_report(ctx, drop_uncited(inputs), StopReason(state["stop"]), **count_child_passages(inputs))

    async def _record_and_judge(
        self, ctx: RunContext, inputs: NodeInputs, plan: Plan, result: ToolResult, turn: int
    ) -> EngineFailure | None:
        """Append the record of a tool call and judge the result.

        Returns the failure if the judge failed.
        """
        verdict_before = inputs.verdict.analysis if inputs.verdict else ""
        back = await append_record(ctx, plan, result, inputs.memory, turn, verdict_before)
        if not self.config.judge:
            return None
        reply = await judge_result(ctx, inputs.question, plan.sub_goal, result, back, turn)
        return reply if isinstance(reply, EngineFailure) else None


def build_child_requests(parts: Sequence[str], turns: int, depth: Depth = Depth.STANDARD) -> tuple[ChildRequest, ...]:
    """Build one child request per part, of the same depth.

    The parts share three quarters of the turns. The rest is for what is missing afterwards.
    """
    share = Budget(max_turns=max(1, 3 * turns // (4 * len(parts))), depth=depth)
    return tuple(ChildRequest(part, CHILD_GRAPH, share, engines={"analyst": "lead"}) for part in parts)


def record_from_child(result: ChildResult, turn: int) -> MemoryRecord:
    """Build a memory record from the result of a child run. Its passages have the ids of this run."""
    finding = _render_findings(result)
    cited = (*result.cited, *(id for f in result.findings for id in f.evidence))
    ids = tuple(dict.fromkeys((*cited, *(e.id for e in result.evidence))))
    ok = result.status is RunStatus.DONE
    return MemoryRecord(
        turn=turn,
        sub_goal=f"Research: {shorten_line(result.question, 390)}",
        tool=CHILD_RUN,
        args={"question": result.question},
        status=ToolStatus.OK if ok else ToolStatus.FAILED,
        finding=finding or f"It ended without a report: {result.stop.replace('_', ' ')}.",
        value="" if ids else shorten_line(result.answer, 800),
        evidence=ids,
        fresh=len(ids),
        child=_build_child_outcome(result),
    )


def _render_findings(result: ChildResult) -> str:
    """Render the sentences of a child's report that fit, with the number of those that do not."""
    lines = [f"{f.text} {' '.join(f'[{id}]' for id in f.evidence)}".strip() for f in result.findings]
    rendered, room = list[str](), MAX_FINDING_CHARS
    for line in lines:
        if rendered and len(line) + 1 > room:
            break
        rendered.append(line[:MAX_FINDING_CHARS])
        room -= len(line) + 1
    omitted = len(lines) - len(rendered)
    notice = [f"({omitted} more sentences of its report are not shown here.)"] if omitted else []
    return "\n".join((*rendered, *notice))


def _build_child_outcome(result: ChildResult) -> ChildOutcome:
    cited = tuple(dict.fromkeys((*result.cited, *(id for f in result.findings for id in f.evidence))))
    return ChildOutcome(
        stop=result.stop,
        limits=shorten_line(result.limits, MAX_LIMITS_CHARS),
        open_points=result.open_points,
        read_passages=max(result.read_passages, len(result.evidence)),
        quoted=result.quoted,
        cited=cited,
        uncited=tuple(e.id for e in result.evidence if e.id not in cited) if result.findings else (),
    )


def _build_part_state(count: int) -> StateUpdate:
    """Return the state of a plan with `count` parts before work begins.

    A single part is the whole question.
    """
    return {"parts": count, "part": 1 if count == 1 else 0}


def _compute_turn_share(turns: int, parts: int) -> int:
    """Return the number of turns for one of the remaining parts, at least one."""
    return max(1, turns // max(1, parts))
