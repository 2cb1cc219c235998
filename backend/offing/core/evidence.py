"""Evidence of a run: the passages of its tool results, each once, numbered E1, E2 and so on.

Their sources are numbered S1, S2 and so on, so that prompts need not contain ids of the database.

A tool result that retrieved text has the text id, source, title, start, end and text, either in
each of its `passages` or at the top level if it is a single passage. Nothing else can become
evidence.
"""

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from typing import Any
from uuid import UUID

from offing.core import provenance
from offing.core.provenance import NO_PROVENANCE, ProvenanceLabel
from offing.core.report import Evidence
from offing.core.tool import SourceSpan

_DATE = re.compile(r"\d{4}(?:-\d{2}){0,2}", re.ASCII)
"""Other texts are no dates, whatever tool returned them, because prompts show dates outside of untrusted blocks."""


class EvidenceIndex:
    """Evidence of one run in the order of first retrieval, and its calculations. Ids never change."""

    def __init__(self) -> None:
        self._by_span: dict[SourceSpan, Evidence] = {}
        self._seqs: dict[SourceSpan, set[int]] = {}
        self._source_labels: dict[UUID, str] = {}
        self._calculations: dict[int, str] = {}

    def add(self, content: Mapping[str, Any], label: ProvenanceLabel = NO_PROVENANCE, seq: int = 0) -> None:
        """Add the passages of one tool result with their provenance label.

        Passages that are already known keep their ids. `seq` is the number of the step that records the
        result.
        """
        for passage in _iter_passages(content):
            span = SourceSpan(UUID(str(passage["text_id"])), int(passage["start"]), int(passage["end"]))
            if span not in self._by_span:
                evidence = _build_evidence(f"E{len(self._by_span) + 1}", span, passage, label)
                self._by_span[span] = replace(evidence, source_label=self._label_source(evidence.source_id))
            self._seqs.setdefault(span, set()).add(seq)

    def add_calculation(self, result: str, seq: int) -> None:
        """Add the result of a calculation that step `seq` records."""
        self._calculations[seq] = result

    @property
    def calculations(self) -> tuple[str, ...]:
        """Results of the run's calculations in the order of their steps."""
        return tuple(self._calculations[seq] for seq in sorted(self._calculations))

    def exclude_steps(self, excluded_seqs: Set[int]) -> "EvidenceIndex":
        """Return a copy without the evidence and calculations of these steps. Ids stay the same."""
        book = EvidenceIndex()
        book._seqs = {span: seqs - excluded_seqs for span, seqs in self._seqs.items() if seqs - excluded_seqs}
        book._by_span = {span: evidence for span, evidence in self._by_span.items() if span in book._seqs}
        book._calculations = {seq: one for seq, one in self._calculations.items() if seq not in excluded_seqs}
        return book

    def latest(self, limit: int) -> tuple[Evidence, ...]:
        """Return at most `limit` of the latest passages, oldest first."""
        return tuple(self._by_span.values())[-limit:] if limit > 0 else ()

    def as_dict(self) -> dict[str, Evidence]:
        """Return all evidence by id."""
        return {evidence.id: evidence for evidence in self._by_span.values()}

    def find_source_id(self, label: str) -> UUID | None:
        """Return the id of the source with a short id such as S2. `None` means that the run has retrieved none."""
        return next((e.source_id for e in self._by_span.values() if e.source_label == label), None)

    def _label_source(self, source_id: UUID) -> str:
        return self._source_labels.setdefault(source_id, f"S{len(self._source_labels) + 1}")

    def __len__(self) -> int:
        return len(self._by_span)


def _iter_passages(content: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    return (content,) if "text_id" in content and "text" in content else content.get("passages") or ()


def _build_evidence(id: str, span: SourceSpan, passage: Mapping[str, Any], label: ProvenanceLabel) -> Evidence:
    return Evidence(
        id=id,
        span=span,
        text=str(passage["text"]),
        source_id=UUID(str(passage["source"])),
        title=str(passage.get("title", "")),
        heading=str(passage.get("heading", "")),
        name=str(passage.get("name", "")),
        provenance=provenance.label_passage(passage, label),
        published=date if _DATE.fullmatch(date := str(passage.get("published", ""))) else "",
    )
