"""How an answer compares with a task's reference: the only home of normalisation and of the rule-based scores.

Pure functions over text; each score is from 0 to 1. What reads rows, and what asks models, is elsewhere. Token overlap
and normalisation follow the SQuAD evaluation (Rajpurkar et al. 2016, section 6), with marks kept inside numbers.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from offing.core.citation import find
from offing.core.report import Citation

UNANSWERABLE = ("not answerable", "unanswerable", "cannot be answered")
"""What a right answer says where the reference holds none. The first is how references are written."""

LONGEST_ANSWER = 8_000
"""Code points of an answer that are compared; an answer is a sentence or two."""

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
class Evidence:
    """A place that an answer should stand on. Every part that is given must be cited."""

    quote: str = ""
    """Words of the document. Empty: any of them."""
    source: str = ""
    """The document's id or title. Empty: any document."""
    start: int | None = None
    end: int | None = None
    """Code points of the document's text, end excluded. None: anywhere in it."""


@dataclass(frozen=True, slots=True)
class Reference:
    """What is known to be right about a task. No run reads it; only scoring does."""

    answers: tuple[str, ...]
    """Accepted ones. Empty: the task cannot be answered, and saying so is right."""
    evidence: tuple[Evidence, ...] = ()


def plain(text: str) -> str:
    """An answer's words without markup, tags and citation marks, in one line."""
    text = _LINK.sub(r"\1", _TAG.sub(" ", text[:LONGEST_ANSWER]))
    text = _LINE_START.sub("", _MARKER.sub("", text))
    for _ in range(3):
        text = _EMPHASIS.sub(r"\2", text)
    return " ".join(text.split())


def tokens(text: str) -> tuple[str, ...]:
    """Words that count: lower case, compatibility forms unified, without punctuation and articles.

    A number is one word, with its sign and decimal point, without separators of thousands. A text of articles alone
    keeps them, so that the answer "A" is one.
    """
    folded = unicodedata.normalize("NFKC", text).casefold().replace("\u2212", "-").translate(_APOSTROPHES)
    words = _WORD.findall(_WITHIN_NUMBER.sub("", folded).replace("_", " "))
    return tuple(w for w in words if w not in _ARTICLES) or tuple(words)


def normalised(text: str) -> str:
    """What two equal answers have in common."""
    return " ".join(tokens(text))


def accepted(references: Sequence[str]) -> tuple[str, ...]:
    """The answers that count as right. No reference: the task cannot be answered, and saying so is right."""
    return tuple(references) or UNANSWERABLE


def exact_match(answer: str, references: Sequence[str]) -> float:
    """1: equal to an accepted answer after normalisation. An empty answer equals none."""
    said = normalised(answer)
    return float(bool(said) and said in {normalised(r) for r in accepted(references)})


def token_f1(answer: str, references: Sequence[str]) -> float:
    """The best harmonic mean of precision and recall of words over the accepted answers."""
    return max(_overlap(tokens(answer), tokens(r)) for r in accepted(references))


def _overlap(said: Sequence[str], wanted: Sequence[str]) -> float:
    common = sum((Counter(said) & Counter(wanted)).values())
    return 2 * common / (len(said) + len(wanted)) if common else 0.0


def number_in(text: str) -> Decimal | None:
    """The one number that a text states. None: it states none, or several different ones."""
    found = {Decimal(n.replace("\u2212", "-")) for n in _NUMBER.findall(_WITHIN_NUMBER.sub("", text))}
    return found.pop() if len(found) == 1 else None


def numeric(answer: str, references: Sequence[str], *, absolute: Decimal, relative: Decimal) -> float | None:
    """1: the answer's one number is within a tolerance of a reference's, the wider of the two counting.

    Without any reference, saying that there is no answer is right. None: no reference states one number.
    """
    if not references:
        return exact_match(answer, ())
    wanted = [n for n in map(number_in, references) if n is not None]
    if not wanted:
        return None
    said = number_in(answer)
    return float(said is not None and any(abs(said - n) <= max(absolute, relative * abs(n)) for n in wanted))


def citation_recall(cited: Sequence[Citation], evidence: Sequence[Evidence]) -> float:
    """The share of the evidence that is cited. 1 where there is none to cite."""
    if not evidence:
        return 1.0
    return sum(any(_stands_on(c, piece) for c in cited) for piece in evidence) / len(evidence)


def _stands_on(citation: Citation, wanted: Evidence) -> bool:
    span = citation.span
    overlaps = wanted.start is None or wanted.end is None or (span.start < wanted.end and wanted.start < span.end)
    return overlaps and _same_source(citation, wanted.source) and _same_words(citation.quote, wanted.quote)


def _same_source(citation: Citation, source: str) -> bool:
    wanted = source.strip().casefold()
    return not wanted or wanted in (str(citation.source), citation.title.strip().casefold())


def _same_words(said: str, wanted: str) -> bool:
    """One holds the other, but for whitespace, quotation marks and hyphens."""
    return not wanted.strip() or find(wanted, said) is not None or find(said, wanted) is not None
