"""The recorded form of a report: JSON that a report is read back from, with or without its citations."""

from dataclasses import asdict
from typing import Any
from uuid import UUID

from offing.core.follow_up import outcome_from_json, outcome_to_json
from offing.core.report import (
    Citation,
    ClaimCheck,
    ClaimJudgment,
    ClaimVerdict,
    Conclusion,
    Conflict,
    Layout,
    Report,
    ReportRevision,
    ReportStatus,
    Section,
    Sentence,
    VersionOrigin,
)
from offing.core.tool import SourceSpan


def report_to_json(report: Report) -> dict[str, Any]:
    """Return the parts of a report that are stored as JSON."""
    return {
        "title": report.title,
        "answer": None if report.answer is None else _sentence_to_json(report.answer),
        "sections": [
            {"heading": section.heading, "sentences": [_sentence_to_json(s) for s in section.sentences]}
            for section in report.sections
        ],
        "limits": report.limits,
        "written_by": report.written_by,
        **({"revision": asdict(report.revision)} if report.revision else {}),
        **({"follow_up": outcome_to_json(report.follow_up)} if report.follow_up else {}),
        **({"check": asdict(report.check)} if report.check else {}),
        **({"conflicts": [asdict(one) for one in report.conflicts]} if report.conflicts else {}),
        **({"edit": origin_to_json(report.edit)} if report.edit else {}),
    }


def report_from_parts(status: str, reason: str, body: dict[str, Any], citations: tuple[Citation, ...]) -> Report:
    """Build a report from its stored parts."""
    return Report(
        title=body["title"],
        status=ReportStatus(status),
        stop_reason=reason,
        answer=None if body["answer"] is None else _sentence_from_json(body["answer"]),
        sections=tuple(
            Section(s["heading"], tuple(map(_sentence_from_json, s["sentences"]))) for s in body["sections"]
        ),
        citations=citations,
        limits=body["limits"],
        written_by=body["written_by"],
        revision=ReportRevision(**body["revision"]) if "revision" in body else None,
        follow_up=outcome_from_json(body["follow_up"]) if "follow_up" in body else None,
        check=ClaimCheck(**body["check"]) if "check" in body else None,
        conflicts=tuple(map(_conflict_from_json, body.get("conflicts", ()))),
        edit=_origin_from_json(body["edit"]) if "edit" in body else None,
    )


def origin_to_json(origin: VersionOrigin) -> dict[str, Any]:
    """Return who made a version as JSON. `run_id` is left out if a person saved it."""
    stored = {"by": origin.by, "base_version": origin.base_version, "note": origin.note}
    return stored if origin.run_id is None else stored | {"run_id": str(origin.run_id)}


def _origin_from_json(stored: dict[str, Any]) -> VersionOrigin:
    run_id = stored.get("run_id")
    return VersionOrigin(stored["by"], stored["base_version"], stored["note"], UUID(run_id) if run_id else None)


def _sentence_to_json(sentence: Sentence) -> dict[str, Any]:
    return {
        "id": sentence.id,
        "text": sentence.text,
        "citations": list(sentence.citations),
        "rejected": list(sentence.rejected),
        **({} if sentence.layout is Layout.STATEMENT else {"layout": sentence.layout.value}),
        **({"passages": list(sentence.passages)} if sentence.passages else {}),
        **({"unsupported_values": list(sentence.unsupported_values)} if sentence.unsupported_values else {}),
        **({"judgment": asdict(sentence.judgment)} if sentence.judgment else {}),
        **({"edited": True} if sentence.is_edited else {}),
        **({"conclusion": asdict(sentence.conclusion)} if sentence.conclusion else {}),
    }


def _sentence_from_json(stored: dict[str, Any]) -> Sentence:
    return Sentence(
        stored["id"],
        stored["text"],
        tuple(stored["citations"]),
        tuple(stored["rejected"]),
        tuple(stored.get("passages", ())),
        tuple(stored.get("unsupported_values", ())),
        Layout(stored.get("layout", Layout.STATEMENT)),
        _judgment_from_json(stored["judgment"]) if "judgment" in stored else None,
        stored.get("edited", False),
        _conclusion_from_json(stored["conclusion"]) if "conclusion" in stored else None,
    )


def _conclusion_from_json(stored: dict[str, Any]) -> Conclusion:
    return Conclusion(tuple(stored["sentences"]), tuple(stored["citations"]))


def _judgment_from_json(stored: dict[str, Any]) -> ClaimJudgment:
    verdict = ClaimVerdict(stored["verdict"])
    return ClaimJudgment(verdict, stored["reason"], stored["passage"], stored["contradiction"])


def _conflict_from_json(stored: dict[str, Any]) -> Conflict:
    first, second = stored["citations"]
    return Conflict(stored["matter"], (first, second))


def report_to_record(report: Report) -> dict[str, Any]:
    """Return a report with its citations as JSON."""
    return {
        "status": report.status.value,
        "stop_reason": report.stop_reason,
        "body": report_to_json(report),
        "citations": [citation_to_json(citation) for citation in report.citations],
    }


def report_from_record(record: dict[str, Any]) -> Report:
    """Return a report from its recorded form, the inverse of `report_to_record`."""
    citations = tuple(map(_citation_from_json, record["citations"]))
    return report_from_parts(record["status"], record["stop_reason"], record["body"], citations)


def citation_to_json(citation: Citation) -> dict[str, Any]:
    return {
        "number": citation.number,
        "text_id": str(citation.span.text_id),
        "start": citation.span.start,
        "end": citation.span.end,
        "quote": citation.quote,
        "source": str(citation.source_id),
        "title": citation.title,
    }


def _citation_from_json(stored: dict[str, Any]) -> Citation:
    span = SourceSpan(UUID(stored["text_id"]), stored["start"], stored["end"])
    return Citation(stored["number"], span, stored["quote"], UUID(stored["source"]), stored["title"])
