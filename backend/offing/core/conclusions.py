"""Conclusions of a report: sentences without a citation that say so, and that follow from supported sentences.

Rules decide. They look for words such as "therefore" or "my conclusion", for supported sentences that speak of the
same, and for the values of the conclusion in these sentences or in calculations of the run. They do not decide whether
the conclusion is right. The functions are pure.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from offing.core.citation import ClaimContext
from offing.core.claim_support import ClaimSupport, find_unsupported_values
from offing.core.report import Conclusion, Layout, Report, Section, Sentence
from offing.core.shared_terms import list_terms, shares_terms

MAX_PREMISES = 6
"""Maximum number of sentences that a conclusion is said to follow from because they speak of the same."""

_SAYS_SO = re.compile(
    r"\b(?:conclu(?:de[sd]?|sions?)|therefore|thus|hence|consequently|accordingly|overall|altogether|together"
    r"|it follows|follows that|in (?:sum|short|total|all)|(?:this|which|that) (?:means|implies|suggests)"
    r"|(?:I|we) (?:advise|recommend|infer)"
    r"|fazit|schlu(?:ss|\u00df)(?:folgerung)?|folglich|somit|demnach|deshalb|insgesamt"
    r"|donc|par cons\u00e9quent|en somme|conclusi\u00f3n|por (?:lo )?tanto|en suma)\b"
    r"|^so\b|\u7ed3\u8bba|\u56e0\u6b64|\u6240\u4ee5|\u7efc\u4e0a|\u7531\u6b64|\u7d50\u8ad6|\u3057\u305f\u304c\u3063\u3066|\u3064\u307e\u308a",
    re.IGNORECASE,
)
"""Words with which a sentence says that it is a conclusion, in some languages."""


def mark_conclusions(report: Report, context: ClaimContext) -> Report:
    """Return the report in which each conclusion names the sentences that it follows from.

    It is called with the final verdicts, because a conclusion only follows from supported sentences.
    """
    places = {sentence.id: 0 for sentence in ([report.answer] if report.answer else [])}
    places |= {s.id: number for number, section in enumerate(report.sections, 1) for s in section.sentences}
    supported = [s for s in report.sentences() if s.citations and s.is_supported and s.layout is not Layout.HEADER]

    def mark(sentence: Sentence) -> Sentence:
        return replace(sentence, conclusion=_find_conclusion(sentence, supported, places, context))

    sections = tuple(Section(section.heading, tuple(map(mark, section.sentences))) for section in report.sections)
    return replace(report, answer=report.answer and mark(report.answer), sections=sections)


def _find_conclusion(
    sentence: Sentence, supported: Sequence[Sentence], places: Mapping[str, int], context: ClaimContext
) -> Conclusion | None:
    if sentence.is_claim or sentence.layout is Layout.HEADER or not _SAYS_SO.search(sentence.text):
        return None
    terms, place = list_terms(sentence.text), places[sentence.id]

    def rank(one: Sentence) -> tuple[bool, int]:
        return places[one.id] != place, -len(terms & list_terms(one.text))

    ordered = sorted(supported, key=rank)
    premises = [one for one in ordered if shares_terms(sentence.text, one.text)][:MAX_PREMISES]
    missing = _find_missing(sentence, premises, context)
    for one in ordered:
        if missing and len(left := _find_missing(sentence, [*premises, one], context)) < len(missing):
            premises, missing = [*premises, one], left
    return None if missing or not premises else _name_premises(premises, supported)


def _find_missing(sentence: Sentence, premises: Sequence[Sentence], context: ClaimContext) -> tuple[str, ...]:
    """Return the numbers, dates and names of a conclusion that neither its premises nor the context state."""
    texts = tuple(one.text for one in premises)
    support = ClaimSupport(texts, calculations=context.calculations, question=context.question)
    return find_unsupported_values(sentence.text, support)


def _name_premises(premises: Sequence[Sentence], supported: Sequence[Sentence]) -> Conclusion:
    ids = {one.id for one in premises}
    in_order = [one for one in supported if one.id in ids]
    numbers = dict.fromkeys(number for one in in_order for number in one.citations)
    return Conclusion(tuple(one.id for one in in_order), tuple(numbers))
