"""Reports as DOCX, opened in LibreOffice, which prints them as PDF: what a reader sees, page by page."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import pytest

from offing.core.report_labels.languages import find_labels
from offing.report_files.pdf_fonts import ARABIC_FONT, BASE_FONT, CHINESE_FONT, find_font
from tests.programs import unavailable
from tests.unit.report_files.sample_reports import ENGLISH_CITATIONS, SAMPLES, Report
from tests.unit.report_files.test_docx_rendering import with_all_citations, write_sample
from tests.unit.report_files.test_pdf_writer import count_links, opened, pdfium, squeezed

SECONDS = 240
"""Seconds that LibreOffice may take for all files. Only a fault takes longer."""
MARGIN, BOTTOM_MARGIN = 2.5 / 2.54 * 72, 1.0 / 2.54 * 72
"""Space beside the text, and below the number of a page, in points."""
LANGUAGES = {"english": "en", "chinese": "zh", "arabic": "ar"}
"""Language of each report."""

pytestmark = pytest.mark.timeout(SECONDS + 60)


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with each report as LibreOffice prints it."""
    program = shutil.which("soffice")
    if program is None:
        unavailable("LibreOffice's soffice is not installed")
    folder = tmp_path_factory.mktemp("printed")
    for name in SAMPLES:
        write_sample(folder, name)
    profile = f"-env:UserInstallation={(folder / 'profile').as_uri()}"
    command = [program, "--headless", profile, "--convert-to", "pdf", "--outdir", str(folder)]
    environment = os.environ | {"FONTCONFIG_FILE": str(write_font_list(folder)), "HOME": str(folder)}
    files = [str(folder / f"{name}.docx") for name in SAMPLES]
    done = subprocess.run(
        [*command, *files], env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def write_font_list(folder: Path) -> Path:
    """Let LibreOffice have the fonts of the PDF files and no others, so that every machine prints the same."""
    paths = [find_font(font) for font in (BASE_FONT, CHINESE_FONT, ARABIC_FONT)]
    folders = sorted({str(path.parent) for path in paths if path})
    lines = [f"<dir>{escape(one)}</dir>" for one in folders]
    path = folder / "fonts.conf"
    path.write_text(f"<fontconfig>{''.join(lines)}<cachedir>{escape(str(folder / 'cache'))}</cachedir></fontconfig>")
    return path


def read_pages(folder: Path, name: str) -> list[str]:
    return [page.get_textpage().get_text_range() for page in opened((folder / f"{name}.pdf").read_bytes())]


def a_report(name: str) -> Report:
    return with_all_citations(SAMPLES[name]())


@pytest.mark.parametrize("name", ["english", "chinese"])
def test_every_heading_and_every_sentence_is_printed_in_its_order(printed: Path, name: str) -> None:
    pages = [page.rstrip().rstrip("0123456789") for page in read_pages(printed, name)]  # without their numbers
    report, text, at = a_report(name), squeezed("".join(pages)), 0
    assert text.startswith(squeezed(report.title))
    for section in report.sections:
        at = text.index(squeezed(section.heading), at)
        for sentence in section.sentences:
            at = text.index(squeezed(sentence.text.strip("| ").split(" | ")[0]), at)


def test_arabic_and_hebrew_are_printed_with_the_words_of_other_scripts(printed: Path) -> None:
    text = " ".join(read_pages(printed, "arabic"))
    assert sum("\u0600" <= letter <= "\u06ff" or "\ufe70" <= letter <= "\ufefc" for letter in text) > 500
    assert any("\u05d0" <= letter <= "\u05ea" for letter in text)
    assert "SCADA" in text
    assert "The English summary says that output rose by 12%." in " ".join(text.split())


@pytest.mark.parametrize("name", SAMPLES)
def test_every_citation_is_a_link_and_so_is_every_address(printed: Path, name: str) -> None:
    data = (printed / f"{name}.pdf").read_bytes()
    numbers = {int(number) for number in re.findall(r"\[(\d+)\]", "".join(read_pages(printed, name)))}
    assert numbers == set(range(1, ENGLISH_CITATIONS + 1))
    assert count_links(opened(data)) >= 2 * ENGLISH_CITATIONS  # in the text, and in the table of claims
    addresses = {one.source.name for one in a_report(name).citations if one.source and one.source.is_web}
    assert len(set(re.findall(rb"/URI ?\(([^)]*)\)", data))) == len(addresses)


@pytest.mark.parametrize("name", SAMPLES)
def test_no_verdict_is_broken_within_a_word(printed: Path, name: str) -> None:
    text = " ".join(" ".join(read_pages(printed, name)).split())
    labels = find_labels(LANGUAGES[name])
    table = text[text.index(" ".join(labels.claim_heads[column] for column in (0, 3, 4))) :]
    counts = [table.count(f" {verdict} ") for verdict in labels.verdicts.values()]
    assert sum(counts) >= len(a_report(name).citations)
    assert not re.search(r"\bsuppo?r?t?\b", table)


def list_boxes(page: Any) -> Iterator[tuple[float, float, float, float]]:
    """Left, bottom, right and top of each text and image of a page."""
    for part in page.get_objects():
        if part.type in (pdfium.FPDF_PAGEOBJ_TEXT, pdfium.FPDF_PAGEOBJ_IMAGE):
            yield part.get_bounds()


@pytest.mark.parametrize("name", SAMPLES)
def test_nothing_leaves_the_space_for_text_and_each_page_has_its_number(printed: Path, name: str) -> None:
    file = opened((printed / f"{name}.pdf").read_bytes())
    for number, page in enumerate(file, 1):
        width, height = page.get_size()
        boxes = list(list_boxes(page))
        assert min(box[0] for box in boxes) >= MARGIN - 6
        assert max(box[2] for box in boxes) <= width - MARGIN + 6
        assert min(box[1] for box in boxes) >= BOTTOM_MARGIN
        assert max(box[3] for box in boxes) <= height - BOTTOM_MARGIN
        assert page.get_textpage().get_text_range().split()[-1] == str(number)


@pytest.mark.parametrize("name", SAMPLES)
def test_an_image_is_on_the_page_of_its_heading_and_its_name(printed: Path, name: str) -> None:
    file = opened((printed / f"{name}.pdf").read_bytes())
    pages = [page for page in file if any(one.type == pdfium.FPDF_PAGEOBJ_IMAGE for one in page.get_objects())]
    (text,) = (page.get_textpage().get_text_range() for page in pages)
    assert find_labels(LANGUAGES[name]).images in text
    assert "plot.png" in text
