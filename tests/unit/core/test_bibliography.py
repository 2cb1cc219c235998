"""The cited sources of a report for reference managers, read back by their parsers."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
import rispy
from bibtexparser.entrypoint import parse_string
from bibtexparser.middlewares import LatexDecodingMiddleware

from offing.core.bibliography import list_bibliography
from offing.core.bibliography_formats import render_bibtex, render_ris
from offing.core.report import ClaimCheck, Report, Sentence, SourceDetails
from tests.unit.core.test_report_formats import HOSTILE, SOURCE
from tests.unit.core.test_report_formats import report as hostile_report
from tests.unit.report_files.sample_reports import ENGLISH_CITATIONS, SAMPLES, chinese_report, english_report

HOSTILE_TITLES = [
    *HOSTILE,
    "}, author = {Mallory}, url = {javascript:alert(1)",
    "}}\n@article{evil, title={x}}",
    "\\input{/etc/passwd} \\write18{rm -rf /}",
    "% comment\n@string{x = {y}}",
    "a\r\nER  - \r\nTY  - JOUR\r\nTI  - evil",
    "unbalanced { brace",
    "unbalanced } brace",
    '"quoted" # concatenated',
    "100 % of $5 & more_or_less ~ ^ #1",
]


def read_ris(text: str) -> list[dict[str, Any]]:
    records: Any = rispy
    return records.loads(text)


READER_GAPS = (("\\textbraceleft{}", "\u27e8"), ("\\textbraceright{}", "\u27e9"), ("\\textasciicircum{}", "\u02c4"))
"""Commands for which the parser lacks the character, and what stands for them until it has read the file."""
READ_AS = str.maketrans("\u27e8\u27e9\u02c4", "{}^")


def read_bibtex(text: str) -> dict[str, Mapping[str, str]]:
    """Fields by key, as a program that understands LaTeX reads them. Fails if the file has anything else."""
    for command, sign in READER_GAPS:
        text = text.replace(command, sign)
    library = parse_string(text, append_middleware=[LatexDecodingMiddleware()])
    plain = parse_string(text).entries_dict
    assert not library.failed_blocks
    assert not library.strings
    assert not library.preambles
    return {
        entry.key: {
            field.key: str(plain[entry.key][field.key] if field.key == "url" else field.value).translate(READ_AS)
            for field in entry.fields
        }
        for entry in library.entries
    }


def titled(title: str) -> Report:
    """A report whose source has this title, author and name."""
    return hostile_report(title)


@pytest.mark.parametrize("sample", SAMPLES)
def test_both_formats_have_every_cited_source_once_with_its_facts(sample: str) -> None:
    report = SAMPLES[sample]()
    entries = list_bibliography(report)
    in_bibtex, in_ris = read_bibtex(render_bibtex(report)), read_ris(render_ris(report))
    assert list(in_bibtex) == [entry.key for entry in entries] == [record["id"] for record in in_ris]
    assert len(set(in_bibtex)) == len(entries) == len({c.source_id for c in report.citations})
    for entry, record in zip(entries, in_ris, strict=True):
        fields = in_bibtex[entry.key]
        assert fields["title"] == entry.title == record["title"]
        assert (fields.get("url", ""), record.get("urls", [""])[0]) == (entry.url, entry.url)
        assert fields.get("author", "") == " and ".join(entry.authors)
        assert tuple(record.get("authors", ())) == entry.authors
        assert fields.get("date", "") == entry.published
        assert record.get("year", "") == entry.published[:4]
        assert record["access_date"] == "2026/03/01" if entry.url else fields["note"].endswith("2026-03-01")


def test_all_forty_citations_are_attributed_to_their_sources() -> None:
    numbers = [int(n) for n in re.findall(r"\[(\d+)\]", render_bibtex(english_report()))]
    assert sorted(numbers) == list(range(1, ENGLISH_CITATIONS + 1))


@pytest.mark.parametrize("title", HOSTILE_TITLES)
def test_a_hostile_title_stays_one_field_of_one_entry(title: str) -> None:
    plain = titled("Plain words.")
    (fields,) = read_bibtex(render_bibtex(titled(title))).values()
    (expected,) = read_bibtex(render_bibtex(plain)).values()
    assert fields.keys() - {"author"} == expected.keys() - {"author"}
    (record,) = read_ris(render_ris(titled(title)))
    assert record["title"] == list_bibliography(titled(title))[0].title
    assert record["type_of_reference"] == "GEN"
    assert "urls" not in record


@pytest.mark.parametrize("title", ["a { b } c", "100 % of $5 & more_or_less #1", "back\\slash", "x^2 ~ y"])
def test_a_title_reads_as_it_was_written(title: str) -> None:
    (fields,) = read_bibtex(render_bibtex(titled(title))).values()
    assert fields["title"] == title


def test_no_command_of_a_title_reaches_latex() -> None:
    text = render_bibtex(titled("\\input{x} \\immediate\\write18{y}"))
    commands = set(re.findall(r"\\[a-zA-Z]+", text))
    assert commands == {"\\textbackslash", "\\textbraceleft", "\\textbraceright"}


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", "file:///etc/passwd", "https://u:p@example.org/", "ftp://x"]
)
def test_only_addresses_of_the_web_become_links(address: str) -> None:
    report = hostile_report()
    details = SourceDetails(address, is_web=True)
    changed = replace(report, citations=tuple(replace(c, source=details) for c in report.citations))
    (entry,) = list_bibliography(changed)
    assert (entry.url, entry.file) == ("", address)
    assert "url =" not in render_bibtex(changed)
    assert "UR  -" not in render_ris(changed)


def test_an_address_in_another_script_is_percent_encoded() -> None:
    assert "https://example.cn/%E6%B0%B4%E6%B3%B5" in render_ris(chinese_report())


def test_the_key_of_a_source_is_the_same_in_every_report() -> None:
    first, other = hostile_report("One title"), hostile_report("One title", title="Another report", limits="")
    assert [e.key for e in list_bibliography(first)] == [e.key for e in list_bibliography(other)]


def test_sources_with_the_same_title_have_different_keys() -> None:
    (citation,) = hostile_report().citations
    twins = (citation, replace(citation, number=2, source_id=UUID(int=9)))
    report = hostile_report(citations=twins, answer=Sentence("s1", "Words.", (1, 2)))
    assert len({e.key for e in list_bibliography(report)}) == 2


def test_a_key_holds_no_id_of_the_database() -> None:
    text = render_bibtex(hostile_report()) + render_ris(hostile_report())
    assert str(SOURCE) not in text
    assert SOURCE.hex not in text


def test_a_source_that_only_the_checker_quotes_is_not_cited() -> None:
    (citation,) = hostile_report().citations
    extra = replace(citation, number=2, source_id=UUID(int=9))
    report = hostile_report(citations=(citation, extra), check=ClaimCheck(1, 1))
    assert [e.citations for e in list_bibliography(report)] == [(1,)]


def test_a_report_without_citations_gives_files_without_records() -> None:
    report = hostile_report(citations=(), answer=None, sections=())
    assert read_bibtex(render_bibtex(report)) == {}
    assert render_ris(report) == ""


@pytest.mark.parametrize(
    ("published", "date", "ris"),
    [("2024", "2024", "2024//"), ("2024-05-07", "2024-05-07", "2024/05/07"), ("May 2024", None, "May 2024")],
)
def test_a_date_is_as_exact_as_it_is_known(published: str, date: str | None, ris: str) -> None:
    (citation,) = hostile_report().citations
    dated = replace(citation, source=SourceDetails("a.md", published=published))
    report = hostile_report(citations=(dated,))
    (fields,) = read_bibtex(render_bibtex(report)).values()
    assert fields.get("date") == date
    assert fields["year"] == (published[:4] if date else published)
    assert read_ris(render_ris(report))[0]["date"] == ris
