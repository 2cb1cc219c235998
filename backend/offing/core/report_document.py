"""A report as a document for print: headings, paragraphs, lists and tables, whose parts are text and links.

DOCX and PDF are written from it. It is plain data that can be sent to another process. Its texts have no control
characters, and its web addresses begin with http or https.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from offing.core.bibliography import find_web_address
from offing.core.change_formats import describe_follow_up, list_changes
from offing.core.claim_table import Claim, ClaimAnalysis, analyze_claims, describe_marks
from offing.core.report import Citation, Layout, Report, Section, Sentence, split_cells
from offing.core.report_image import NO_IMAGES, ImageSelection, describe_left_out
from offing.core.report_labels.labels import ReportLabels
from offing.core.report_labels.languages import find_labels
from offing.core.report_language import find_report_language
from offing.core.report_sources import ReportSource, describe_position, describe_source, list_report_sources
from offing.core.report_texts import (
    TABLE_LAYOUTS,
    describe_author,
    describe_state,
    group_sentences,
    join_lines,
    list_claim_cells,
    list_conflict_lines,
    list_notes,
)

_BY_RULES, _BY_CHECKER, _SOURCES, _SENTENCE, _REASONS = range(1, 6)
"""Columns of the claim table."""


class TextPart(BaseModel, frozen=True):
    kind: Literal["text"] = "text"
    text: str
    is_mark: bool = False
    """Whether it says that a sentence is not supported."""
    is_strong: bool = False


class CitationPart(BaseModel, frozen=True):
    """The number of a citation, which links to its entry in the list of sources."""

    kind: Literal["citation"] = "citation"
    number: int


class WebLinkPart(BaseModel, frozen=True):
    kind: Literal["link"] = "link"
    text: str
    url: str
    """Percent-encoded address with HTTP or HTTPS."""


Part = Annotated[TextPart | CitationPart | WebLinkPart, Field(discriminator="kind")]
Parts = tuple[Part, ...]


class HeadingBlock(BaseModel, frozen=True):
    kind: Literal["heading"] = "heading"
    level: Literal[1, 2]
    """1 for a section, 2 for a source."""
    text: str


ParagraphRole = Literal["body", "answer", "note", "citation", "quote"]


class ParagraphBlock(BaseModel, frozen=True):
    kind: Literal["paragraph"] = "paragraph"
    role: ParagraphRole = "body"
    parts: Parts
    citation: int | None = None
    """Number of the citation whose entry begins here. `None` means that none does."""


class ListBlock(BaseModel, frozen=True):
    kind: Literal["list"] = "list"
    items: tuple["ListItem", ...]


class ListItem(BaseModel, frozen=True):
    level: int = Field(default=0, ge=0, le=1)
    parts: Parts


class TableBlock(BaseModel, frozen=True):
    kind: Literal["table"] = "table"
    has_header: bool
    """Whether the first row is a header."""
    rows: tuple[tuple[Parts, ...], ...]
    """Rows with equally many cells."""
    is_small: bool = False
    """Whether its text is smaller than that of the report."""


class ImageBlock(BaseModel, frozen=True, ser_json_bytes="base64", val_json_bytes="base64"):
    kind: Literal["image"] = "image"
    name: str
    data: bytes
    """A PNG file. Its writer must expect that the image is damaged."""


Block = Annotated[HeadingBlock | ParagraphBlock | ListBlock | TableBlock | ImageBlock, Field(discriminator="kind")]


class ReportDocument(BaseModel, frozen=True):
    title: str
    language: str
    """Language tag such as `zh`. `und` means undetermined."""
    created_at: datetime
    written_by: str
    """Engine and model. Empty means that no model wrote it."""
    blocks: tuple[Block, ...]


def build_report_document(
    report: Report,
    created_at: datetime,
    language: str | None = None,
    images: ImageSelection = NO_IMAGES,
    analysis: ClaimAnalysis | None = None,
) -> ReportDocument:
    """Return a report as a document, with the images of its run.

    If `language` is `None`, it is guessed from the script of the sentences. Headings, verdicts and notes are in it, or
    in English if it has no labels. If the analysis of the claims is `None`, it is computed.
    """
    language = find_report_language(report, language)
    labels = find_labels(language)
    return ReportDocument(
        title=join_lines(report.title) or labels.untitled,
        language=language,
        created_at=created_at,
        written_by=join_lines(report.written_by),
        blocks=tuple(_list_blocks(report, images, analysis or analyze_claims(report), labels)),
    )


def describe_damaged(image: ImageBlock, labels: ReportLabels) -> ParagraphBlock:
    """Return the note that stands for an image that cannot be read."""
    return _note(labels.damaged_image.format(name=image.name))


def _list_blocks(
    report: Report, images: ImageSelection, analysis: ClaimAnalysis, labels: ReportLabels
) -> Iterator[Block]:
    yield _note(describe_state(report, analysis, labels))
    if report.follow_up:
        yield _note(describe_follow_up(report.follow_up, labels))
    if report.answer:
        yield ParagraphBlock(role="answer", parts=_list_parts([report.answer], labels))
    for section in report.sections:
        yield from _list_section(section, labels)
    if report.limits:
        yield HeadingBlock(level=1, text=labels.limits)
        yield ParagraphBlock(parts=(_text(report.limits),))
    yield from _list_images(images, labels)
    yield from _list_changes(report, labels)
    yield from _list_conflicts(report, analysis, labels)
    yield from _list_sources(report, labels)
    yield from _list_claims(analysis, labels)
    yield from map(_note, list_notes(report, analysis, labels))
    if author := describe_author(report, labels):
        yield _note(author)


def _list_section(section: Section, labels: ReportLabels) -> Iterator[Block]:
    if section.heading:
        yield HeadingBlock(level=1, text=join_lines(section.heading))
    for group in group_sentences(section.sentences):
        if group[0].layout is Layout.ITEM:
            yield ListBlock(items=tuple(ListItem(parts=_list_parts([sentence], labels)) for sentence in group))
        elif group[0].layout in TABLE_LAYOUTS:
            yield _build_table(group, labels)
        else:
            yield ParagraphBlock(parts=_list_parts(group, labels))


def _build_table(rows: Sequence[Sentence], labels: ReportLabels) -> TableBlock:
    cells = [[_text(cell) for cell in split_cells(row.text)] for row in rows]
    width = max(map(len, cells))
    marked = [[(cell,) for cell in row] + [()] * (width - len(row)) for row in cells]
    table = [(*row[:-1], row[-1] + _list_marks(source, labels)) for row, source in zip(marked, rows, strict=True)]
    return TableBlock(has_header=rows[0].layout is Layout.HEADER, rows=tuple(table))


def _list_parts(sentences: Sequence[Sentence], labels: ReportLabels) -> Parts:
    parts: list[Part] = []
    for number, sentence in enumerate(sentences):
        words = join_lines(sentence.text)
        parts += [TextPart(text=f" {words}" if number else words), *_list_marks(sentence, labels)]
    return tuple(parts)


def _list_marks(sentence: Sentence, labels: ReportLabels) -> Parts:
    """Return the numbers of the citations of a sentence, and why it is not supported or what it follows from."""
    numbers = tuple(CitationPart(number=number) for number in (*sentence.citations, *sentence.passages))
    marks = join_lines(describe_marks(sentence, labels))
    return (*numbers, TextPart(text=f" ({marks})", is_mark=True)) if marks else numbers


def _list_images(selection: ImageSelection, labels: ReportLabels) -> Iterator[Block]:
    if selection.images or selection.left_out:
        yield HeadingBlock(level=1, text=labels.images)
    for image in selection.images:
        yield ImageBlock(name=join_lines(image.name), data=image.data)
        yield _note(image.name)
    if selection.left_out:
        yield _note(describe_left_out(selection.left_out, labels))


def _list_changes(report: Report, labels: ReportLabels) -> Iterator[Block]:
    if report.follow_up and report.follow_up.changes:
        lines = list_changes(report.follow_up.changes, labels)
        yield HeadingBlock(level=1, text=labels.changes)
        yield ListBlock(items=tuple(ListItem(level=min(one.level, 1), parts=(_text(one.text),)) for one in lines))


def _list_conflicts(report: Report, analysis: ClaimAnalysis, labels: ReportLabels) -> Iterator[Block]:
    if lines := list_conflict_lines(report, analysis.conflicts, labels):
        yield HeadingBlock(level=1, text=labels.conflicts)
        yield ListBlock(items=tuple(ListItem(parts=(_text(line),)) for line in lines))


def _list_sources(report: Report, labels: ReportLabels) -> Iterator[Block]:
    if report.citations:
        yield HeadingBlock(level=1, text=labels.sources)
    for source in list_report_sources(report):
        yield HeadingBlock(level=2, text=f"{source.id}. {join_lines(source.title)}")
        if details := _list_details(source, labels):
            yield ParagraphBlock(role="note", parts=details)
        for citation in source.citations:
            yield from _list_citation(citation, labels)


def _list_details(source: ReportSource, labels: ReportLabels) -> Parts:
    """Return the description of a source, with a link where its address stands."""
    about, url = join_lines(describe_source(source, labels)), find_web_address(source.details)
    before, address, after = about.partition(source.details.name) if url else (about, "", "")
    link = (WebLinkPart(text=address, url=url),) if address else ()
    return (*(TextPart(text=before) for _ in before[:1]), *link, *(TextPart(text=after) for _ in after[:1]))


def _list_citation(citation: Citation, labels: ReportLabels) -> Iterator[Block]:
    number = TextPart(text=f"[{citation.number}]", is_strong=True)
    position = join_lines(describe_position(citation, labels))
    parts = (number, TextPart(text=f" {position}")) if position else (number,)
    yield ParagraphBlock(role="citation", parts=parts, citation=citation.number)
    yield ParagraphBlock(role="quote", parts=(_text(citation.quote),))


def _list_claims(analysis: ClaimAnalysis, labels: ReportLabels) -> Iterator[Block]:
    if claims := analysis.claims:
        texts = [list_claim_cells(claim, labels) for claim in claims]
        linked = [_link_claim(claim, row) for claim, row in zip(claims, texts, strict=True)]
        left_out = set(_list_silent_columns(claims, texts))
        rows = [[(_text(head),) for head in labels.claim_heads], *linked]
        visible = (tuple(cell for column, cell in enumerate(row) if column not in left_out) for row in rows)
        yield HeadingBlock(level=1, text=labels.claims)
        yield TableBlock(has_header=True, rows=tuple(visible), is_small=True)


def _link_claim(claim: Claim, texts: Sequence[str]) -> list[Parts]:
    """Return the cells of a claim, with its citations as links."""
    cells: list[Parts] = [(_text(text),) for text in texts]
    cells[_SOURCES] = tuple(CitationPart(number=number) for number in claim.citations)
    cells[_SENTENCE] = (_state(claim.sentence),)
    return cells


def _list_silent_columns(claims: Sequence[Claim], rows: Sequence[Sequence[str]]) -> Iterator[int]:
    """Yield the columns that say nothing: those of rules and checker if no checker judged, and empty reasons."""
    if not any(claim.sentence.judgment for claim in claims):
        yield from (_BY_RULES, _BY_CHECKER)
    if not any(row[_REASONS] for row in rows):
        yield _REASONS


def _state(sentence: Sentence) -> TextPart:
    """Return the text of a sentence. The row of a table has its cells between bars, but none around them."""
    is_row = sentence.layout in TABLE_LAYOUTS
    return _text(" | ".join(split_cells(sentence.text)) if is_row else sentence.text)


def _note(text: str) -> ParagraphBlock:
    return ParagraphBlock(role="note", parts=(_text(text),))


def _text(text: str) -> TextPart:
    return TextPart(text=join_lines(text))
