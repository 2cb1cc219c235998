"""Submission of reports. Those of a follow-up are merged with the earlier report, or answer a question on it."""

from typing import Any

from offing.sdk import FollowUpKind, FollowUpResult, KindChooser, ReportDraft, Role, RunContext, StepKind, StopReason
from offing_graphs.shared.claim_check import check_claims, submit_quote_report
from offing_graphs.shared.follow_up.merge import merge_findings
from offing_graphs.shared.revision import submit_checked_report
from offing_graphs.shared.task import task_from_run

FOLLOW_UP_LABEL = "follow_up"
"""Label of the note that records the kind of a follow-up."""
MAX_FIRST_STEPS = 64
"""Number of first steps of a run among which the note is looked for."""


async def submit_findings(
    ctx: RunContext, writer: Role[Any, Any], draft: ReportDraft, reason: StopReason, *, is_checked: bool = True
) -> None:
    """Submit a report on what a run has found. In a follow-up, it is merged into the earlier report first.

    With `is_checked`, a draft with problems goes back to its writer once. Without it, the draft consists of quotes. A
    report that a model merged is always checked: the model may have shortened sentences. A checker reads every report
    that has sentences of a model, those of the earlier report included.
    """
    earlier = await ctx.load_earlier_report(with_evidence=False) if ctx.run.follow_up else None
    if earlier is None:
        await _submit(ctx, writer, draft, reason, None, is_checked=is_checked)
        return
    merged, is_merged_by_model = await merge_findings(ctx, writer, task_from_run(ctx.run), earlier, draft, reason)
    result = FollowUpResult(FollowUpKind.RESEARCH, await _find_chooser(ctx), earlier)
    await _submit(ctx, writer, merged, reason, result, is_checked=is_checked or is_merged_by_model)


async def _submit(
    ctx: RunContext,
    writer: Role[Any, Any],
    draft: ReportDraft,
    reason: StopReason,
    follow_up: FollowUpResult | None,
    *,
    is_checked: bool,
) -> None:
    if is_checked:
        await submit_checked_report(ctx, writer, draft, reason, follow_up=follow_up)
    elif follow_up is None:
        await submit_quote_report(ctx, draft, reason)
    else:
        claim_check = await check_claims(ctx, draft, reason)
        await ctx.submit_report(draft, reason, follow_up=follow_up, check=claim_check)


async def _find_chooser(ctx: RunContext) -> KindChooser:
    """Return who chose the kind of this follow-up, from the note that records it."""
    notes = await ctx.get_steps(range(1, MAX_FIRST_STEPS + 1))
    chosen = [s.payload["chosen_by"] for s in notes if s.kind is StepKind.NOTE and s.label == FOLLOW_UP_LABEL]
    return KindChooser(chosen[0]) if chosen else KindChooser.RULES
