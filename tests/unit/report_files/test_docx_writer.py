"""Reports as DOCX, read back with python-docx."""

import io
import re
import zipfile
from typing import Any
from xml.etree import ElementTree

import docx
import pytest
from docx.oxml.ns import qn

from offing.core.report import Report
from offing.core.report_document import build_report_document
from offing.library.docx_reader import read_docx
from offing.report_files.docx_writer import write_docx
from tests.unit.core.test_report_formats import HOSTILE
from tests.unit.core.test_report_formats import report as hostile_report
from tests.unit.report_files.sample_reports import MARCH, SAMPLES, arabic_report, chinese_report, english_report


def written(report: Report) -> bytes:
    return write_docx(build_report_document(report, MARCH))


def opened(report: Report) -> Any:
    return docx.Document(io.BytesIO(written(report)))


def links(file: Any) -> list[str]:
    """Targets of the links within the file, in their order."""
    return [e.get(qn("w:anchor")) for e in file.element.iter(qn("w:hyperlink")) if e.get(qn("w:anchor"))]


def outside_targets(data: bytes) -> list[str]:
    """Targets of all relations of the file that lead out of it."""
    targets: list[str] = []
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            if name.endswith(".rels"):
                relations = ElementTree.fromstring(archive.read(name))
                targets += [r.get("Target", "") for r in relations if r.get("TargetMode") == "External"]
    return targets


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_sentence_is_in_the_file_in_its_order(sample: str) -> None:
    report = SAMPLES[sample]()
    text = read_docx(written(report)).text
    at = 0
    for sentence in report.sentences():
        words = sentence.text.strip("| ").split(" | ")[0]
        at = text.index(words, at)
    assert text.startswith(f"# {report.title}")


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_numbers_of_citations_link_to_their_entries(sample: str) -> None:
    report = SAMPLES[sample]()
    file = opened(report)
    places = {e.get(qn("w:name")) for e in file.element.iter(qn("w:bookmarkStart"))}
    expected = [f"citation_{n}" for s in report.sentences() for n in (*s.citations, *s.passages)]
    assert links(file)[: len(expected)] == expected
    assert set(links(file)) <= places
    assert len(places) == len(report.citations)


def test_headings_tables_and_lists_have_their_styles() -> None:
    file = opened(english_report())
    styles = [(p.style.name, p.text) for p in file.paragraphs]
    assert ("Title", "Pumps: a survey of surveys") in styles
    assert [text for style, text in styles if style == "Heading 1"] == [
        *("What the surveys found", "Flow by year", "Points", "Limits", "Sources", "Claims")
    ]
    assert sum(style == "Heading 2" for style, _ in styles) == 12
    assert sum(style == "List Bullet" for style, _ in styles) == 5
    flow, claims = file.tables
    assert [cell.text for cell in flow.rows[0].cells] == ["Year", "Flow", "Remark"]
    assert flow.rows[1].cells[2].text.endswith("of some length[26]")
    assert len(flow.rows) == 11
    assert len(claims.rows) == 1 + 43
    assert claims.rows[0]._tr.find(f".//{qn('w:tblHeader')}") is not None


def test_unsupported_sentences_are_marked_in_color() -> None:
    marked = {
        run.text for p in opened(english_report()).paragraphs for run in p.runs if run.italic and run.font.color.rgb
    }
    assert " (no source E9: these words are not in the passage)" in marked
    assert " (not in the quotes: 12,345)" in marked


def test_arabic_is_right_to_left_and_english_within_it_is_not() -> None:
    file = opened(arabic_report())
    paragraph = next(p for p in file.paragraphs if "SCADA" in p.text)
    assert paragraph._p.pPr.find(qn("w:bidi")) is not None
    directions = {run.text.strip(): bool(run.font.rtl) for run in paragraph.runs}
    assert directions["SCADA (Supervisory Control)"] is False
    assert next(is_rtl for text, is_rtl in directions.items() if text.startswith("للمراقبة")) is True
    english = next(p for p in file.paragraphs if p.text.startswith("The English summary"))
    assert english._p.pPr is None or english._p.pPr.find(qn("w:bidi")) is None
    assert file.tables[0]._tbl.tblPr.find(qn("w:bidiVisual")) is not None


def test_every_style_has_a_font_for_chinese_and_the_size_of_arabic() -> None:
    styles = opened(chinese_report()).styles.element
    fonts = list(styles.iter(qn("w:rFonts")))
    assert fonts
    assert {f.get(qn("w:eastAsia")) for f in fonts} == {"Microsoft YaHei"}
    assert not [name for f in fonts for name in f.attrib if name.endswith("Theme")]
    sizes = [(e.get(qn("w:val")), e.getparent().find(qn("w:szCs")).get(qn("w:val"))) for e in styles.iter(qn("w:sz"))]
    assert all(size == complex_size for size, complex_size in sizes)
    assert {e.get(qn("w:eastAsia")) for e in styles.iter(qn("w:lang"))} == {"zh-CN"}


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_file_has_no_macros_and_leads_only_to_the_addresses_of_its_sources(sample: str) -> None:
    data = written(SAMPLES[sample]())
    targets = outside_targets(data)
    assert targets
    assert all(re.match(r"https://[\x21-\x7e]+$", target) for target in targets)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert not [n for n in archive.namelist() if "vba" in n.lower() or "thumbnail" in n or "embeddings" in n]


@pytest.mark.parametrize("text", [*HOSTILE, "\ufffe\uffff noncharacters", "]]> &amp; <w:t>", "x" * 50_000])
def test_hostile_text_stays_text(text: str) -> None:
    data = written(hostile_report(text))
    assert outside_targets(data) == []
    file: Any = docx.Document(io.BytesIO(data))
    plain = opened(hostile_report("Plain words."))
    assert len(file.paragraphs) == len(plain.paragraphs)
    assert {e.tag for e in file.element.iter()} <= {e.tag for e in plain.element.iter()} | {qn("w:bidi"), qn("w:rtl")}


def test_the_properties_name_title_language_and_author() -> None:
    properties = opened(chinese_report()).core_properties
    assert (properties.title, properties.language) == ("中国水泵产业研究报告", "zh")
    assert (properties.author, properties.comments) == ("litellm:gpt-x", "")
    assert properties.created.replace(tzinfo=None) == MARCH.replace(tzinfo=None)


def test_bullets_need_no_font_of_symbols_and_longer_columns_are_wider() -> None:
    file = opened(english_report())
    levels = list(file.part.numbering_part.element.iter(qn("w:lvl")))
    assert not [one for level in levels for one in level.iter(qn("w:rFonts")) if one.get(qn("w:ascii")) == "Symbol"]
    assert not [one for level in levels for one in level.iter(qn("w:lvlText")) if "\uf0b7" in one.get(qn("w:val"))]
    year, flow, remark = file.tables[0].columns
    assert year.width < flow.width < remark.width
    header = [cell.text for cell in file.tables[1].rows[0].cells]
    claims = dict(zip(header, (column.width for column in file.tables[1].columns), strict=True))
    assert claims["Sentence"] > 2 * claims["Verdict"]
