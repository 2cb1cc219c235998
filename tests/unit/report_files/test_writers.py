"""Files are written in child processes with limits."""

import asyncio
import importlib.util
import sys
from collections.abc import Sequence

import pytest

from offing.core.errors import InvalidInput, Unavailable
from offing.core.report_document import ReportDocument, build_report_document
from offing.report_files import writers
from offing.report_files.writer_process import FILE, MAX_FILE_BYTES, PROBLEM, write_answer
from offing.report_files.writers import MAX_WRITERS, ReportFileWriter
from tests.unit.report_files.sample_reports import MARCH, chinese_report


def a_document() -> ReportDocument:
    return build_report_document(chinese_report(), MARCH)


def runs(code: str) -> Sequence[str]:
    """A command that runs this code instead of the writer."""
    return sys.executable, "-c", code


@pytest.mark.parametrize(("file_format", "start"), [("docx", b"PK\x03\x04"), ("pdf", b"%PDF-")])
async def test_a_file_is_written_in_a_process_of_its_own(file_format: writers.DocumentFormat, start: bytes) -> None:
    assert (await ReportFileWriter().write(a_document(), file_format)).startswith(start)


async def test_the_event_loop_goes_on_while_a_file_is_written() -> None:
    ticks = 0
    writing = asyncio.create_task(ReportFileWriter().write(a_document(), "docx"))
    while not writing.done():
        ticks += 1
        await asyncio.sleep(0.01)
    assert ticks > 5


async def test_a_writer_that_takes_too_long_is_ended() -> None:
    writer = ReportFileWriter(command=runs("import time; time.sleep(60)"), timeout_seconds=0.5)
    with pytest.raises(InvalidInput, match=r"format: This report as docx takes more than 0 seconds\. Export"):
        await writer.write(a_document(), "docx")


async def test_a_writer_that_crashes_is_reported_by_field_with_a_remedy() -> None:
    with pytest.raises(InvalidInput) as caught:
        await ReportFileWriter(command=runs("raise SystemExit(3)")).write(a_document(), "docx")
    assert (caught.value.field, caught.value.remedy) == ("format", writers.REMEDY)


async def test_a_problem_of_the_writer_is_passed_on() -> None:
    writer = ReportFileWriter(command=runs("print('pneeds too much memory', end='')"))
    with pytest.raises(InvalidInput, match="This report as docx needs too much memory"):
        await writer.write(a_document(), "docx")


async def test_a_document_that_is_too_long_is_refused_before_a_process_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "MAX_DOCUMENT_BYTES", 100)
    with pytest.raises(InvalidInput, match="of text"):
        await ReportFileWriter(command=("/no/such/program",)).write(a_document(), "docx")


async def test_only_a_few_files_are_written_at_the_same_time() -> None:
    writer = ReportFileWriter(command=runs("import time; time.sleep(60)"), max_wait_seconds=0.2)
    busy = [asyncio.create_task(writer.write(a_document(), "docx")) for _ in range(MAX_WRITERS)]
    await asyncio.sleep(0)
    with pytest.raises(Unavailable, match="Try again later"):
        await writer.write(a_document(), "docx")
    for task in busy:
        task.cancel()
    await asyncio.gather(*busy, return_exceptions=True)


async def test_a_missing_package_is_named_with_the_extra_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    original = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "uharfbuzz" else original(name))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    with pytest.raises(InvalidInput, match=r"lacks uharfbuzz\. Install the extra: pip install 'offing\[pdf\]'"):
        await ReportFileWriter().write(a_document(), "pdf")


def test_a_file_that_is_too_large_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    body = a_document().model_dump_json().encode()
    assert write_answer("docx", body)[:1] == FILE
    monkeypatch.setattr("offing.report_files.writer_process.MAX_FILE_BYTES", 1_000)
    assert write_answer("docx", body)[:1] == PROBLEM
    assert MAX_FILE_BYTES > 1_000_000
