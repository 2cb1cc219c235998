"""The report of a run whose graph submitted none.

It is the graph's own answer, or a fallback report without a model.
"""

import re

from offing.core.report import DraftCitation, DraftSection, DraftSentence, Evidence, ReportDraft
from offing.core.run import StopReason
from offing.kernel.execution import GraphProgress
from offing.kernel.run_setup import ActiveRun
from offing.kernel.run_store import JournalEntry
from offing.sdk import Graph, RunInfo

MAX_FALLBACK_EVIDENCE = 12
MAX_QUOTE_CHARS = 300

MAX_CITABLE_PASSAGES = 10_000
"""Maximum number of passages that the answer of an adapted LangGraph graph may cite."""


async def build_adapter_report(graph: Graph, run: ActiveRun, progress: GraphProgress) -> ReportDraft | None:
    """Return the report in the final state of an adapted LangGraph graph. `None` means that there is none."""
    if graph.langgraph_adapter is None or not progress.state:
        return None
    return graph.langgraph_adapter.build_report(
        run.context.run, progress.state, await run.context.get_evidence(MAX_CITABLE_PASSAGES)
    )


async def build_final_report(
    graph: Graph, run: ActiveRun, adapter_report: ReportDraft | None, stop_reason: StopReason
) -> JournalEntry:
    """Return the report with which a run ends: the graph's own answer, or a fallback report.

    `stop_reason` is the reason why the run ended.
    """
    if adapter_report is not None:
        return await run.components.reports.prepare_final_report(adapter_report, stop_reason)
    return await run.components.reports.prepare_report(await _build_fallback_report(graph, run), stop_reason)


def choose_stop_reason(adapter_report: ReportDraft | None) -> StopReason:
    """Return the stop reason of a run that submitted no report."""
    return StopReason.ANSWERED if adapter_report else StopReason.NOTHING_FOUND


async def _build_fallback_report(graph: Graph, run: ActiveRun) -> ReportDraft:
    evidence = await run.context.get_evidence(MAX_FALLBACK_EVIDENCE)
    if graph.fallback_report is not None:
        return graph.fallback_report(run.context.run, evidence)
    return build_evidence_list(run.context.run, evidence)


def build_evidence_list(run: RunInfo, evidence: tuple[Evidence, ...]) -> ReportDraft:
    """Return a report that only lists the retrieved passages, for a graph without its own writer."""
    sentences = tuple(_quote_start(e) for e in evidence)
    sections = (DraftSection(heading="What was retrieved", sentences=sentences),) if sentences else ()
    return ReportDraft(title=run.question[:200], sections=sections, limits="The run ended before a report was written.")


def _quote_start(evidence: Evidence) -> DraftSentence:
    """Return a sentence that quotes the first words of a passage."""
    words = _cut_at_word(evidence.text, MAX_QUOTE_CHARS)
    citation = DraftCitation(evidence=evidence.id, quote=words)
    return DraftSentence(text=f"\u201c{' '.join(words.split())}\u201d", citations=(citation,))


def _cut_at_word(text: str, max_chars: int) -> str:
    """Return the start of a text, cut between two words. A first word that is too long is kept whole."""
    stripped = text.strip()
    if len(stripped) <= max_chars:
        return stripped
    cut = max((match.start() for match in re.finditer(r"\s", stripped[: max_chars + 1])), default=0)
    return stripped[:cut].rstrip() if cut else stripped.split(maxsplit=1)[0]
