"""The report of a run whose graph delivered none: the graph's own answer, or a fallback without a model."""

from offing.core.report import DraftCitation, DraftSection, DraftSentence, Evidence, ReportDraft
from offing.core.run import StopReason
from offing.kernel.execution import Execution
from offing.kernel.opening import OpenRun
from offing.kernel.store import Entry
from offing.sdk import Graph, RunView

MAX_FALLBACK_EVIDENCE = 12

MAX_CITABLE_PASSAGES = 10_000
"""Passages that the answer of a graph written for LangGraph alone may cite."""


async def own_answer(graph: Graph, run: OpenRun, ended: Execution) -> ReportDraft | None:
    """Return the report in the values of a graph that delivers none itself. `None` means that there is none."""
    if graph.plain is None or not ended.values:
        return None
    return graph.plain.answer(run.context.run, ended.values, await run.context.evidence(MAX_CITABLE_PASSAGES))


async def closing_report(graph: Graph, run: OpenRun, own: ReportDraft | None, stop: StopReason) -> Entry:
    """Return the report that a run ends with: the graph's own answer, or a fallback report. `stop`: why it ended."""
    if own is not None:
        return await run.parts.reports.closing(own, stop)
    return await run.parts.reports.checked(await _fallback(graph, run), stop)


def reason_without_report(own: ReportDraft | None) -> StopReason:
    """Return why a run ended that delivered no report."""
    return StopReason.ANSWERED if own else StopReason.NOTHING_FOUND


async def _fallback(graph: Graph, run: OpenRun) -> ReportDraft:
    evidence = await run.context.evidence(MAX_FALLBACK_EVIDENCE)
    if graph.salvage is not None:
        return graph.salvage(run.context.run, evidence)
    return evidence_list(run.context.run, evidence)


def evidence_list(run: RunView, evidence: tuple[Evidence, ...]) -> ReportDraft:
    """Return a report that only lists what was retrieved, for a graph without a writer of its own."""
    sentences = tuple(
        DraftSentence(text=f"\u201c{' '.join(e.text.split())[:300]}\u201d", citations=(DraftCitation(evidence=e.id),))
        for e in evidence
    )
    sections = (DraftSection(heading="What was retrieved", sentences=sentences),) if sentences else ()
    return ReportDraft(title=run.question[:200], sections=sections, limits="The run ended before a report was written.")
