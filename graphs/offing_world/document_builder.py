"""Builder of a document's text in one of three file formats, with the span of every statement.

The module handles only the markup of the formats, not the content.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from html import escape


class FileFormat(StrEnum):
    """File format of a document. The value is the file suffix."""

    MD = "md"
    TXT = "txt"
    HTML = "html"


@dataclass(frozen=True, slots=True)
class StatementSpan:
    """The span of a text that states a relation of an entity."""

    relation: str
    entity: str
    start: int
    end: int
    """Code points. The end is exclusive."""
    true: bool


@dataclass(frozen=True, slots=True)
class DocumentLine:
    """A sentence, or an entry `Label: value` of a table or list."""

    text: str
    relation: str = ""
    """Relation that the line states. Empty means none."""
    entity: str = ""
    true: bool = True


class DocumentBuilder:
    """Builds the text of a document. The title becomes the first heading."""

    def __init__(self, file_format: FileFormat, title: str) -> None:
        self.file_format = file_format
        self.statements: list[StatementSpan] = []
        self._parts: list[str] = []
        self._length = 0
        if file_format is FileFormat.HTML:
            head = f'<head><meta charset="utf-8"><title>{escape(title)}</title></head>'
            self._append(f'<!doctype html>\n<html lang="en">\n{head}\n<body>\n<article>\n')
        self.add_heading(title, 1)

    def add_heading(self, text: str, level: int = 2) -> None:
        match self.file_format:
            case FileFormat.MD:
                self._append(f"{'#' * level} {text}\n\n")
            case FileFormat.TXT:
                self._append(f"{text}\n{('=' if level == 1 else '-') * len(text)}\n\n")
            case FileFormat.HTML:
                self._append(f"<h{level}>{escape(text)}</h{level}>\n")

    def add_paragraph(self, lines: Sequence[DocumentLine]) -> None:
        """Append a paragraph. An empty sequence appends nothing."""
        html = self.file_format is FileFormat.HTML
        for index, line in enumerate(lines):
            self._append(" " if index else "<p>" if html else "")
            self._append_line(line)
        if lines:
            self._append("</p>\n" if html else "\n\n")

    def add_rows(self, entries: Sequence[DocumentLine]) -> None:
        """Append entries as a table in Markdown and as a list in other formats."""
        if self.file_format is FileFormat.MD and all(": " in e.text for e in entries):
            return self._add_table(entries)
        before, after = ("<li>", "</li>\n") if self.file_format is FileFormat.HTML else ("- ", "\n")
        self._append("<ul>\n" if self.file_format is FileFormat.HTML else "")
        for entry in entries:
            self._append(before)
            self._append_line(entry)
            self._append(after)
        self._append("</ul>\n" if self.file_format is FileFormat.HTML else "\n")

    def build_text(self) -> str:
        if self.file_format is FileFormat.HTML:
            self._append("</article>\n</body>\n</html>\n")
        return "".join(self._parts).rstrip("\n") + "\n"

    def _add_table(self, entries: Sequence[DocumentLine]) -> None:
        self._append("| What | Entry |\n|---|---|\n")
        for entry in entries:
            label, _, value = entry.text.partition(": ")
            self._append("| ")
            self._append_line(DocumentLine(f"{label} | {value}", entry.relation, entry.entity, entry.true))
            self._append(" |\n")
        self._append("\n")

    def _append_line(self, line: DocumentLine) -> None:
        start = self._length
        self._append(escape(line.text) if self.file_format is FileFormat.HTML else line.text)
        if line.relation:
            self.statements.append(StatementSpan(line.relation, line.entity, start, self._length, line.true))

    def _append(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)
