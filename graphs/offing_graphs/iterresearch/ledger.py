"""The report of the researcher without a model: findings for people, and steps taken that the next round reads back.

The only home of that text's grammar. Nothing else is carried over, so every step and what it brought stands in it.
"""

import json
import re
from collections.abc import Iterable, Sequence

from offing.sdk import ReportDraft, shortened
from offing_graphs.iterresearch.shapes import REPORT_TOKENS
from offing_graphs.parts.measuring import tokens_of
from offing_graphs.parts.shapes import Record

TAKEN, NEXT, FINDINGS = "## Steps taken", "Next: ", "## Findings so far"
STEPS_TOKENS = REPORT_TOKENS * 3 // 4
"""Of a report, for its steps. They go before findings, which can be made again from the passages that steps name."""
GOAL = 400
"""Code points of a goal."""

_TEXT = r'"(?:[^"\\]|\\.)*"'
_STEP = re.compile(
    rf"(?P<tool>\S+) (?P<goal>{_TEXT})(?: for (?P<query>{_TEXT}))?(?: = (?P<value>{_TEXT}))?"
    r"(?:: (?P<status>\w+), (?P<fresh>\d+) new(?P<ids>(?: E\d+)*))?"
)
_NUMBERED = re.compile(r"(\d+)\. (.+)")
_PLACE = re.compile(r"\{(\d+)\}")


def is_ledger(report: str) -> bool:
    """This report was written here."""
    return TAKEN in report.split("\n")


def written(draft: ReportDraft, taken: Sequence[Record], then: Record | None, parts: Sequence[str]) -> str:
    """A round's report within its limit: findings as quotes, steps taken, and the step that this round takes.

    `then` None: the round answers. Where not all findings fit, the last ones are left out and counted; where not all
    steps do, the oldest.
    """
    steps = _fitting([f"{r.turn}. {_line(r, parts)}" for r in reversed(taken)], STEPS_TOKENS)
    left_out = len(taken) - len(steps)
    head = [f"({left_out} earlier steps are left out.)"] if left_out else []
    told = [f"{{{n}}} stands for: {shortened(part, 120)}" for n, part in sorted(_places(parts))]
    tail = [f"{NEXT}{_line(then, parts, open=True)}"] if then else []
    below = "\n".join(["", TAKEN, *told, *head, *reversed(steps), *tail])
    return _findings(draft, REPORT_TOKENS - tokens_of(below) - 40) + "\n" + below


def read(report: str, parts: Sequence[str]) -> tuple[tuple[Record, ...], Record | None]:
    """The steps taken, and the one that was to be taken next. A report of another kind has none."""
    lines = report.split("\n")
    if not is_ledger(report):
        return (), None
    below = lines[len(lines) - lines[::-1].index(TAKEN) :]
    taken = [r for line in below if (m := _NUMBERED.fullmatch(line)) and (r := _record(m[2], int(m[1]), parts))]
    then = next((_record(line.removeprefix(NEXT), 0, parts) for line in below if line.startswith(NEXT)), None)
    return tuple(taken), then


def _findings(draft: ReportDraft, room: int) -> str:
    said = [
        shortened(s.text, 700) + _ids(c.evidence for c in s.citations) for sec in draft.sections for s in sec.sentences
    ]
    lines = [f"- {line}" for line in dict.fromkeys(said)]
    kept = _fitting(lines, room)
    more = [f"({len(lines) - len(kept)} more findings are left out.)"] if len(kept) < len(lines) else []
    return "\n".join([FINDINGS, *(kept or ["Nothing yet."]), *more])


def _ids(evidence: Iterable[str]) -> str:
    return "".join(f" [{id}]" for id in evidence)


def _fitting(lines: Sequence[str], tokens: int) -> list[str]:
    """The first lines that fit together."""
    kept: list[str] = []
    for line in lines:
        tokens -= tokens_of(line + "\n")
        if tokens < 0:
            break
        kept.append(line)
    return kept


def _line(record: Record, parts: Sequence[str], *, open: bool = False) -> str:
    query = str(record.args.get("query", ""))
    asked = f" for {_told(query, parts)}" if query else ""
    value = f" = {_told(record.value, ())}" if record.value else ""
    ids = "".join(f" {id}" for id in record.evidence)
    came = "" if open else f": {record.status}, {record.fresh} new{ids}"
    return f"{record.tool} {_told(record.sub_goal, parts)}{asked}{value}{came}"


def _record(line: str, turn: int, parts: Sequence[str]) -> Record | None:
    m = _STEP.fullmatch(line)
    if m is None:
        return None
    query = _read(m["query"], parts) if m["query"] else ""
    return Record(
        turn=turn,
        sub_goal=_read(m["goal"], parts),
        tool=m["tool"],
        args={"query": query} if query else {},
        status=m["status"] or "",
        finding="",
        value=_read(m["value"], ()) if m["value"] else "",
        evidence=tuple((m["ids"] or "").split()),
        fresh=int(m["fresh"] or 0),
    )


def _told(text: str, parts: Sequence[str]) -> str:
    """A text in quotation marks, with {n} in place of the nth part of the question."""
    for number, part in _places(parts):
        text = text.replace(part, f"{{{number}}}")
    return json.dumps(text, ensure_ascii=False)


def _read(told: str, parts: Sequence[str]) -> str:
    known = {str(number): part for number, part in _places(parts)}
    return _PLACE.sub(lambda m: known.get(m[1], m[0]), str(json.loads(told)))


def _places(parts: Sequence[str]) -> list[tuple[int, str]]:
    """Parts that can be told by their number, longest first. None where a part itself looks like a place."""
    plain = not any("{" in part for part in parts)
    numbered = [(n, part) for n, part in enumerate(parts, 1) if len(part) > 3]
    return sorted(numbered, key=lambda p: (-len(p[1]), p[0])) if plain else []
