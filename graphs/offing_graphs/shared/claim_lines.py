"""The answer of the checker, and its text format: one line per claim and per conflict, with bars between the fields."""

import re
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from offing.sdk import InvalidOutput
from offing_graphs.shared.schemas import FrozenModel
from offing_graphs.shared.tagged_text import parse_whole

TEXT_FORMAT_RULE = """One line per sentence: its number, supported or partly or contradicted or not found, the id of \
the passage that you judged, and why in a few words. Only after contradicted follow the words that contradict it:
s1 | supported | E3 | it names the builder
s4 | contradicted | E5 | another year | words copied exactly from E5
Then one line per conflict between sources, if there are any: both passages with their words, and the matter:
conflict | E5 | words copied exactly from E5 | E9 | words copied exactly from E9 | year of completion"""

Verdict = Literal["supported", "partly", "contradicted", "not_found"]

_VERDICTS: tuple[tuple[re.Pattern[str], Verdict], ...] = (
    (re.compile(r"not|unsupported|no\b", re.IGNORECASE), "not_found"),
    (re.compile(r"part", re.IGNORECASE), "partly"),
    (re.compile(r"contradict", re.IGNORECASE), "contradicted"),
    (re.compile(r"supported|fully supported", re.IGNORECASE), "supported"),
)
_NUMBER = re.compile(r"[\W_]*(s\d+)[\W_]*")
_PASSAGE = re.compile(r"\b(E\d+)\b")
_CONFLICT = re.compile(r"[\W_]*conflict[\W_]*", re.IGNORECASE)
_QUOTATION_MARKS = "\"'\u201c\u201d\u00ab\u00bb`"


class JudgedClaim(FrozenModel):
    """The judgment of one sentence."""

    id: str = Field(description="Number of the sentence, such as s4.")
    verdict: Verdict = Field(description="What the cited passages say of the sentence.")
    passage: str = Field(default="", description="Id of the passage that was judged, such as E3.")
    why: str = Field(default="", description="Why, in a few words.")
    quote: str = Field(default="", description="Only if contradicted: the words of the passage, copied exactly.")


class FoundConflict(FrozenModel):
    """Two passages of different sources that disagree."""

    first_passage: str = Field(description="Id of a passage, such as E5.")
    first_quote: str = Field(description="Its words, copied exactly.")
    second_passage: str = Field(description="Id of a passage of another source.")
    second_quote: str = Field(description="Its words, copied exactly.")
    matter: str = Field(default="", description="What they disagree about, in a few words.")


class CheckerOutput(FrozenModel):
    """The checker's answer."""

    judgments: tuple[JudgedClaim, ...]
    conflicts: tuple[FoundConflict, ...] = ()


def parse_lines(text: str, _inputs: Any) -> CheckerOutput | InvalidOutput:
    """Parse the lines of judgments and conflicts. Other lines are ignored, but there must be a judgment."""
    block = parse_whole(text)
    rows = [line.strip().strip("|").split("|") for line in (block.text if block else "").splitlines() if "|" in line]
    judgments = tuple(one for row in rows if (one := _parse_judgment(row)) is not None)
    conflicts = tuple(conflict for row in rows if (conflict := _parse_conflict(row)) is not None)
    if not judgments:
        return InvalidOutput("There is no line with a judgment, such as: s1 | supported | E3 | it names the builder")
    return CheckerOutput(judgments=judgments, conflicts=conflicts)


def render_lines(output: CheckerOutput, _inputs: Any) -> str:
    judgments = [
        (one.id, one.verdict.replace("_", " "), one.passage, one.why, *((one.quote,) if one.quote else ()))
        for one in output.judgments
    ]
    conflicts = [
        ("conflict", one.first_passage, one.first_quote, one.second_passage, one.second_quote, one.matter)
        for one in output.conflicts
    ]
    return "\n".join(" | ".join(map(_to_field, fields)) for fields in (*judgments, *conflicts))


def _parse_judgment(fields: Sequence[str]) -> JudgedClaim | None:
    number = _NUMBER.fullmatch(fields[0])
    verdict = _read_verdict(fields[1]) if len(fields) > 1 else None
    if number is None or verdict is None:
        return None
    passage, why, *quote = (*fields[2:], "", "")
    return JudgedClaim(
        id=number[1],
        verdict=verdict,
        passage=_read_passage(passage),
        why=why.strip(),
        quote=_read_quote("|".join(quote).strip("|")),
    )


def _parse_conflict(fields: Sequence[str]) -> FoundConflict | None:
    if not _CONFLICT.fullmatch(fields[0]) or len(fields) < 5:
        return None
    return FoundConflict(
        first_passage=_read_passage(fields[1]),
        first_quote=_read_quote(fields[2]),
        second_passage=_read_passage(fields[3]),
        second_quote=_read_quote(fields[4]),
        matter="|".join(fields[5:]).strip(),
    )


def _read_verdict(field: str) -> Verdict | None:
    text = field.strip(" *_.")
    return next((verdict for pattern, verdict in _VERDICTS if pattern.match(text)), None)


def _read_passage(field: str) -> str:
    match = _PASSAGE.search(field)
    return match[1] if match else ""


def _read_quote(field: str) -> str:
    return field.strip().strip(_QUOTATION_MARKS).strip()


def _to_field(text: str) -> str:
    return " ".join(text.replace("|", "/").split())
