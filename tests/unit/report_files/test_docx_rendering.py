"""Reports as DOCX, rendered by docx-preview in a browser: a reader sees headings, tables, images and all numbers."""

import io
import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import docx
import pytest

from offing.core.report import Layout, Report, Section, Sentence
from offing.core.report_document import build_report_document
from offing.core.report_image import ReportImage
from offing.report_files.docx_writer import write_docx
from tests.api.test_shared_page import CHROMIUM, ROOT, browser_is_here
from tests.unit.report_files.sample_reports import ENGLISH_CITATIONS, MARCH, SAMPLES
from tests.unit.report_files.test_images import a_png, selected

SECONDS = 240
"""Seconds that the browser may take. Only a fault takes longer."""


def with_all_citations(report: Report) -> Report:
    """Return the report with as many citations as the English one, each with a sentence of its own."""
    first = report.citations[0]
    added = [
        replace(first, number=number, span=replace(first.span, start=number, end=number + len(first.quote)))
        for number in range(len(report.citations) + 1, ENGLISH_CITATIONS + 1)
    ]
    sentences = tuple(
        Sentence(f"a{one.number}", f"{one.quote} ({one.number})", (one.number,), layout=Layout.ITEM) for one in added
    )
    if not added:
        return report
    section = Section(report.sections[0].heading + " 2", sentences)
    return replace(report, sections=(*report.sections, section), citations=(*report.citations, *added))


def write_sample(folder: Path, name: str) -> None:
    report = with_all_citations(SAMPLES[name]())
    images = selected(ReportImage("plot.png", a_png()))
    data = write_docx(build_report_document(report, MARCH, None, images))
    (folder / f"{name}.docx").write_bytes(data)
    rows = [len(table.rows) for table in docx.Document(io.BytesIO(data)).tables]
    assert len(rows) == 2, "the table of the report, and that of its claims"
    expected = {
        "headings": [report.title, *(section.heading for section in report.sections)],
        "rows": rows,
        "images": 1,
        "citations": [citation.number for citation in report.citations],
        "is_rtl": name == "arabic",
    }
    (folder / f"{name}.json").write_text(json.dumps(expected))


@pytest.mark.browser
@pytest.mark.timeout(SECONDS + 60)
def test_a_reader_sees_headings_tables_images_and_all_numbers_of_citations(tmp_path: Path) -> None:
    browser_is_here()
    for name in SAMPLES:
        write_sample(tmp_path, name)
    environment = os.environ | {"OFFING_FILES": str(tmp_path), "OFFING_CHROMIUM": str(CHROMIUM)}
    script = ["node", str(ROOT / "frontend/e2e/docx-files.mjs")]
    done = subprocess.run(script, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
