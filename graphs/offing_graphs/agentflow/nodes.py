"""The nodes of the graph.

Each node checks the limits, makes the same calls for the same state, and returns ids and
counters. No node decides by reading prose: stops are booleans and stop reasons, and
failures are values. `research_team` and `router` use the same turns.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

from offing.sdk import EngineFailure, Interaction, Role, RunContext, StepDraft, StepKind, StopReason, ToolCall
from offing_graphs.agentflow import roles
from offing_graphs.agentflow.extractive import write_report as build_report
from offing_graphs.agentflow.interactions import clarify_question, review_analysis
from offing_graphs.agentflow.schemas import (
    AnalystInput,
    Command,
    ExecutorInput,
    PastTurn,
    PlannerInput,
    Verdict,
    VerifierInput,
)
from offing_graphs.agentflow.state import NodeInputs, State, load_covered_counts, load_inputs, load_past_turns
from offing_graphs.shared.depth import find_phase, is_deep, is_saturated, may_stop
from offing_graphs.shared.fitted_calls import call_fitted
from offing_graphs.shared.follow_up import submit_findings
from offing_graphs.shared.memory import append_record
from offing_graphs.shared.outline import draft_continued, list_open_musts, note_plan_change
from offing_graphs.shared.schemas import Plan, WriterInput
from offing_graphs.shared.sections import write_report
from offing_graphs.shared.state import StateUpdate, load_output
from offing_graphs.shared.stop_reasons import NO_MODEL_REASONS, check_limits, stop_reason_from_failure
from offing_graphs.shared.task import find_args_problem, load_task, read_new_messages

if TYPE_CHECKING:
    from langgraph.runtime import Runtime

EARLY_STOP_TITLE = "A deep run continues while parts are open in its first turns"
NEEDLESS_VERDICT_TITLE = "The verifier was not asked again: nothing was found, and no turn is left"


async def analyze(state: State, runtime: "Runtime[Any]") -> StateUpdate:
    """Split the question into parts. If the person chose so, ask what is unclear before, and show the parts after."""
    ctx: RunContext = runtime.context
    if reason := check_limits(ctx, state["turn"], begins_turn=True):
        return {"stop": reason}
    last_message_seq = await read_new_messages(ctx, state["seen_message_seq"], 0)
    seen: StateUpdate = {"seen_message_seq": last_message_seq}
    if Interaction.CLARIFY in ctx.run.interactions:
        task = await load_task(ctx, last_message_seq)
        clarification = await clarify_question(ctx, task)
        if isinstance(clarification, EngineFailure):
            return {"stop": stop_reason_from_failure(clarification), **seen}
        seen["clarification"] = clarification
    inputs = await load_inputs(ctx, cast("State", {**state, **seen}), last_message_seq=last_message_seq)
    await note_plan_change(ctx, state["seen_message_seq"], last_message_seq, 0)
    task_input = AnalystInput(**dict(inputs.task), tools=inputs.cards)
    reply = await call_fitted(ctx, roles.ANALYST, task_input)
    if isinstance(reply, EngineFailure):
        return {"stop": stop_reason_from_failure(reply), **seen}
    if Interaction.PLAN_REVIEW not in ctx.run.interactions:
        return {"analysis": reply.seq, **seen}
    reviewed = await review_analysis(ctx, task_input, reply.seq, reply.output)
    if isinstance(reviewed, EngineFailure):
        return {"analysis": reply.seq, "stop": stop_reason_from_failure(reviewed), **seen}
    return {"analysis": reviewed, **seen}


async def planner(state: State, runtime: "Runtime[Any]") -> StateUpdate:
    """Begin a turn and plan its next step."""
    ctx: RunContext = runtime.context
    if reason := check_limits(ctx, state["turn"], begins_turn=True):
        return {"stop": reason}
    turn = state["turn"] + 1
    await ctx.begin_turn(turn)
    # A message that came after the verifier's answer is read in this turn, too.
    last_message_seq = await read_new_messages(ctx, state["seen_message_seq"], turn)
    await note_plan_change(ctx, state["seen_message_seq"], last_message_seq, turn)
    inputs = await load_inputs(ctx, state, before_turn=turn, last_message_seq=last_message_seq)
    update = await plan_turn(ctx, inputs, await load_past_turns(ctx, turn), turn)
    has_new_message = last_message_seq > state["seen_message_seq"]
    return {**update, "seen_message_seq": last_message_seq} if has_new_message else update


async def executor(state: State, runtime: "Runtime[Any]") -> StateUpdate:
    """Make one validated tool call and append its memory record."""
    ctx: RunContext = runtime.context
    turn = state["turn"]
    if reason := check_limits(ctx, turn):
        return {"stop": reason}
    inputs = await load_inputs(ctx, state, before_turn=turn)
    plan = await load_output(ctx, state["plan"], Plan)
    call = await request_tool_call(ctx, inputs, plan, turn)
    if isinstance(call, EngineFailure):
        return {"stop": stop_reason_from_failure(call)}
    result = await ctx.call_tool(call, turn=turn)
    await append_record(ctx, plan, result, inputs.memory, turn, inputs.verdict.analysis if inputs.verdict else "")
    return {"tool": result.seq}


async def verifier(state: State, runtime: "Runtime[Any]") -> StateUpdate:
    """Check whether the retrieved evidence is sufficient."""
    ctx: RunContext = runtime.context
    if reason := check_limits(ctx, state["turn"]):
        return {"stop": reason}
    inputs = await load_inputs(ctx, state, before_turn=state["turn"] + 1)
    return await verify_question(ctx, state, inputs, roles.VERIFIER)


async def generator(state: State, runtime: "Runtime[Any]") -> StateUpdate:
    """Submit the report, for any stop reason. This is the last action of the run."""
    ctx: RunContext = runtime.context
    return await submit_report(ctx, await load_inputs(ctx, state), StopReason(state["stop"]))


async def plan_turn(ctx: RunContext, inputs: NodeInputs, past: tuple[PastTurn, ...], turn: int) -> StateUpdate:
    """Ask the planner for the step of a turn that has begun."""
    planner_input = PlannerInput(
        **inputs.collected_fields(),
        tools=inputs.cards,
        verdict=inputs.verdict,
        past=past,
        turn=turn,
        remaining=ctx.run.budget.max_turns - turn + 1,
        phase=find_phase(ctx.run, turn, len(inputs.analysis.sub_questions)),
    )
    reply = await call_fitted(ctx, roles.PLANNER, planner_input, turn=turn)
    if isinstance(reply, EngineFailure):
        return {"turn": turn, "stop": stop_reason_from_failure(reply)}
    return {"turn": turn, "plan": reply.seq}


async def request_tool_call(ctx: RunContext, inputs: NodeInputs, plan: Plan, turn: int) -> ToolCall | EngineFailure:
    """Return the tool call of a plan. The executor is asked if the plan does not name valid arguments.

    A call of an unknown tool is passed on unchanged, so that it is rejected and recorded.
    """
    card = next((c for c in inputs.cards if c.name == plan.tool), None)
    if card is None:
        return ToolCall(plan.tool, {})
    if plan.args is not None and find_args_problem(ctx, plan.tool, plan.args) is None:
        await ctx.append_steps(_draft_planned_call(plan, turn))
        return ToolCall(plan.tool, dict(plan.args))
    executor_input = ExecutorInput(
        question=inputs.question,
        plan=plan,
        tool=card,
        memory=inputs.memory,
        evidence=inputs.evidence,
        left_out_passages=inputs.left_out_passages,
    )
    reply = await call_fitted(ctx, roles.EXECUTOR, executor_input, turn=turn)
    return reply if isinstance(reply, EngineFailure) else ToolCall(reply.output.tool, dict(reply.output.args))


def _draft_planned_call(plan: Plan, turn: int) -> StepDraft:
    """Return a step draft for a tool call whose arguments the plan named, so that the executor was not asked."""
    call = Command(tool=plan.tool, args=plan.args or {})
    payload = {"output": call.model_dump(mode="json"), "arguments_from": "plan"}
    title = roles.EXECUTOR.headline(call).title
    return StepDraft(StepKind.TOOL_CALL, title, payload, "call", "The plan named the arguments.", turn=turn)


def build_verifier_input(ctx: RunContext, inputs: NodeInputs, turn: int) -> VerifierInput:
    """Build the verifier's input at the end of a turn."""
    remaining = ctx.run.budget.max_turns - turn
    return VerifierInput(
        **inputs.collected_fields(),
        tools=inputs.cards,
        verdict=inputs.verdict,
        turn=turn,
        remaining=remaining,
        phase=find_phase(ctx.run, turn + 1, len(inputs.analysis.sub_questions)),
    )


async def verify_question(
    ctx: RunContext, state: State, inputs: NodeInputs, role: Role[VerifierInput, Verdict]
) -> StateUpdate:
    """Ask a verifier whether to stop. If a user message arrived meanwhile, the run continues.

    It is not asked where no judgment could change how the run ends.
    """
    turn = state["turn"]
    if _is_verdict_needless(ctx, inputs, turn):
        await ctx.append_steps(_draft_needless_verdict(turn))
        last_message_seq = await read_new_messages(ctx, state["seen_message_seq"], turn)
        return {"seen_message_seq": last_message_seq, "stop": StopReason.TURN_LIMIT}
    reply = await call_fitted(ctx, role, build_verifier_input(ctx, inputs, turn), turn=turn)
    last_message_seq = await read_new_messages(ctx, state["seen_message_seq"], turn)
    if isinstance(reply, EngineFailure):
        return {"stop": stop_reason_from_failure(reply), "seen_message_seq": last_message_seq}
    has_new_message = last_message_seq > state["seen_message_seq"]
    await note_plan_change(ctx, state["seen_message_seq"], last_message_seq, turn)
    stop = "" if has_new_message else await _decide_stop(ctx, inputs, reply.output, turn)
    return {"verdict": reply.seq, "seen_message_seq": last_message_seq, "stop": stop}


def _is_verdict_needless(ctx: RunContext, inputs: NodeInputs, turn: int) -> bool:
    """Return whether no judgment could change how the run ends.

    After the last turn of a run that has found nothing at all, every judgment leads to `NOTHING_FOUND` and to a report
    without a model. Where something was found, the judgment decides between `ANSWERED` and `TURN_LIMIT`, and the
    writer reads it. The first judgment of a run is always made.
    """
    return inputs.verdict is not None and turn >= ctx.run.budget.max_turns and _has_searched_in_vain(inputs)


def _draft_needless_verdict(turn: int) -> StepDraft:
    """Return a step draft that says why the verifier was not asked."""
    detail = "Any judgment would lead to the same report and the same reason."
    payload = {"skipped_role": roles.VERIFIER.name, "reason": StopReason.NOTHING_FOUND}
    return StepDraft(StepKind.NOTE, NEEDLESS_VERDICT_TITLE, payload, "not asked", detail, turn=turn)


async def _decide_stop(ctx: RunContext, inputs: NodeInputs, verdict: Verdict, turn: int) -> StopReason | Literal[""]:
    """Return why the run ends after a turn. Empty means that it continues.

    A verifier's stop that comes too early for a deep run, or while a part that must be answered is open, is recorded
    and not followed.
    """
    parts = inputs.analysis.sub_questions
    open_musts = list_open_musts(inputs.task, verdict.coverage, inputs.memory)
    if verdict.stop and open_musts and turn < ctx.run.budget.max_turns:
        await ctx.append_steps(draft_continued(open_musts, turn))
        return ""
    if verdict.stop and may_stop(ctx.run, turn, len(parts), verdict.coverage):
        return _stop_reason_from_verdict(verdict)
    if is_deep(ctx.run):
        covered = await load_covered_counts(ctx)
        if is_saturated(ctx.run, turn, len(parts), inputs.memory, covered):
            return StopReason.SATURATED
    if verdict.stop:
        await ctx.append_steps(_draft_early_stop(verdict, parts, turn))
    return ""


def _draft_early_stop(verdict: Verdict, parts: Sequence[str], turn: int) -> StepDraft:
    """Return a step draft that says that a deep run continues although its verifier would stop."""
    answered = {c.sub_question for c in verdict.coverage if c.covered}
    open_parts = [part for part in parts if part not in answered]
    detail = " \u00b7 ".join(open_parts)
    return StepDraft(StepKind.NOTE, EARLY_STOP_TITLE, {"open": open_parts}, "continue", detail, turn=turn)


async def submit_report(ctx: RunContext, inputs: NodeInputs, stop: StopReason, **more_fields: Any) -> StateUpdate:
    """Submit the report and return the reason that it states. The generator writes it if it can.

    `more_fields` are further fields of the writer's input.
    """
    reason = _resolve_final_reason(inputs, stop)
    writer_input = WriterInput(
        **inputs.collected_fields(), **_list_judged(inputs.verdict), reason=reason, **more_fields
    )
    if reason in NO_MODEL_REASONS or not inputs.has_findings:
        await submit_findings(ctx, roles.GENERATOR, build_report(writer_input), reason, is_checked=False)
        return {"stop": reason}
    written = await write_report(ctx, roles.GENERATOR, writer_input)
    if isinstance(written, EngineFailure):
        reason = stop_reason_from_failure(written)
        draft = build_report(writer_input.model_copy(update={"reason": reason}))
        await submit_findings(ctx, roles.GENERATOR, draft, reason, is_checked=False)
        return {"stop": reason}
    if written.failure is not None:
        reason = stop_reason_from_failure(written.failure)
    await submit_findings(ctx, roles.GENERATOR, written.draft, reason)
    return {"stop": reason}


def _list_judged(verdict: Verdict | None) -> dict[str, tuple[str, ...]]:
    """Return what the last judgment says of the parts of the question, as fields of the writer's input."""
    coverage = verdict.coverage if verdict else ()
    open_parts = [f"{c.sub_question}: {c.missing}" if c.missing else c.sub_question for c in coverage if not c.covered]
    return {
        "covering": tuple(dict.fromkeys(id for c in coverage for id in c.evidence)),
        "open_parts": tuple(open_parts),
    }


def _stop_reason_from_verdict(verdict: Verdict) -> StopReason:
    """Return the stop reason of a verifier's stop.

    It is `NOTHING_FOUND` if no part of the question is covered, else `ANSWERED`.
    """
    nothing = bool(verdict.coverage) and not any(c.covered for c in verdict.coverage)
    return StopReason.NOTHING_FOUND if nothing else StopReason.ANSWERED


_ENDS_WITHOUT_FINDINGS = frozenset({StopReason.ANSWERED, StopReason.SATURATED, StopReason.TURN_LIMIT})
"""Stop reasons that mean, if nothing was found, that there is nothing to find."""


def _resolve_final_reason(inputs: NodeInputs, reason: StopReason) -> StopReason:
    """Return the reason that the report states.

    It is `NOTHING_FOUND` if the run made successful tool calls but has no findings.
    """
    return StopReason.NOTHING_FOUND if _has_searched_in_vain(inputs) and reason in _ENDS_WITHOUT_FINDINGS else reason


def _has_searched_in_vain(inputs: NodeInputs) -> bool:
    """Return whether tool calls succeeded and brought nothing to write about."""
    return not inputs.has_findings and any(record.status == "ok" for record in inputs.memory)
