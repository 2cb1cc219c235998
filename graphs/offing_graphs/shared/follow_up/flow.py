"""The node before the first node of a graph: it chooses the kind of a follow-up, and answers or edits.

A run that follows no report never enters it, so that its steps and checkpoints are those of the graph without it.
"""

from typing import TYPE_CHECKING, Any

from offing.sdk import (
    EarlierReport,
    EngineFailure,
    FollowUpKind,
    FollowUpResult,
    KindChooser,
    Role,
    RunContext,
    StepDraft,
    StepKind,
)
from offing_graphs.shared.claim_check import check_claims
from offing_graphs.shared.findings import passages_from_evidence
from offing_graphs.shared.fitted_calls import call_fitted
from offing_graphs.shared.follow_up.edit import edit_report, restrict_edit
from offing_graphs.shared.follow_up.kind import KindInput, build_kind_role, choose_kind_by_rules, render_outline
from offing_graphs.shared.follow_up.question import answer_question
from offing_graphs.shared.follow_up.submit import FOLLOW_UP_LABEL
from offing_graphs.shared.memory import MAX_EVIDENCE
from offing_graphs.shared.revision import submit_checked_report
from offing_graphs.shared.schemas import TaskContext
from offing_graphs.shared.state import StateUpdate
from offing_graphs.shared.stop_reasons import check_limits
from offing_graphs.shared.task import task_from_run

if TYPE_CHECKING:
    from langgraph.runtime import Runtime

FOLLOW_UP = "follow_up"
"""Name of the node."""


def add_follow_up(graph: Any, first: str, writer: Role[Any, Any]) -> None:
    """Let follow-ups on a report begin at the node `follow_up`, and all other runs at `first`.

    `writer` is the role whose engine writes the reports of the graph.
    """
    from langgraph.graph import END, START

    async def follow_up(state: Any, runtime: "Runtime[Any]") -> StateUpdate:
        return await handle_follow_up(runtime.context, state, writer)

    async def choose_entry(_state: Any, runtime: Any) -> str:  # LangGraph evaluates the annotations of a router
        return FOLLOW_UP if runtime.context.run.follow_up else first

    async def choose_next(state: Any) -> str:
        return END if state["stop"] else first

    graph.add_node(FOLLOW_UP, follow_up)
    graph.add_conditional_edges(START, choose_entry, [FOLLOW_UP, first])
    graph.add_conditional_edges(FOLLOW_UP, choose_next, [first, END])


async def handle_follow_up(ctx: RunContext, state: Any, writer: Role[Any, Any]) -> StateUpdate:
    """Answer a question on the earlier report, or edit it. For new research, leave the state unchanged."""
    requested = ctx.run.follow_up.kind if ctx.run.follow_up else FollowUpKind.RESEARCH
    earlier = await ctx.load_earlier_report(with_evidence=requested is not FollowUpKind.EDIT)
    if earlier is None:
        await ctx.append_steps(_draft_kind(FollowUpKind.RESEARCH, KindChooser.RULES, "The report was deleted."))
        return {}
    task = task_from_run(ctx.run)
    kind, chooser, why = await _choose_kind(ctx, state, writer, task, earlier, requested)
    await ctx.append_steps(_draft_kind(kind, chooser, why))
    if kind is FollowUpKind.QUESTION:
        return await _answer(ctx, writer, task, FollowUpResult(kind, chooser, earlier))
    if kind is FollowUpKind.EDIT:
        return await _edit(ctx, writer, task, FollowUpResult(kind, chooser, earlier))
    return {}


async def _choose_kind(
    ctx: RunContext,
    state: Any,
    writer: Role[Any, Any],
    task: TaskContext,
    earlier: EarlierReport,
    requested: FollowUpKind,
) -> tuple[FollowUpKind, KindChooser, str]:
    """Return the kind, who chose it, and why."""
    if requested is not FollowUpKind.AUTO:
        return requested, KindChooser.PERSON, ""
    if ctx.can_revise(writer) and check_limits(ctx, state["turn"]) is None:
        inputs = KindInput(**dict(task), outline=render_outline(earlier.draft))
        reply = await call_fitted(ctx, build_kind_role(writer), inputs)
        if not isinstance(reply, EngineFailure):
            return FollowUpKind(reply.output.kind), KindChooser.MODEL, reply.output.why
    passages = passages_from_evidence(await ctx.get_evidence(MAX_EVIDENCE))
    kind, why = choose_kind_by_rules(task, earlier.draft, passages)
    return kind, KindChooser.RULES, why


async def _answer(ctx: RunContext, writer: Role[Any, Any], task: TaskContext, follow_up: FollowUpResult) -> StateUpdate:
    draft, reason = await answer_question(ctx, writer, task, follow_up.earlier)
    await submit_checked_report(ctx, writer, draft, reason, follow_up=follow_up)
    return {"stop": reason.value}


async def _edit(ctx: RunContext, writer: Role[Any, Any], task: TaskContext, follow_up: FollowUpResult) -> StateUpdate:
    earlier = follow_up.earlier
    draft, reason, unchanged = await edit_report(ctx, writer, task, earlier)
    result = FollowUpResult(follow_up.kind, follow_up.chosen_by, earlier, unchanged)
    if unchanged:
        await ctx.submit_report(draft, reason, follow_up=result, check=await check_claims(ctx, draft, reason))
    else:
        await submit_checked_report(
            ctx, writer, draft, reason, follow_up=result, restrict=lambda one: restrict_edit(one, earlier.draft)
        )
    return {"stop": reason.value}


def _draft_kind(kind: FollowUpKind, chooser: KindChooser, why: str) -> StepDraft:
    payload = {"kind": kind.value, "chosen_by": chooser.value, "why": why}
    by = {KindChooser.PERSON: "chosen by you", KindChooser.MODEL: "chosen by the model", KindChooser.RULES: "by rules"}
    detail = f"{by[chooser]}: {why}" if why else by[chooser]
    return StepDraft(StepKind.NOTE, f"Follow-up: {kind}", payload, FOLLOW_UP_LABEL, detail)
