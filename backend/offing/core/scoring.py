"""Rule-based scores of an answer against a task's reference, and the normalization that they share.

The functions are pure, and each score is from 0 to 1. Token overlap and normalization follow the
SQuAD evaluation (Rajpurkar et al. 2016, section 6), except that punctuation inside numbers is kept.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from offing.core.quote_matching import locate_quote
from offing.core.report import Citation
from offing.core.tool import SourceSpan

UNANSWERABLE_PHRASES = ("not answerable", "unanswerable", "cannot be answered")
"""Accepted answers where the reference has none. The first one is the form used in references."""

MAX_ANSWER_CHARS = 8_000
"""Maximum number of code points of an answer that are compared; an answer is one or two sentences."""

_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
_MARKER = re.compile(r"(?<!\s)\s*\[\^?[A-Z]?\d+(?:\s*[,;]\s*[A-Z]?\d+)*\]")
_LINE_START = re.compile(r"^[ \t]*(?:#{1,6}|>|[-*+](?=\s))[ \t]+", re.MULTILINE)
_EMPHASIS = re.compile(r"(?<![\w*~`])(\*\*\*|\*\*|\*|___|__|~~|`{1,3})(?=\S)(.{1,500}?)(?<=\S)\1(?!\w)", re.DOTALL)

_ARTICLES = frozenset({"a", "an", "the"})
_WITHIN_NUMBER = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_WORD = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?!\w)|\w+")
_NUMBER = re.compile(r"(?<![\w.])[-+\u2212]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w])")
_APOSTROPHES = dict.fromkeys(map(ord, "'\u2019\u2018`"))


@dataclass(frozen=True, slots=True)
class ReferenceEvidence:
    """Reference evidence of an answer. Every part that is set must be cited."""

    quote: str = ""
    """Words of the document. Empty means any words."""
    source: str = ""
    """Id or title of the document. Empty means any document."""
    start: int | None = None
    end: int | None = None
    """Range in code points of the document's text, end exclusive. `None` means anywhere in it."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """One criterion of a rubric, which a report meets to some degree."""

    text: str
    weight: float = 1.0
    """Weight in the value of the whole rubric, greater than 0."""
    rejected: str = ""
    """The sentence that a report must not state. It is data, which a judge reads as a quote. Empty means none."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Reference of a task. Only scoring reads it, never a run."""

    answers: tuple[str, ...] | None
    """Accepted answers. Empty means that the task cannot be answered and that saying so is correct.

    `None` means that the correct answer is unknown.
    """
    evidence: tuple[ReferenceEvidence, ...] = ()
    rubric: tuple[Criterion, ...] = ()
    """What a good report of the task contains. Empty means that the task has no rubric."""


def reference_to_json(reference: Reference) -> dict[str, Any]:
    """Return a reference as JSON values.

    An empty rubric is left out, and so is an empty rejected sentence, as in references stored before there were any.
    """
    values = asdict(reference)
    rubric = [{name: value for name, value in part.items() if name != "rejected" or value} for part in values["rubric"]]
    return values | {"rubric": rubric} if rubric else {name: part for name, part in values.items() if name != "rubric"}


def reference_from_json(values: Mapping[str, Any]) -> Reference:
    """Return the reference of JSON values, the inverse of `reference_to_json`."""
    answers = values["answers"]
    return Reference(
        None if answers is None else tuple(answers),
        tuple(ReferenceEvidence(**part) for part in values["evidence"]),
        tuple(Criterion(**part) for part in values.get("rubric", ())),
    )


def strip_markup(text: str) -> str:
    """Return the words of an answer in one line, without markup, tags and citation markers."""
    text = _LINK.sub(r"\1", _TAG.sub(" ", text[:MAX_ANSWER_CHARS]))
    text = _LINE_START.sub("", _MARKER.sub("", text))
    for _ in range(3):
        text = _EMPHASIS.sub(r"\2", text)
    return " ".join(text.split())


def tokenize_answer(text: str) -> tuple[str, ...]:
    """Split an answer into its significant words.

    Words are in lower case, with compatibility forms unified and without punctuation and articles. A
    number is one word with its sign and decimal point, but without thousands separators. A text of
    articles only keeps them, so that the answer "A" is a word.
    """
    folded = unicodedata.normalize("NFKC", text).casefold().replace("\u2212", "-").translate(_APOSTROPHES)
    words = _WORD.findall(_WITHIN_NUMBER.sub("", folded).replace("_", " "))
    return tuple(w for w in words if w not in _ARTICLES) or tuple(words)


def normalize_answer(text: str) -> str:
    """Return the normalized text; equal answers have the same one."""
    return " ".join(tokenize_answer(text))


def accepted_answers(references: Sequence[str]) -> tuple[str, ...]:
    """Return the accepted answers.

    Without a reference the task cannot be answered, and saying so is correct.
    """
    return tuple(references) or UNANSWERABLE_PHRASES


def exact_match(answer: str, references: Sequence[str]) -> float:
    """Return 1 if the normalized answer equals an accepted answer, else 0. An empty answer equals none."""
    normalized = normalize_answer(answer)
    return float(bool(normalized) and normalized in {normalize_answer(r) for r in accepted_answers(references)})


def token_f1(answer: str, references: Sequence[str]) -> float:
    """Return the highest F1 score of the words over all accepted answers."""
    return max(_word_f1(tokenize_answer(answer), tokenize_answer(r)) for r in accepted_answers(references))


def _word_f1(answer_words: Sequence[str], reference_words: Sequence[str]) -> float:
    common = sum((Counter(answer_words) & Counter(reference_words)).values())
    return 2 * common / (len(answer_words) + len(reference_words)) if common else 0.0


def find_number(text: str) -> Decimal | None:
    """Return the number that a text states. `None` means that it states none or several different ones."""
    numbers = {Decimal(n.replace("\u2212", "-")) for n in _NUMBER.findall(_WITHIN_NUMBER.sub("", text))}
    return numbers.pop() if len(numbers) == 1 else None


def numeric_match(answer: str, references: Sequence[str], *, absolute: Decimal, relative: Decimal) -> float | None:
    """Return 1 if the answer's number is within the tolerance of a reference's number, else 0.

    The larger of both tolerances counts. Without a reference, saying that there is no answer is
    correct. `None` means that no reference states exactly one number.
    """
    if not references:
        return exact_match(answer, ())
    reference_numbers = [n for n in map(find_number, references) if n is not None]
    if not reference_numbers:
        return None
    number = find_number(answer)
    return float(
        number is not None and any(abs(number - n) <= max(absolute, relative * abs(n)) for n in reference_numbers)
    )


def citation_recall(cited: Sequence[Citation], evidence: Sequence[ReferenceEvidence]) -> float:
    """Return the fraction of the reference evidence that is cited. It is 1 if there is none."""
    if not evidence:
        return 1.0
    return sum(any(_cites_evidence(c, item) for c in cited) for item in evidence) / len(evidence)


def citation_precision(cited: Sequence[Citation], evidence: Sequence[ReferenceEvidence]) -> float:
    """Return the fraction of the citations that cite reference evidence.

    Without citations it is 0 if there is reference evidence, and 1 if there is none to cite.
    """
    if not cited:
        return float(not evidence)
    return sum(any(_cites_evidence(c, item) for item in evidence) for c in cited) / len(cited)


def _cites_evidence(citation: Citation, evidence: ReferenceEvidence) -> bool:
    return states_evidence(citation.span, citation.quote, citation.source_id, citation.title, evidence)


def states_evidence(span: SourceSpan, words: str, source_id: UUID, title: str, evidence: ReferenceEvidence) -> bool:
    """Return whether a span of a source states reference evidence: its source, its range and its words.

    `words` is the text of the span. It contains the words of the evidence or is contained in them.
    """
    overlaps = (
        evidence.start is None or evidence.end is None or (span.start < evidence.end and evidence.start < span.end)
    )
    return overlaps and _is_same_source(source_id, title, evidence.source) and _has_same_words(words, evidence.quote)


def _is_same_source(source_id: UUID, title: str, source: str) -> bool:
    source_key = source.strip().casefold()
    return not source_key or source_key in (str(source_id), title.strip().casefold())


def _has_same_words(quote: str, reference_quote: str) -> bool:
    """Return whether one text contains the other, ignoring whitespace, quotation marks and hyphens."""
    return (
        not reference_quote.strip()
        or locate_quote(reference_quote, quote) is not None
        or locate_quote(quote, reference_quote) is not None
    )
