"""Load the earlier report of a follow-up, and make its evidence citable in this run. The lookup is a step."""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from offing.core.calculation import find_calculation
from offing.core.evidence import EvidenceIndex
from offing.core.follow_up import FollowUp
from offing.core.provenance import Origin, OriginKind, ProvenanceLabel, TrustLevel, parse_label
from offing.core.report import Citation, DraftCitation, DraftSection, DraftSentence, Report, ReportDraft, Sentence
from offing.core.report_record import report_from_record, report_to_record
from offing.core.step import Step, StepDraft, StepKind
from offing.core.tool import SourceSpan, ToolStatus
from offing.kernel.call_key import CallKeys
from offing.kernel.journal import Journal
from offing.kernel.recorded_calls import TOOL_RESULT_KINDS
from offing.kernel.run_store import EarlierRun, JournalEntry, RunStore
from offing.kernel.step_cache import StepCache
from offing.kernel.tool_executor import ToolExecutor
from offing.sdk.earlier_report import EARLIER_REPORT, EarlierReport

MAX_UNCITED_PASSAGES = 200
"""Maximum number of passages that the earlier run has retrieved and its report does not cite. The latest are kept."""

PROVENANCE = ProvenanceLabel(Origin(OriginKind.MEMORY), TrustLevel.UNTRUSTED)

Passage = dict[str, Any]


class EarlierReportLoader:
    """Loads the earlier report of the run of one claim."""

    def __init__(
        self,
        keys: CallKeys,
        journal: Journal,
        executor: ToolExecutor,
        cache: StepCache,
        store: RunStore,
        follow_up: FollowUp | None,
    ) -> None:
        self._keys, self._journal, self._executor = keys, journal, executor
        self._cache, self._store, self._follow_up = cache, store, follow_up

    async def load(self, *, with_evidence: bool) -> EarlierReport | None:
        """Return the earlier report. `None` means that the run follows none or that it was deleted."""
        if self._follow_up is None:
            return None
        args = {"run": str(self._follow_up.run_id), "version": self._follow_up.version, "evidence": with_evidence}
        call = self._keys.next_call(EARLIER_REPORT, args)
        step = self._journal.take_recorded(call, TOOL_RESULT_KINDS)
        if step is None:
            self._journal.check_new(call)
            content = await self._load_content(self._follow_up, with_evidence=with_evidence)
            payload = _build_payload(args, content)
            title, detail = _describe(content)
            draft = StepDraft(StepKind.TOOL_RESULT, title, payload, "recall", detail, call_key=call.key)
            self._executor.add_external_result(EARLIER_REPORT, payload, PROVENANCE)
            (step,) = await self._journal.append(JournalEntry(draft))
        return earlier_report_from_step(step, await self._cache.get_evidence())

    async def _load_content(self, follow_up: FollowUp, *, with_evidence: bool) -> dict[str, Any]:
        """Return the content of the step. Empty means that the earlier run was deleted."""
        earlier = await self._store.find_earlier_run(follow_up)
        if earlier is None:
            return {}
        retrieved = _list_passages(earlier.tool_results)
        cited, uncited = _select_passages(earlier.report, retrieved)
        passages = [*(uncited[-MAX_UNCITED_PASSAGES:] if with_evidence else ()), *cited]
        stored = [passage for passage in passages if passage["text_id"] != str(UUID(int=0))]
        texts = await self._store.read_texts(list(map(_span_of, stored))) if stored else ()
        stored_passages = [passage for passage, text in zip(stored, texts, strict=True) if text == passage["text"]]
        missing = {(p["text_id"], p["source"]) for p in cited} - {(p["text_id"], p["source"]) for p in stored_passages}
        return {
            "question": earlier.question,
            "report": report_to_record(earlier.report),
            "passages": stored_passages,
            "deleted": _list_deleted_titles(earlier.report, missing),
            "calculations": "\n".join(_list_calculations(earlier)),
        }


def _describe(content: dict[str, Any]) -> tuple[str, str]:
    """Return the title and the second line of the step."""
    if not content:
        return "The earlier report was deleted", ""
    deleted = f" · {len(content['deleted'])} cited documents were deleted" if content["deleted"] else ""
    return f"Earlier report: {content['report']['body']['title']}", f"{len(content['passages'])} passages{deleted}"


def _list_passages(tool_results: Iterable[Step]) -> list[Passage]:
    """Return the passages that tool results have retrieved, each once, in the order of retrieval."""
    index = EvidenceIndex()
    for step in tool_results:
        index.add(step.payload["content"], parse_label(step.payload))
    return [
        {
            "text_id": str(e.span.text_id),
            "start": e.span.start,
            "end": e.span.end,
            "source": str(e.source_id),
            "text": e.text,
            "title": e.title,
            "heading": e.heading,
            "name": e.name,
        }
        for e in index.as_dict().values()
    ]


def _select_passages(report: Report, retrieved: Sequence[Passage]) -> tuple[list[Passage], list[Passage]]:
    """Return the passages that a report cites, and the other passages that its run has retrieved.

    A quote that stands in none of them is a passage by itself.
    """
    spans = [_span_of(passage) for passage in retrieved]
    cited: dict[SourceSpan, Passage] = {}
    for citation in report.cited():
        around = [n for n, span in enumerate(spans) if span.contains(citation.span)]
        smallest = min(around, key=lambda n: spans[n].end - spans[n].start, default=None)
        passage = _passage_from_citation(citation) if smallest is None else retrieved[smallest]
        cited.setdefault(_span_of(passage), passage)
    return list(cited.values()), [p for p, span in zip(retrieved, spans, strict=True) if span not in cited]


def _passage_from_citation(citation: Citation) -> Passage:
    span = {"text_id": str(citation.span.text_id), "start": citation.span.start, "end": citation.span.end}
    return span | {"source": str(citation.source_id), "text": citation.quote, "title": citation.title}


def _span_of(passage: Passage) -> SourceSpan:
    return SourceSpan(UUID(str(passage["text_id"])), int(passage["start"]), int(passage["end"]))


def _list_deleted_titles(report: Report, missing: set[tuple[str, str]]) -> list[str]:
    """Return the titles of cited documents whose texts are missing, each document once."""
    titles = {c.source_id: c.title for c in report.cited() if (str(c.span.text_id), str(c.source_id)) in missing}
    return list(titles.values())


def _list_calculations(earlier: EarlierRun) -> Iterable[str]:
    results = (find_calculation(step.payload) for step in earlier.tool_results)
    return dict.fromkeys(result for result in results if result)


def _build_payload(args: dict[str, Any], content: dict[str, Any]) -> dict[str, Any]:
    status = ToolStatus.OK if content else ToolStatus.FAILED
    empty: dict[str, Any] = {"rule": "", "message": "", "spans": [], "used": {}, "received": {}}
    return {"tool": EARLIER_REPORT, "args": args, "status": status, "content": content} | empty | PROVENANCE.to_json()


def earlier_report_from_step(step: Step, evidence: EvidenceIndex) -> EarlierReport | None:
    """Return a recorded report. Its citations name passages of this run. `None` means that it was deleted."""
    content = step.payload["content"]
    if not content:
        return None
    report = report_from_record(content["report"])
    loaded = {_span_of(passage) for passage in content["passages"]}
    ids = {item.span: item.id for item in evidence.as_dict().values() if item.span in loaded}
    return EarlierReport(
        run_id=UUID(step.payload["args"]["run"]),
        version=step.payload["args"]["version"],
        question=content["question"],
        report=report,
        draft=_build_draft(report, ids),
        deleted_sources=tuple(content["deleted"]),
    )


def _build_draft(report: Report, ids: dict[SourceSpan, str]) -> ReportDraft:
    """Return the report as a draft with evidence ids of this run."""
    citations = {citation.number: citation for citation in report.citations}

    def convert(sentence: Sentence) -> DraftSentence:
        quoted = [_cite(citations[n], ids, quotes=True) for n in sentence.citations if n in citations]
        named = [_cite(citations[n], ids, quotes=False) for n in sentence.passages if n in citations]
        usable = tuple(citation for citation in (*quoted, *named) if citation is not None)
        return DraftSentence(text=sentence.text, citations=usable, layout=sentence.layout)

    answer = convert(report.answer) if report.answer else DraftSentence(text="")
    return ReportDraft(
        title=report.title,
        answer=answer.text,
        answer_citations=answer.citations,
        sections=tuple(
            DraftSection(heading=section.heading, sentences=tuple(map(convert, section.sentences)))
            for section in report.sections
        ),
        limits=report.limits,
    )


def _cite(citation: Citation, ids: dict[SourceSpan, str], *, quotes: bool) -> DraftCitation | None:
    """Return a citation of a passage of this run. `None` means that its text was deleted."""
    around = [span for span in ids if span.contains(citation.span)]
    if not around:
        return None
    evidence = ids[min(around, key=lambda span: span.end - span.start)]
    return DraftCitation(evidence=evidence, quote=citation.quote if quotes else "")
