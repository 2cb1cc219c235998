"""A document's text as it is put together, in any of three forms, with the place of every statement in it.

Knows markup, and nothing of what is said.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from html import escape


class Form(StrEnum):
    """By the ending of the file."""

    MD = "md"
    TXT = "txt"
    HTML = "html"


@dataclass(frozen=True, slots=True)
class Stated:
    """A relation of an entity, stated in a stretch of a text."""

    relation: str
    entity: str
    start: int
    end: int
    """Code points, end excluded."""
    true: bool


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence, or an entry `Label: value` of a table or a list."""

    text: str
    relation: str = ""
    """What it states. Empty: nothing."""
    entity: str = ""
    true: bool = True


class Page:
    """Collects a text. The title is its first heading."""

    def __init__(self, form: Form, title: str) -> None:
        self.form = form
        self.statements: list[Stated] = []
        self._pieces: list[str] = []
        self._length = 0
        if form is Form.HTML:
            head = f'<head><meta charset="utf-8"><title>{escape(title)}</title></head>'
            self._put(f'<!doctype html>\n<html lang="en">\n{head}\n<body>\n<article>\n')
        self.heading(title, 1)

    def heading(self, text: str, level: int = 2) -> None:
        match self.form:
            case Form.MD:
                self._put(f"{'#' * level} {text}\n\n")
            case Form.TXT:
                self._put(f"{text}\n{('=' if level == 1 else '-') * len(text)}\n\n")
            case Form.HTML:
                self._put(f"<h{level}>{escape(text)}</h{level}>\n")

    def paragraph(self, lines: Sequence[Line]) -> None:
        """Nothing at all for no lines."""
        html = self.form is Form.HTML
        for index, line in enumerate(lines):
            self._put(" " if index else "<p>" if html else "")
            self._say(line)
        if lines:
            self._put("</p>\n" if html else "\n\n")

    def rows(self, entries: Sequence[Line]) -> None:
        """A table in Markdown, a list elsewhere."""
        if self.form is Form.MD and all(": " in e.text for e in entries):
            return self._table(entries)
        before, after = ("<li>", "</li>\n") if self.form is Form.HTML else ("- ", "\n")
        self._put("<ul>\n" if self.form is Form.HTML else "")
        for entry in entries:
            self._put(before)
            self._say(entry)
            self._put(after)
        self._put("</ul>\n" if self.form is Form.HTML else "\n")

    def done(self) -> str:
        if self.form is Form.HTML:
            self._put("</article>\n</body>\n</html>\n")
        return "".join(self._pieces).rstrip("\n") + "\n"

    def _table(self, entries: Sequence[Line]) -> None:
        self._put("| What | Entry |\n|---|---|\n")
        for entry in entries:
            label, _, value = entry.text.partition(": ")
            self._put("| ")
            self._say(Line(f"{label} | {value}", entry.relation, entry.entity, entry.true))
            self._put(" |\n")
        self._put("\n")

    def _say(self, line: Line) -> None:
        start = self._length
        self._put(escape(line.text) if self.form is Form.HTML else line.text)
        if line.relation:
            self.statements.append(Stated(line.relation, line.entity, start, self._length, line.true))

    def _put(self, text: str) -> None:
        self._pieces.append(text)
        self._length += len(text)
