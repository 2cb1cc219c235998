"""How a run's report is written when no round gave an answer, and what every early end says. Asks no engine."""

from typing import Any

from offing.sdk import (
    DraftSection,
    ReportDraft,
    RunContext,
    RunView,
    Step,
    StepKind,
    StopReason,
    ToolStatus,
    Unusable,
    result_of,
    shortened,
)
from offing_graphs.extractive import report as extractive_report
from offing_graphs.extractive.analysis import analysis_of
from offing_graphs.extractive.report import EARLY
from offing_graphs.iterresearch.ledger import is_ledger
from offing_graphs.iterresearch.state import State
from offing_graphs.iterresearch.workspace import latest_round
from offing_graphs.parts.findings import brought_back, pieces, value_of
from offing_graphs.parts.shapes import Case, Exchange, Piece, Record, WriterInput
from offing_graphs.parts.written import read_report

SEEN = 240
"""Passages that a report without a model draws from, the latest."""
CALLS = 64
"""Tool calls that it names, the latest."""
SO_FAR = "The researcher's report when the run ended"


def ended_early(draft: ReportDraft, reason: StopReason) -> ReportDraft:
    """The draft with its limits naming what ended the run, whoever wrote it."""
    early = EARLY.get(reason)
    said = f"Collecting ended early: {early}." if early else ""
    if not said or said in draft.limits:
        return draft
    return draft.model_copy(update={"limits": f"{said} {draft.limits}".strip()})


async def unfinished(ctx: RunContext, state: State, reason: StopReason) -> ReportDraft:
    """Quotes of what was retrieved, and the report as it stood, where a model wrote it."""
    seen = await ctx.evidence(SEEN)
    calls = await ctx.recall(StepKind.TOOL, CALLS)
    memory = tuple(_record(step, tuple(e.id for e in brought_back(result_of(step), seen))) for step in calls)
    draft = _quotes(ctx.run, pieces(seen), memory, reason)
    last = await latest_round(ctx, state)
    sections = _so_far(last.report) if last else ()
    return draft.model_copy(update={"sections": (*sections, *draft.sections)})


def salvage(run: RunView, evidence: tuple[Piece, ...]) -> ReportDraft:
    """A report of what was retrieved, for a run that ended outside its nodes."""
    return _quotes(run, evidence, (), None)


def _quotes(
    run: RunView, evidence: tuple[Piece, ...], memory: tuple[Record, ...], reason: StopReason | None
) -> ReportDraft:
    earlier = tuple(Exchange(question=q, answer=a) for q, a in run.earlier)
    case: dict[str, Any] = {"question": run.question, "earlier": earlier}
    analysis = analysis_of(Case(**case))
    given = WriterInput(**case, analysis=analysis, memory=memory, evidence=evidence, reason=reason or "")
    return extractive_report.report(given)


def _record(step: Step, evidence: tuple[str, ...]) -> Record:
    result = result_of(step)
    query = str(result.args.get("query") or result.tool)
    return Record(
        turn=step.turn,
        sub_goal=shortened(query, 400),
        tool=result.tool,
        args=result.args,
        status=result.status,
        finding="" if result.status is ToolStatus.OK else result.message,
        value=value_of(result),
        evidence=evidence,
    )


def _so_far(report: str) -> tuple[DraftSection, ...]:
    """A report in prose as sections of the delivered one. Empty: it is the model-free researcher's own list."""
    draft = None if is_ledger(report) else read_report(report, SO_FAR)
    if draft is None or isinstance(draft, Unusable):
        return ()
    lead = read_report(f"## {SO_FAR}\n- {draft.answer}", SO_FAR) if draft.answer else None
    first = lead.sections if isinstance(lead, ReportDraft) else ()
    return (*first, *(s if s.heading else s.model_copy(update={"heading": SO_FAR}) for s in draft.sections))
