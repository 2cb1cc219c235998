"""The report of a run whose agent could not write it: quotes of everything that the run retrieved."""

from offing.sdk import Evidence, ReportDraft, RunContext, RunView, Step, StepKind, StopReason, result_of
from offing_graphs.extractive.analysis import analysis_of
from offing_graphs.extractive.report import report
from offing_graphs.parts.findings import brought_back, finding, pieces, value_of
from offing_graphs.parts.shapes import Case, Exchange, Record, WriterInput

SEEN = 240
"""Passages that the report chooses from, the latest."""
KEPT = 64
"""Tool calls that it knows of, the latest."""


async def report_without_model(ctx: RunContext, reason: StopReason) -> tuple[ReportDraft, StopReason]:
    """The draft, and the reason as it states it: a run that looked and has nothing says so."""
    evidence = await ctx.evidence(SEEN)
    records = tuple(_record(step, evidence) for step in await ctx.recall(StepKind.TOOL, KEPT))
    found = bool(evidence) or any(r.value for r in records)
    if not found and records and reason is StopReason.TURN_LIMIT:
        reason = StopReason.NOTHING_FOUND
    return _draft(ctx.run, records, evidence, reason), reason


def salvage(run: RunView, evidence: tuple[Evidence, ...]) -> ReportDraft:
    """A report without a model, for a run that ended before its agent could write."""
    return _draft(run, (), evidence, None)


def _draft(
    run: RunView, records: tuple[Record, ...], evidence: tuple[Evidence, ...], reason: StopReason | None
) -> ReportDraft:
    earlier = tuple(Exchange(question=q, answer=a) for q, a in run.earlier)
    analysis = analysis_of(Case(question=run.question, earlier=earlier))
    return report(
        WriterInput(
            question=run.question,
            earlier=earlier,
            analysis=analysis,
            memory=records,
            evidence=pieces(evidence),
            reason=reason or "",
        )
    )


def _record(step: Step, evidence: tuple[Evidence, ...]) -> Record:
    result = result_of(step)
    back = brought_back(result, evidence)
    goal = next((v for _, v in sorted(result.args.items()) if isinstance(v, str)), result.tool)
    return Record(
        turn=step.turn,
        sub_goal=goal[:400],
        tool=result.tool,
        args=result.args,
        status=result.status,
        finding=finding(goal, result, back),
        value=value_of(result),
        evidence=tuple(e.id for e in back),
    )
