"""Reports without a model: quoted sentences, each with the passage that it was copied from.

A report quotes, does not reason, and says so. Every quote is cut from the text of a
passage, so that it can be found there again.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from offing.sdk import (
    DraftCitation,
    DraftSection,
    DraftSentence,
    ReportDraft,
    ReportLength,
    ReportStyle,
    StopReason,
    shorten_line,
)
from offing_graphs.extractive.agenda import OTHER_FORMS_PREFIX
from offing_graphs.extractive.answer_types import is_how_to_question, is_list_question
from offing_graphs.extractive.coverage import PartStatus, assess_parts
from offing_graphs.extractive.line_scores import ScoredLine
from offing_graphs.extractive.lines import PassageLine
from offing_graphs.extractive.question import is_comparison
from offing_graphs.extractive.quote_ranges import find_quote_range
from offing_graphs.extractive.quotes import select_distinct
from offing_graphs.extractive.readability import find_quote_end
from offing_graphs.extractive.text_units import (
    Unit,
    UnitKind,
    is_table_header,
    split_units,
    strip_markup,
)
from offing_graphs.extractive.tool_names import CALCULATE, SEARCH_LIBRARY
from offing_graphs.shared.schemas import MemoryRecord, RetrievedPassage, WriterInput

MAX_LIST_ITEMS = 5
"""Maximum number of items that are quoted of a list that a sentence introduces."""
MIN_SCORE = 0.42
"""Minimum score of a sentence that is quoted as an answer."""
MIN_BEST_FRACTION = 0.75
"""Minimum score of the other quotes, as a fraction of the best score."""
MIN_BEST_WEIGHT_FRACTION = 0.8
"""Minimum weight of the question's words of the other quotes with their headings, as a fraction of the best quote's.

A sentence that has fewer of them is about something else, and scores by its place or its form.
"""
MIN_OWN_WEIGHT = 0.2
"""Minimum weight of the question's words that a quote must contain."""
MIN_WEIGHT_WITH_HEADING = 0.42
"""Minimum weight of the question's words that a quote must contain with its heading."""
MIN_CLOSEST_SCORE = 0.38
"""Minimum score of a sentence that is shown as the closest."""
MAX_ANSWER_QUOTES = 3
"""Maximum number of quotes in the short answer."""
MAX_CODE_LINES, MAX_CODE_CHARS = 12, 400

METHOD_NOTE = (
    "This report was made without a language model. It quotes sentences that share words with the question; it does "
    "not reason, compare or conclude. Read a quote in its place before you rely on it."
)
SINGLE_PART_HEADING, CLOSEST_HEADING = "What the documents say", "The closest passages"
NOTHING_ANSWER = "Nothing in the documents answers this question."
INDIRECT_ANSWER = "No passage answers this directly; the closest ones are quoted below."
EARLY_STOP_TEXTS = {
    StopReason.SATURATED: "the latest turns found nothing new",
    StopReason.TURN_LIMIT: "the limit on turns was reached",
    StopReason.TOKEN_LIMIT: "the limit on tokens was reached",
    StopReason.SPEND_LIMIT: "the cost limit of the run was reached",
    StopReason.TENANT_SPEND_LIMIT: "the daily spending limit was reached",
    StopReason.TIME_LIMIT: "the time limit was reached",
    StopReason.CONTEXT_LIMIT: "the context grew beyond the space that the graph allows",
    StopReason.PROVIDER_DOWN: "the model provider returned no usable answer",
    StopReason.INVALID_OUTPUT: "the model did not answer in the required format",
    StopReason.FINISH_REQUESTED: "a person asked the run to finish early",
}


@dataclass(frozen=True, slots=True)
class QuoteLimits:
    """Maximum number of quotes per section."""

    answers: int = 5
    list_answers: int = 7
    """The same where the question asks for several things."""
    closest: int = 3
    """The same where no passage answers the question."""


DEFAULT_LIMITS = QuoteLimits()
LIMITS_BY_LENGTH = {
    ReportLength.BRIEF: QuoteLimits(2, 3, 1),
    ReportLength.STANDARD: DEFAULT_LIMITS,
    ReportLength.LONG: QuoteLimits(12, 16, 6),
}
"""A report of quotes is longer or shorter by the number of its quotes."""
NO_FORM_NOTE = "Without a language model, this part of the report style could not be followed: {names}."

_IMPORT = re.compile(r"\s*(?:import\b|from\s+\S+\s+import\b|#include\b|using\s|.*=\s*require\()")
_MARKER = re.compile(r"\[(E\d+(?:\s*[,;]\s*E\d+)*)\]")


@dataclass(frozen=True, slots=True)
class Quote:
    """A range of a passage to be quoted. `start` and `end` are code points of the passage's text."""

    passage: RetrievedPassage
    start: int
    end: int
    is_code: bool = False
    is_extra: bool = False
    """Whether the quote belongs to another quote, such as the header row of a table."""

    @property
    def text(self) -> str:
        return self.passage.text[self.start : self.end]

    @property
    def position(self) -> tuple[str, int]:
        return self.passage.text_id, self.passage.start + self.start

    def render_text(self) -> str:
        """Render the quote in quotation marks.

        Markup and text that looks like a citation marker are removed.
        """
        seen = " ".join(self.text.split()) if self.is_code else strip_markup(self.text)
        return "\u201c" + _remove_markers(seen) + (" …" if self._is_truncated() else "") + "\u201d"

    def _is_truncated(self) -> bool:
        """Return whether the quote ends before its sentence does.

        The cause is a cut or the end of the passage.
        """
        if self.is_code or strip_markup(self.text)[-1:] in ".!?:;)\u2026\u3002":
            return False
        at_border = self.end >= len(self.passage.text.rstrip()) and len(self.text.split()) >= 12
        return at_border or not any(unit.end == self.end for unit in split_units(self.passage.text))

    def to_sentence(self) -> DraftSentence:
        citation = DraftCitation(evidence=self.passage.id, quote=self.text)
        return DraftSentence(text=self.render_text(), citations=(citation,))


def build_report(inputs: WriterInput) -> ReportDraft:
    """Build the whole report. It works for any stop reason and any evidence, including none."""
    part_statuses = assess_parts(inputs.analysis.sub_questions, inputs.user_messages, inputs.evidence, inputs.memory)
    sums = tuple(r for r in inputs.memory if r.tool == CALCULATE and r.value)
    covered = [s for s in part_statuses if s.covered and s.hits]
    limits = _choose_limits(inputs.report_style)
    sections = _build_sections(part_statuses, bool(covered), limits)
    return ReportDraft(
        title=shorten_line(inputs.question.strip(), 120),
        answer=_build_answer(covered, part_statuses, sums),
        sections=(*_build_calculations(sums), *sections),
        limits=_build_limits(inputs, part_statuses),
    )


def _choose_limits(style: ReportStyle | None) -> QuoteLimits:
    return LIMITS_BY_LENGTH[style.length] if style and style.length else DEFAULT_LIMITS


def quote_beginnings(passages: Sequence[RetrievedPassage]) -> tuple[DraftSentence, ...]:
    """Quote the first sentence of the first passages, where no words tell what to quote."""
    quotes: list[Quote] = []
    for passage in passages[: DEFAULT_LIMITS.closest]:
        units = (u for u in split_units(passage.text) if u.kind not in {UnitKind.HEADING, UnitKind.CODE})
        if unit := next(units, None):
            quotes.append(Quote(passage, unit.start, unit.start + find_quote_end(passage.text[unit.start : unit.end])))
    return tuple(_add_locations(quotes))


def _build_sections(
    part_statuses: Sequence[PartStatus], any_covered: bool, limits: QuoteLimits
) -> tuple[DraftSection, ...]:
    used: set[tuple[str, int]] = set()
    sections: list[DraftSection] = []
    for s in part_statuses:
        if (s.covered and s.hits) or not any_covered:
            chosen = _select_quotes(s, limits)
            quotes = [q for q in chosen if q.position not in used] or (chosen[:1] if s.covered else [])
            used |= {q.position for q in quotes}
            if quotes:
                sections.append(
                    DraftSection(
                        heading=_render_heading(s, len(part_statuses)), sentences=tuple(_add_locations(quotes))
                    )
                )
    return tuple(sections)


def _render_heading(s: PartStatus, parts: int) -> str:
    """Render the heading of a section. A single part would only repeat the title of the report."""
    if parts == 1:
        return SINGLE_PART_HEADING if s.covered else CLOSEST_HEADING
    return s.part if s.covered else f"Closest to: {s.part}"


def _select_quotes(s: PartStatus, limits: QuoteLimits = DEFAULT_LIMITS, *, is_brief: bool = False) -> list[Quote]:
    """Select the quotes for one part: the best sentences that differ, each with its context.

    Brief quotes leave out the other sentences of a paragraph about the subject.
    """
    if not s.hits:
        return []
    how = is_how_to_question(s.part)
    quotes: list[Quote] = []
    for hit in _choose_answers(s, limits) if s.covered else _choose_closest(s, limits):
        paragraph = _quote_paragraph(hit, s.part, quotes, is_brief)
        quotes += [*_quote_table_header(hit.line), *paragraph, *_quote_following(hit.line, how)]
    return _merge_quotes(quotes)


def _choose_answers(s: PartStatus, limits: QuoteLimits) -> Sequence[ScoredLine]:
    """Choose the best sentences of a covered part. The best one that can be quoted is always among them."""
    fitting = [h for h in s.hits if _is_quotable(h)] or ([] if is_comparison(s.part) else list(s.hits[:1]))
    if not fitting:
        return ()
    limit = limits.list_answers if is_list_question(s.part) else limits.answers
    min_score = min(fitting[0].score, max(MIN_SCORE, MIN_BEST_FRACTION * s.hits[0].score))
    min_weight = MIN_BEST_WEIGHT_FRACTION * fitting[0].weight_with_heading
    return select_distinct([h for h in fitting if h.weight_with_heading >= min_weight], limit, min_score)


def _choose_closest(s: PartStatus, limits: QuoteLimits) -> Sequence[ScoredLine]:
    near = [h for h in s.hits if h.line.unit.kind is not UnitKind.ROW]
    return select_distinct(near, limits.closest, MIN_CLOSEST_SCORE)


def _is_quotable(hit: ScoredLine) -> bool:
    """Return whether a line can be quoted.

    A table row may depend on its column names, but a sentence must contain words of the
    question itself.
    """
    row = hit.line.unit.kind is UnitKind.ROW
    return (row or hit.own_weight >= MIN_OWN_WEIGHT) and hit.weight_with_heading >= MIN_WEIGHT_WITH_HEADING


def _quote_paragraph(hit: ScoredLine, part: str, earlier: Sequence[Quote], is_brief: bool) -> list[Quote]:
    """Quote a line with its context, without what an earlier quote of the same text repeats."""
    passage, unit = hit.line.passage, hit.line.unit
    start, end = find_quote_range(hit, part, is_brief)
    for quote in (q for q in earlier if q.passage.text_id == passage.text_id and not q.is_code):
        first = quote.position[1] - passage.start
        last = first + len(quote.text)
        if first <= unit.start and unit.end <= last:
            return []
        start = max(start, last) if last <= unit.start else start
        end = min(end, first) if unit.end <= first else end
    start += len(passage.text[start:end]) - len(passage.text[start:end].lstrip())
    return [Quote(passage, start, start + len(passage.text[start:end].rstrip()))]


def _quote_table_header(line: PassageLine) -> list[Quote]:
    """Quote the header row of the table of a row."""
    all_units, at = _find_unit(line)
    if line.unit.kind is not UnitKind.ROW:
        return []
    first = at
    while first and all_units[first - 1].kind is UnitKind.ROW:
        first -= 1
    top = all_units[first]
    named = first < at and is_table_header(line.passage.text, top)
    return [Quote(line.passage, top.start, top.end, is_extra=True)] if named else []


def _quote_following(line: PassageLine, asks_for_steps: bool) -> list[Quote]:
    """Quote the list or the code that a sentence introduces with a colon."""
    all_units, at = _find_unit(line)
    after = all_units[at + 1 :]
    if not line.text.endswith(":") or not after:
        return []
    if after[0].kind is UnitKind.CODE:
        return (
            [Quote(line.passage, after[0].start, after[0].end, is_code=True)]
            if asks_for_steps and _is_short_code(line, after[0])
            else []
        )
    items = tuple(_take_items(after))[:MAX_LIST_ITEMS]
    return [Quote(line.passage, u.start, u.start + find_quote_end(line.passage.text[u.start : u.end])) for u in items]


def _is_short_code(line: PassageLine, unit: Unit) -> bool:
    code = line.passage.text[unit.start : unit.end]
    if all(_IMPORT.match(row) for row in code.splitlines() if row.strip()):
        return False
    return len(code) <= MAX_CODE_CHARS and code.count("\n") < MAX_CODE_LINES


def _take_items(units_after: Sequence[Unit]) -> Iterable[Unit]:
    for unit in units_after:
        if unit.kind not in {UnitKind.ITEM, UnitKind.ROW}:
            return
        yield unit


def _find_unit(line: PassageLine) -> tuple[tuple[Unit, ...], int]:
    all_units = split_units(line.passage.text)
    return all_units, all_units.index(line.unit)


def _merge_quotes(quotes: Sequence[Quote]) -> list[Quote]:
    """Remove quotes that are part of another quote. The order is kept, best first."""
    merged: list[Quote] = []
    for quote in quotes:
        if not any(_is_inside(quote, other) for other in merged):
            at = next((n for n, other in enumerate(merged) if _is_inside(other, quote)), len(merged))
            merged = [*merged[:at], quote, *(other for other in merged[at:] if not _is_inside(other, quote))]
    return merged


def _is_inside(one: Quote, other: Quote) -> bool:
    start, begin = one.position[1], other.position[1]
    same = one.passage.text_id == other.passage.text_id
    return same and begin <= start and start + len(one.text) <= begin + len(other.text)


def _add_locations(quotes: Sequence[Quote]) -> Iterable[DraftSentence]:
    """Yield each quote with its location if it differs from the location of the quote before."""
    last = ""
    for quote in quotes:
        location = _render_location(quote.passage, quote.start)
        sentence = quote.to_sentence()
        yield sentence if location == last else sentence.model_copy(update={"text": f"{location}: {sentence.text}"})
        last = location


def _render_location(passage: RetrievedPassage, offset: int) -> str:
    """Render the title and the nearest heading."""
    inner = [u for u in split_units(passage.text) if u.kind is UnitKind.HEADING and u.start <= offset]
    heading = strip_markup(passage.text[inner[-1].start : inner[-1].end]) if inner else passage.heading
    title = strip_markup(passage.title)
    nearest = strip_markup(heading.split(" \u203a ")[-1].split(" > ")[-1]).rstrip(":")
    return _remove_markers(
        shorten_line(title if nearest.lower() in {"", title.lower()} else f"{title}, {nearest}", 100)
    )


def _remove_markers(text: str) -> str:
    """Replace text that looks like a citation marker."""
    return _MARKER.sub(r"(\1)", text)


def _build_answer(
    covered: Sequence[PartStatus], part_statuses: Sequence[PartStatus], calculations: Sequence[MemoryRecord]
) -> str:
    """Build the short answer from the best quotes of the covered parts and the calculated results.

    If there are none, the answer says so.
    """
    results = [f"{_remove_markers(r.value)}." for r in calculations[:MAX_ANSWER_QUOTES]]
    tops = _select_first_quotes(([s for s in covered if not is_comparison(s.part)] or covered)[:MAX_ANSWER_QUOTES])
    quoted = [f"{q.render_text()} [{q.passage.id}]" for q in tops]
    if results or quoted:
        gaps = [s.part for s in part_statuses if not s.covered and not is_comparison(s.part)]
        return " ".join([*results, *quoted, *(f"Not answered: \u201c{_remove_markers(part)}\u201d." for part in gaps)])
    near = any(s.hits and s.hits[0].score >= MIN_CLOSEST_SCORE for s in part_statuses)
    return INDIRECT_ANSWER if near else NOTHING_ANSWER


def _select_first_quotes(covered: Sequence[PartStatus]) -> list[Quote]:
    quotes: list[Quote] = []
    for s in covered:
        known = {f.position for f in quotes}
        fresh = [q for q in _select_quotes(s, is_brief=True) if not q.is_code and q.position not in known]
        top = next((n for n, q in enumerate(fresh) if not q.is_extra), None)
        if top is not None:
            quotes += [*(q for q in fresh[max(0, top - 1) : top] if q.is_extra), fresh[top]]
    return quotes


def _build_calculations(calculations: Sequence[MemoryRecord]) -> tuple[DraftSection, ...]:
    sentences = tuple(DraftSentence(text=f"{_remove_markers(r.value)}.") for r in calculations)
    return (DraftSection(heading="Calculated", sentences=sentences),) if calculations else ()


def _build_limits(inputs: WriterInput, part_statuses: Sequence[PartStatus]) -> str:
    gaps = [_render_gap(s) for s in part_statuses if not s.covered]
    unsaid = [w for s in part_statuses if s.covered and s.hits for w in s.unmentioned]
    thin = f"No quote speaks of: {', '.join(dict.fromkeys(unsaid))}." if unsaid else ""
    early = EARLY_STOP_TEXTS.get(StopReason(inputs.reason)) if inputs.reason else None
    ended = f"Collecting ended early: {early}." if early else ""
    form = _render_unmet_form(inputs.report_style)
    return " ".join(t for t in (*gaps, _render_searches(inputs) if gaps else "", thin, ended, METHOD_NOTE, form) if t)


def _render_unmet_form(style: ReportStyle | None) -> str:
    """Say which part of the report style takes a language model. Empty means none."""
    names = [name for name in ("language", "template") if style and getattr(style, name)]
    return NO_FORM_NOTE.format(names=", ".join(names)) if names else ""


def _render_gap(s: PartStatus) -> str:
    words = f" No passage that was retrieved holds: {', '.join(s.missing)}." if s.missing else ""
    return f"Not found: \u201c{s.part}\u201d.{words}"


def _render_searches(inputs: WriterInput) -> str:
    searches = [r for r in inputs.memory if r.tool == SEARCH_LIBRARY and r.status == "ok"]
    queries = [str(r.args.get("query", "")) for r in searches if not r.sub_goal.startswith(OTHER_FORMS_PREFIX)]
    listed = "; ".join(f"\u201c{shorten_line(q, 80)}\u201d" for q in dict.fromkeys(queries) if q)
    return f"Searched for: {listed}." if listed else "No search was made."
