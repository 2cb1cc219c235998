"""What a run has seen, in order: the passages in its tools' observations, each once, as E1, E2 …

An observation that retrieved text carries artefact, source, title, start, end and text: in each of its `passages`, or
itself when it is a single stretch. Nothing else can become evidence.
"""

from collections.abc import Iterable, Mapping, Set
from typing import Any
from uuid import UUID

from offing.core import provenance
from offing.core.provenance import NOBODY, Label
from offing.core.report import Evidence
from offing.core.tool import Span


class EvidenceBook:
    """Evidence of one run in the order of first retrieval. Ids never change once given."""

    def __init__(self) -> None:
        self._by_span: dict[Span, Evidence] = {}
        self._seqs: dict[Span, set[int]] = {}

    def add(self, content: Mapping[str, Any], label: Label = NOBODY, seq: int = 0) -> None:
        """Take the passages of one observation with that label; those already known keep their ids.

        `seq`: the step that records it.
        """
        for passage in _passages(content):
            span = Span(UUID(str(passage["artefact"])), int(passage["start"]), int(passage["end"]))
            if span not in self._by_span:
                self._by_span[span] = _evidence(f"E{len(self._by_span) + 1}", span, passage, label)
            self._seqs.setdefault(span, set()).add(seq)

    def without(self, hidden: Set[int]) -> "EvidenceBook":
        """Return what is known without these steps, under the same ids."""
        book = EvidenceBook()
        book._seqs = {span: seqs - hidden for span, seqs in self._seqs.items() if seqs - hidden}
        book._by_span = {span: piece for span, piece in self._by_span.items() if span in book._seqs}
        return book

    def latest(self, most: int) -> tuple[Evidence, ...]:
        """The last `most` pieces, oldest first."""
        return tuple(self._by_span.values())[-most:] if most > 0 else ()

    def all(self) -> dict[str, Evidence]:
        """Every piece by its id."""
        return {piece.id: piece for piece in self._by_span.values()}

    def __len__(self) -> int:
        return len(self._by_span)


def _passages(content: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    return (content,) if "artefact" in content and "text" in content else content.get("passages") or ()


def _evidence(id: str, span: Span, passage: Mapping[str, Any], label: Label) -> Evidence:
    return Evidence(
        id=id,
        span=span,
        text=str(passage["text"]),
        source=UUID(str(passage["source"])),
        title=str(passage.get("title", "")),
        heading=str(passage.get("heading", "")),
        name=str(passage.get("name", "")),
        label=provenance.passage(passage, label),
    )
