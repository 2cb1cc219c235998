"""Renderers of the cited sources of a report as BibTeX and RIS.

Titles, authors and file names come from third parties. In BibTeX, every character with a meaning is escaped, so that no
field ends early and no command runs. In RIS, a field is one line, so that no text can begin another field.
"""

import re
from collections.abc import Iterator

from offing.core.bibliography import BibliographyEntry, list_bibliography
from offing.core.report import Report

_LATEX_TEXTS = {
    "\\": "\\textbackslash{}",
    "{": "\\textbraceleft{}",  # BibTeX counts braces also after a backslash
    "}": "\\textbraceright{}",
    "^": "\\textasciicircum{}",
    "~": "\\textasciitilde{}",
    **{character: f"\\{character}" for character in "$&#%_"},
}
_LATEX_ACTIVE = re.compile("[" + re.escape("".join(_LATEX_TEXTS)) + "]")
_PERSON = re.compile(r"[^,]+, [^,]+")
"""A name with one comma: the family name and the given names."""


def render_bibtex(report: Report) -> str:
    """Render the cited sources as BibTeX, which biblatex reads too. Above each entry stands where it is cited.

    A report without citations gives one comment.
    """
    entries = [_render_bibtex_entry(entry) for entry in list_bibliography(report)]
    return "\n".join(entries) or "% The report cites no source.\n"


def render_ris(report: Report) -> str:
    """Render the cited sources as RIS. A report without citations gives an empty file, because RIS has no comments."""
    entries = list_bibliography(report)
    return "\r\n".join("".join(f"{tag}  - {value}\r\n" for tag, value in _list_ris_fields(e)) for e in entries)


def _escape_latex(text: str) -> str:
    """Return text of one line as LaTeX that prints exactly this text."""
    return _LATEX_ACTIVE.sub(lambda match: _LATEX_TEXTS[match.group()], text)


def _render_bibtex_entry(entry: BibliographyEntry) -> str:
    fields = "".join(f"  {name} = {{{value}}},\n" for name, value in _list_bibtex_fields(entry) if value)
    numbers = "".join(f"[{number}]" for number in entry.citations)
    return f"% {entry.label}, cited as {numbers}\n@misc{{{entry.key},\n{fields}}}\n"


def _list_bibtex_fields(entry: BibliographyEntry) -> Iterator[tuple[str, str]]:
    yield "title", f"{{{_escape_latex(entry.title)}}}"  # braced again, so that styles keep its capitals
    yield "author", " and ".join(map(_render_bibtex_author, entry.authors))
    yield "date", entry.published
    yield "year", entry.published[:4] or _escape_latex(entry.published_text)
    yield "organization", _escape_latex(entry.site)
    yield "howpublished", _escape_latex(entry.file)
    yield "url", entry.url
    yield "urldate", _write_date(entry, "-") if entry.url else ""
    yield "note", f"Added to the library on {_write_date(entry, '-')}" if not entry.url and entry.retrieved else ""


def _render_bibtex_author(author: str) -> str:
    """Return a name. One that is not a family name with given names stays undivided, as names of institutions do."""
    escaped = _escape_latex(author)
    is_divided = _PERSON.fullmatch(author) and " and " not in author
    return escaped if is_divided else f"{{{escaped}}}"


def _list_ris_fields(entry: BibliographyEntry) -> Iterator[tuple[str, str]]:
    """Yield the fields of a source that are known, and those that begin and end a record."""
    yield "TY", "ELEC" if entry.url else "GEN"
    known = (
        ("ID", entry.key),
        ("LB", entry.label),
        ("TI", entry.title),
        *(("AU", author) for author in entry.authors),
        ("PY", entry.published[:4]),
        ("DA", _ris_date(entry.published) or entry.published_text),
        ("PB", entry.site),
        ("M1", entry.file),
        ("UR", entry.url),
        ("Y2", _write_date(entry, "/") if entry.url else ""),
        ("N1", f"Added to the library on {_write_date(entry, '-')}" if not entry.url and entry.retrieved else ""),
        ("N1", "Cited as " + "".join(f"[{number}]" for number in entry.citations)),
    )
    yield from ((tag, value) for tag, value in known if value)
    yield "ER", ""


def _ris_date(published: str) -> str:
    """Return a date as YYYY/MM/DD, whose unknown parts are empty. Empty means unknown."""
    return "/".join([*published.split("-"), "", ""][:3]) if published else ""


def _write_date(entry: BibliographyEntry, separator: str) -> str:
    return "" if entry.retrieved is None else entry.retrieved.isoformat().replace("-", separator)
