"""Edits of a report by a person, and by a follow-up. The functions are pure.

Unchanged sentences keep their verdicts. A new or changed sentence is checked by the same rules as those of
a run, and is marked. Each of its citations is one of the edited version, or quotes a passage that the run has read, so
none can point to nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from offing.core.citation import (
    ClaimContext,
    LocatedCitation,
    TextLookup,
    find_unsupported,
    list_titles,
    locate_citation,
    widen_span,
)
from offing.core.conclusions import mark_conclusions
from offing.core.errors import InvalidInput
from offing.core.follow_up import FollowUpKind
from offing.core.report import (
    Citation,
    ClaimCheck,
    DraftCitation,
    Evidence,
    Layout,
    Report,
    Section,
    Sentence,
    VersionOrigin,
)
from offing.core.report_texts import join_lines
from offing.core.step import shorten_line
from offing.core.tool import SourceSpan

MAX_NOTE_CHARS = 500
CHANGED_TEXT = "Sentences that a person wrote or changed were not judged again."


@dataclass(frozen=True, slots=True)
class NewCitation:
    """Words of a passage that the run has read."""

    passage: SourceSpan
    quote: str


CitationChoice = int | NewCitation
"""Number of a citation of the edited version, or a new one."""


@dataclass(frozen=True, slots=True)
class EditedSentence:
    text: str
    citations: tuple[CitationChoice, ...] = ()
    layout: Layout = Layout.STATEMENT
    base_id: str = ""
    """Id of the sentence of the edited version that it was. Empty means that it is new."""


@dataclass(frozen=True, slots=True)
class EditedSection:
    heading: str
    sentences: tuple[EditedSentence, ...]


@dataclass(frozen=True, slots=True)
class ReportEdit:
    """A whole report as a person left it."""

    title: str
    answer: EditedSentence | None
    """`None` means that the report has no short answer."""
    sections: tuple[EditedSection, ...]
    limits: str = ""

    def sentences(self) -> tuple[EditedSentence, ...]:
        head = (self.answer,) if self.answer else ()
        return head + tuple(s for section in self.sections for s in section.sentences)


def list_needed_spans(base: Report, edit: ReportEdit) -> tuple[SourceSpan, ...]:
    """Return the spans whose stored texts `apply_edit` looks up."""
    chosen = [choice for sentence in edit.sentences() for choice in sentence.citations]
    new = [choice.passage for choice in chosen if isinstance(choice, NewCitation)]
    numbers = {choice for choice in chosen if isinstance(choice, int)}
    base_spans = [citation.span for citation in base.citations if citation.number in numbers]
    return tuple(dict.fromkeys((*base_spans, *new, *map(widen_span, new))))


def apply_edit(
    base: Report,
    edit: ReportEdit,
    evidence: Sequence[Evidence],
    lookup_text: TextLookup,
    context: ClaimContext,
    by: VersionOrigin,
) -> Report:
    """Return the report that a person made of `base`.

    `evidence` are the passages that the run has read. Raises `InvalidInput` for a citation that does not exist, for
    words that are not in their passage, and for an edit that changes nothing or leaves no sentence.
    """
    editor = _Editor(base, evidence, lookup_text, context)
    editor.check_ids(edit)
    answer = editor.check_sentence(edit.answer, "answer") if edit.answer else None
    sections = tuple(
        Section(
            join_lines(section.heading),
            tuple(editor.check_sentence(one, f"sections.{n}.sentences.{m}") for m, one in enumerate(section.sentences)),
        )
        for n, section in enumerate(edit.sections)
    )
    edited = replace(
        base,
        title=join_lines(edit.title),
        answer=answer,
        sections=tuple(s for s in sections if s.heading or s.sentences),
        limits=" ".join(edit.limits.split()) if edit.limits.split() != base.limits.split() else base.limits,
    )
    _check_changed(base, edited)
    return mark_conclusions(editor.finish(edited, by), context)


def restore_report(version: Report, by: VersionOrigin) -> Report:
    """Return an earlier version as the content of a new one."""
    return replace(version, edit=by)


def build_follow_up_version(report: Report, run_id: UUID, question: str) -> Report | None:
    """Return the report of a follow-up as the next version of the report that it edited.

    `run_id` and `question` are those of the follow-up. `None` means that it is no edit, or that it left the report
    unchanged.
    """
    outcome = report.follow_up
    if outcome is None or outcome.kind is not FollowUpKind.EDIT or outcome.unchanged_because:
        return None
    note = shorten_line(question, MAX_NOTE_CHARS)
    return replace(report, follow_up=None, edit=VersionOrigin(report.written_by, outcome.version, note, run_id))


def _check_changed(base: Report, edited: Report) -> None:
    if not edited.sentences():
        raise InvalidInput("sections", "the report has no sentence left", "Keep one, or delete the run.")
    if edited == base:
        raise InvalidInput("sections", "the edit changes nothing", "Change something, or leave the version unchanged.")


@dataclass(slots=True)
class _Editor:
    """Checks the sentences of an edit, and numbers its citations while they are read from top to bottom."""

    base: Report
    evidence: Sequence[Evidence]
    lookup_text: TextLookup
    context: ClaimContext
    citations: dict[int, Citation] = field(init=False)
    base_sentences: Mapping[str, Sentence] = field(init=False)
    passages_only: frozenset[int] = field(init=False)
    """Numbers that no sentence of the edited version cites with a quote."""
    last_id: int = field(init=False)
    added: dict[int, LocatedCitation] = field(default_factory=dict[int, LocatedCitation])
    """New citations by number."""

    def __post_init__(self) -> None:
        self.citations = {citation.number: citation for citation in self.base.citations}
        sentences = self.base.sentences()
        self.base_sentences = {sentence.id: sentence for sentence in sentences}
        quoted = {number for sentence in sentences for number in sentence.citations}
        self.passages_only = frozenset({n for s in sentences for n in s.passages} - quoted)
        self.last_id = max((int(s.id[1:]) for s in sentences if s.id[1:].isdecimal()), default=0)

    def check_ids(self, edit: ReportEdit) -> None:
        """Raise InvalidInput for an unknown sentence, and for one that stands in two places."""
        ids = [sentence.base_id for sentence in edit.sentences() if sentence.base_id]
        if unknown := next((one for one in ids if one not in self.base_sentences), None):
            problem = f"the edited version has no sentence {shorten_line(unknown, 40)}"
            raise InvalidInput("sections", problem, "Leave the id of a new sentence out.")
        if len(ids) != len(set(ids)):
            raise InvalidInput("sections", "a sentence stands in two places", "Leave the id of the copy out.")

    def check_sentence(self, edited: EditedSentence, where: str) -> Sentence:
        text = join_lines(edited.text)
        if not text:
            raise InvalidInput(f"{where}.text", "the sentence is empty", "Write its text, or delete the sentence.")
        numbers = tuple(dict.fromkeys(self._find_number(choice, where) for choice in edited.citations))
        base = self.base_sentences.get(edited.base_id)
        if base is not None and text == join_lines(base.text) and numbers == (*base.citations, *base.passages):
            return replace(base, layout=edited.layout)
        return self._check_changed(base.id if base else self._next_id(), text, numbers, edited.layout)

    def finish(self, edited: Report, by: VersionOrigin) -> Report:
        """Return the report with the citations, conflicts and counts that still belong to it."""
        cited = {n for s in edited.sentences() for n in (*s.citations, *s.passages)}
        before = {n for s in self.base.sentences() for n in (*s.citations, *s.passages)}
        conflicts = tuple(one for one in edited.conflicts if cited & {*one.citations} or not before & {*one.citations})
        judgment_numbers = {
            n for s in edited.sentences() if (j := s.judgment) for n in (j.passage, j.contradiction) if n
        }
        numbers = cited | judgment_numbers | {n for one in conflicts for n in one.citations}
        return replace(
            edited,
            citations=tuple(self.citations[n] for n in sorted(numbers) if n in self.citations),
            conflicts=conflicts,
            revision=None,
            follow_up=replace(edited.follow_up, changes=None) if edited.follow_up else None,
            check=_count_again(edited.check, edited.sentences()) if edited.check else None,
            edit=by,
        )

    def _next_id(self) -> str:
        self.last_id += 1
        return f"s{self.last_id}"

    def _find_number(self, choice: CitationChoice, where: str) -> int:
        """Return the number of a citation, which is new for words that the report has not cited before."""
        if isinstance(choice, NewCitation):
            return self._add_citation(choice, where)
        if choice not in self.citations:
            problem = f"the edited version has no citation [{choice}]"
            raise InvalidInput(f"{where}.citations", problem, "Remove it, or cite a passage of the run.")
        return choice

    def _add_citation(self, choice: NewCitation, where: str) -> int:
        passage = next((one for one in self.evidence if one.span == choice.passage), None)
        if passage is None:
            problem = "the run has not read this passage"
            raise InvalidInput(f"{where}.citations", problem, "Choose one from the evidence of the run.")
        draft = DraftCitation(evidence=passage.id, quote=choice.quote)
        located = locate_citation(draft, {passage.id: passage}, self.lookup_text)
        if isinstance(located, str) or not located.is_quote:
            problem = "it quotes no words of its passage" if not isinstance(located, str) else located.rstrip(".")
            raise InvalidInput(f"{where}.citations", problem, "Quote words exactly as they stand in the passage.")
        known = next((c for c in self.citations.values() if c.span == located.span), None)
        number = known.number if known else max(self.citations, default=0) + 1
        self.citations.setdefault(
            number, Citation(number, located.span, located.text, passage.source_id, passage.title)
        )
        self.passages_only -= {number}
        self.added[number] = located
        return number

    def _check_changed(self, id: str, text: str, numbers: Sequence[int], layout: Layout) -> Sentence:
        """Return a sentence that a person wrote or changed, with what the rules say of it."""
        located = {n: self.added.get(n) or self._locate(self.citations[n]) for n in numbers}
        quoted = {n: one for n, one in located.items() if one is not None and n not in self.passages_only}
        return Sentence(
            id,
            text,
            tuple(quoted),
            tuple(f"The words of [{n}] are no longer stored." for n, one in located.items() if one is None),
            tuple(n for n, one in located.items() if one is not None and n in self.passages_only),
            find_unsupported(text, list(quoted.values()), self.context) if quoted else (),
            layout,
            is_edited=True,
        )

    def _locate(self, citation: Citation) -> LocatedCitation | None:
        """Return a citation with its stored words. `None` means that they are no longer stored."""
        text = self.lookup_text(citation.span)
        if text != citation.quote:
            return None
        around = [one for one in self.evidence if widen_span(one.span).contains(citation.span)]
        titles = tuple(title for one in around for title in list_titles(one, one.text))
        evidence = Evidence(f"[{citation.number}]", citation.span, text, citation.source_id, citation.title)
        return LocatedCitation(evidence, citation.span, text, (citation.title, *titles))


def _count_again(check: ClaimCheck, sentences: Iterable[Sentence]) -> ClaimCheck:
    """Return the work of the checker with the sentences that it still has judged."""
    claims = [sentence for sentence in sentences if sentence.is_claim]
    judgments = sum(sentence.judgment is not None for sentence in claims)
    failure = check.failure.removesuffix(CHANGED_TEXT).strip()
    changed = CHANGED_TEXT if any(s.is_edited and s.judgment is None for s in claims) else ""
    return replace(check, claims=len(claims), judgments=judgments, failure=" ".join(filter(None, (failure, changed))))
