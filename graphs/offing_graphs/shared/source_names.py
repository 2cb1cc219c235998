"""Names of sources in place of ids of passages, in the citations of a report.

A name stands for a passage only if exactly one passage of that source can be meant.
"""

import re
from collections.abc import Sequence

from offing_graphs.shared.schemas import RetrievedPassage

_NAMED = re.compile(r"\[([^\[\]\n:\"\u201c]{2,200})(:\s*[\"\u201c](.{0,4000}?)[\"\u201d])?\](?!\()", re.DOTALL)


def name_passages(text: str, evidence: Sequence[RetrievedPassage]) -> str:
    """Return a text whose citations such as `[pool.md: "words"]` name the passage instead of its source."""

    def replace_name(match: re.Match[str]) -> str:
        passage = find_passage(match.group(1), match.group(3) or "", evidence)
        return match.group() if passage is None else f"[{passage.id}{match.group(2) or ''}]"

    return _NAMED.sub(replace_name, text) if evidence else text


def find_passage(name: str, quote: str, evidence: Sequence[RetrievedPassage]) -> RetrievedPassage | None:
    """Return the only passage of the source with this name, title, id or short id that holds the quote.

    `None` means that there is none or that there are several.
    """
    source = _fold(name)
    of_source = [p for p in evidence if source in {_fold(one) for one in _list_names(p)} - {""}]
    holding = [p for p in of_source if _fold(quote) in _fold(p.text)] if quote.strip() else of_source
    return holding[0] if len(holding) == 1 else None


def shorten_source_ids(text: str, evidence: Sequence[RetrievedPassage]) -> str:
    """Return a text that names the sources of passages by their short ids, such as the arguments of a tool call."""
    for source, label in {p.source: p.source_label for p in evidence if p.source_label and p.source}.items():
        text = text.replace(source, label)
    return text


def _list_names(passage: RetrievedPassage) -> tuple[str, ...]:
    return passage.name, passage.title, passage.source, passage.text_id, passage.source_label


def _fold(text: str) -> str:
    return " ".join(text.split()).casefold()
