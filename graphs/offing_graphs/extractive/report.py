"""Writing a report without a model: chosen sentences in quotation marks, each with the passage that it was copied from.

It quotes and does not reason, and says so. Every quote is cut out of a passage's text, so that it is found there again.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from offing.sdk import DraftCitation, DraftSection, DraftSentence, ReportDraft, StopReason, shortened
from offing_graphs.extractive.agenda import CALCULATE, OTHER_FORMS, SEARCH, Standing, standings
from offing_graphs.extractive.form import LONGEST_QUOTE, cut_short, is_dangling
from offing_graphs.extractive.lines import WHOLE, Line, block_of
from offing_graphs.extractive.measure import Hit
from offing_graphs.extractive.question import compares
from offing_graphs.extractive.quotes import distinct
from offing_graphs.extractive.split import Kind, Unit, is_header, plain, units
from offing_graphs.extractive.wants import asks_for_list, asks_for_steps
from offing_graphs.parts.shapes import Piece, Record, WriterInput

QUOTES = 5
"""Quotes a section at most."""
NEAREST = 3
"""Quotes where no passage answers."""
LISTED = 7
"""Quotes where several things are asked for."""
LEAST = 0.42
"""Score under which a sentence is not quoted as an answer."""
NEAR_BEST = 0.5
"""Share of the best sentence's score that the others must reach."""
OWN_SHARE = 0.2
"""Weight of the question's words that a quote must hold itself."""
SHARE = 0.42
"""Weight that it must hold with its heading."""
CLOSEST = 0.38
"""Score under which a sentence is not even shown as the closest."""
ANSWERS = 3
"""Quotes in the short answer at most."""
EXTRACT = 300
"""Code points up to which a quote goes on with the sentences that follow."""
CODE_LINES, CODE_LENGTH = 12, 400

HOW_MADE = (
    "This report was made without a language model. It quotes sentences that share words with the question; it does "
    "not reason, compare or conclude. Read a quote in its place before you rely on it."
)
ONE_PART, CLOSEST_PART = "What the documents say", "The closest passages"
NOTHING = "Nothing in the documents answers this question."
NOT_DIRECTLY = "No passage answers this directly; the closest ones are quoted below."
EARLY = {
    StopReason.TURN_LIMIT: "the limit on turns was reached",
    StopReason.TOKEN_LIMIT: "the limit on tokens was reached",
    StopReason.SPEND_LIMIT: "the run's money was spent",
    StopReason.TENANT_SPEND_LIMIT: "the spending cap of the day was reached",
    StopReason.TIME_LIMIT: "the time was over",
    StopReason.CONTEXT_LIMIT: "the work outgrew the space that its flow allows",
    StopReason.PROVIDER_DOWN: "the model's provider gave no usable answer",
    StopReason.INVALID_OUTPUT: "the model did not answer in the form that was needed",
    StopReason.ASKED_TO_WRITE: "a person asked for what there is",
}

_IMPORT = re.compile(r"\s*(?:import\b|from\s+\S+\s+import\b|#include\b|using\s|.*=\s*require\()")
_MARKER = re.compile(r"\[(E\d+(?:\s*[,;]\s*E\d+)*)\]")


@dataclass(frozen=True, slots=True)
class Quote:
    """A stretch of a passage to be quoted. `start` and `end` are code points of the passage's text."""

    piece: Piece
    start: int
    end: int
    code: bool = False
    extra: bool = False
    """It belongs to another quote, such as a table's first row."""

    @property
    def exact(self) -> str:
        return self.piece.text[self.start : self.end]

    @property
    def place(self) -> tuple[str, int]:
        return self.piece.artefact, self.piece.start + self.start

    def shown(self) -> str:
        """In quotation marks, without markup; what looks like our own marker does not stay one."""
        seen = " ".join(self.exact.split()) if self.code else plain(self.exact)
        return "\u201c" + _unmarked(seen) + (" …" if self._breaks_off() else "") + "\u201d"

    def _breaks_off(self) -> bool:
        """It ends before its sentence does: cut by us, or by the border of the passage."""
        if self.code or plain(self.exact)[-1:] in ".!?:;)\u2026\u3002":
            return False
        at_border = self.end >= len(self.piece.text.rstrip()) and len(self.exact.split()) >= 12
        return at_border or not any(unit.end == self.end for unit in units(self.piece.text))

    def sentence(self) -> DraftSentence:
        citation = DraftCitation(evidence=self.piece.id, quote=self.exact)
        return DraftSentence(text=self.shown(), citations=(citation,))


def report(given: WriterInput) -> ReportDraft:
    """The whole report, for any reason and any evidence, also none."""
    found = standings(given.analysis.sub_questions, given.wishes, given.evidence, given.memory)
    sums = tuple(r for r in given.memory if r.tool == CALCULATE and r.value)
    covered = [s for s in found if s.covered and s.hits]
    sections = _sections(found, bool(covered))
    return ReportDraft(
        title=shortened(given.question.strip(), 120),
        answer=_answer(covered, found, sums),
        sections=(*_calculated(sums), *sections),
        limits=_limits(given, found),
    )


def _sections(found: Sequence[Standing], any_covered: bool) -> tuple[DraftSection, ...]:
    used: set[tuple[str, int]] = set()
    sections: list[DraftSection] = []
    for s in found:
        if (s.covered and s.hits) or not any_covered:
            chosen = _quotes(s)
            quotes = [q for q in chosen if q.place not in used] or (chosen[:1] if s.covered else [])
            used |= {q.place for q in quotes}
            if quotes:
                sections.append(DraftSection(heading=_heading(s, len(found)), sentences=tuple(_placed(quotes))))
    return tuple(sections)


def _heading(s: Standing, parts: int) -> str:
    """A single part would only repeat the report's title."""
    if parts == 1:
        return ONE_PART if s.covered else CLOSEST_PART
    return s.part if s.covered else f"Closest to: {s.part}"


def _quotes(s: Standing) -> list[Quote]:
    """What is quoted for one part: the best sentences that say different things, each with what it leans on."""
    if not s.hits:
        return []
    least = max(LEAST, NEAR_BEST * s.hits[0].score) if s.covered else CLOSEST
    fitting = [h for h in s.hits if _fits(h)] or ([] if compares(s.part) else list(s.hits[:1]))
    most = (LISTED if asks_for_list(s.part) else QUOTES) if s.covered else NEAREST
    near = [h for h in s.hits if h.line.unit.kind is not Kind.ROW]
    chosen = distinct(fitting if s.covered else near, most, least)
    how = asks_for_steps(s.part)
    quotes = [q for hit in chosen for q in (*_header(hit.line), _whole(hit.line), *_following(hit.line, how))]
    return _merged(quotes)


def _fits(hit: Hit) -> bool:
    """A row of a table takes its meaning from the names of its columns, a sentence from its own words."""
    row = hit.line.unit.kind is Kind.ROW
    return (row or hit.share >= OWN_SHARE) and hit.with_heading >= SHARE


def _whole(line: Line) -> Quote:
    """The whole paragraph where it is short; else the sentence with what it leans on and some that follow it."""
    all_units, at = _position(line)
    first, last = block_of(all_units, at)
    if all_units[last].end - all_units[first].start <= WHOLE:
        return Quote(line.piece, all_units[first].start, all_units[last].end)
    start, end = line.unit.start, line.unit.end
    before = all_units[at - 1] if at > first else None
    if before and is_dangling(line.text) and end - before.start <= LONGEST_QUOTE:
        start = before.start
    for unit in all_units[at + 1 : last + 1]:
        if unit.end - start > EXTRACT or line.piece.text.startswith("See ", unit.start):
            break
        end = unit.end
    return Quote(line.piece, start, start + cut_short(line.piece.text[start:end]))


def _header(line: Line) -> list[Quote]:
    """The first row of the table that a row belongs to."""
    all_units, at = _position(line)
    if line.unit.kind is not Kind.ROW:
        return []
    first = at
    while first and all_units[first - 1].kind is Kind.ROW:
        first -= 1
    top = all_units[first]
    named = first < at and is_header(line.piece.text, top)
    return [Quote(line.piece, top.start, top.end, extra=True)] if named else []


def _following(line: Line, how: bool) -> list[Quote]:
    """The list or the code that a sentence introduces with a colon."""
    all_units, at = _position(line)
    after = all_units[at + 1 :]
    if not line.text.endswith(":") or not after:
        return []
    if after[0].kind is Kind.CODE:
        return [Quote(line.piece, after[0].start, after[0].end, code=True)] if how and _short(line, after[0]) else []
    items = tuple(_run_of_items(after))[:QUOTES]
    return [Quote(line.piece, u.start, u.start + cut_short(line.piece.text[u.start : u.end])) for u in items]


def _short(line: Line, unit: Unit) -> bool:
    code = line.piece.text[unit.start : unit.end]
    if all(_IMPORT.match(row) for row in code.splitlines() if row.strip()):
        return False
    return len(code) <= CODE_LENGTH and code.count("\n") < CODE_LINES


def _run_of_items(after: Sequence[Unit]) -> Iterable[Unit]:
    for unit in after:
        if unit.kind not in {Kind.ITEM, Kind.ROW}:
            return
        yield unit


def _position(line: Line) -> tuple[tuple[Unit, ...], int]:
    all_units = units(line.piece.text)
    return all_units, all_units.index(line.unit)


def _merged(quotes: Sequence[Quote]) -> list[Quote]:
    """Best first; what is part of another quote is left out."""
    kept: list[Quote] = []
    for quote in quotes:
        if not any(_inside(quote, other) for other in kept):
            at = next((n for n, other in enumerate(kept) if _inside(other, quote)), len(kept))
            kept = [*kept[:at], quote, *(other for other in kept[at:] if not _inside(other, quote))]
    return kept


def _inside(one: Quote, other: Quote) -> bool:
    start, begin = one.place[1], other.place[1]
    same = one.piece.artefact == other.piece.artefact
    return same and begin <= start and start + len(one.exact) <= begin + len(other.exact)


def _placed(quotes: Sequence[Quote]) -> Iterable[DraftSentence]:
    """Each quote with its place, where the place is not that of the quote before."""
    last = ""
    for quote in quotes:
        place = _place(quote.piece, quote.start)
        sentence = quote.sentence()
        yield sentence if place == last else sentence.model_copy(update={"text": f"{place}: {sentence.text}"})
        last = place


def _place(piece: Piece, at: int) -> str:
    """Title and nearest heading."""
    inner = [u for u in units(piece.text) if u.kind is Kind.HEADING and u.start <= at]
    heading = plain(piece.text[inner[-1].start : inner[-1].end]) if inner else piece.heading
    title = plain(piece.title)
    nearest = plain(heading.split(" \u203a ")[-1].split(" > ")[-1]).rstrip(":")
    return _unmarked(shortened(title if nearest.lower() in {"", title.lower()} else f"{title}, {nearest}", 100))


def _unmarked(text: str) -> str:
    """What looks like our own marker of a citation does not stay one."""
    return _MARKER.sub(r"(\1)", text)


def _answer(covered: Sequence[Standing], found: Sequence[Standing], sums: Sequence[Record]) -> str:
    """The best quote of each part that is covered, a result that was calculated, or that there is nothing."""
    results = [f"{_unmarked(r.value)}." for r in sums[:ANSWERS]]
    tops = _first_quotes(([s for s in covered if not compares(s.part)] or covered)[:ANSWERS])
    quoted = [f"{q.shown()} [{q.piece.id}]" for q in tops]
    near = any(s.hits and s.hits[0].score >= CLOSEST for s in found)
    return " ".join([*results, *quoted]) or (NOT_DIRECTLY if near else NOTHING)


def _first_quotes(covered: Sequence[Standing]) -> list[Quote]:
    found: list[Quote] = []
    for s in covered:
        known = {f.place for f in found}
        fresh = [q for q in _quotes(s) if not q.code and q.place not in known]
        top = next((n for n, q in enumerate(fresh) if not q.extra), None)
        if top is not None:
            found += [*(q for q in fresh[max(0, top - 1) : top] if q.extra), fresh[top]]
    return found


def _calculated(sums: Sequence[Record]) -> tuple[DraftSection, ...]:
    sentences = tuple(DraftSentence(text=f"{_unmarked(r.value)}.") for r in sums)
    return (DraftSection(heading="Calculated", sentences=sentences),) if sums else ()


def _limits(given: WriterInput, found: Sequence[Standing]) -> str:
    gaps = [_gap(s) for s in found if not s.covered]
    unsaid = [w for s in found if s.covered and s.hits for w in s.unsaid]
    thin = f"No quote speaks of: {', '.join(dict.fromkeys(unsaid))}." if unsaid else ""
    early = EARLY.get(StopReason(given.reason)) if given.reason else None
    ended = f"Collecting ended early: {early}." if early else ""
    return " ".join(t for t in (*gaps, _searched(given) if gaps else "", thin, ended, HOW_MADE) if t)


def _gap(s: Standing) -> str:
    words = f" No passage that was retrieved holds: {', '.join(s.missing)}." if s.missing else ""
    return f"Not found: \u201c{s.part}\u201d.{words}"


def _searched(given: WriterInput) -> str:
    searches = [r for r in given.memory if r.tool == SEARCH and r.status == "ok"]
    queries = [str(r.args.get("query", "")) for r in searches if not r.sub_goal.startswith(OTHER_FORMS)]
    listed = "; ".join(f"\u201c{shortened(q, 80)}\u201d" for q in dict.fromkeys(queries) if q)
    return f"Searched for: {listed}." if listed else "No search was made."
