"""Writes files in child processes, a few at a time. A process has one writer for all its exports."""

import asyncio
import importlib.util
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from typing import Literal

import structlog

from offing import environment
from offing.core.errors import InvalidInput, Unavailable
from offing.core.report_document import ReportDocument
from offing.library.readers import INHERITED_VARIABLES
from offing.report_files.writer_process import FILE, MAX_CPU_SECONDS, MAX_FILE_BYTES

log = structlog.get_logger()

DocumentFormat = Literal["docx", "pdf"]

MAX_WRITERS = 2
"""Maximum number of files that are written at the same time."""
WRITE_TIMEOUT_SECONDS = 240.0
"""Maximum seconds of wall-clock time for one file. On an idle machine, the limit on processor time is reached first."""
MAX_WAIT_SECONDS = 60.0
"""Maximum seconds that an export waits for its turn."""
MAX_DOCUMENT_BYTES = 8 * 2**20
"""Maximum bytes of a document as JSON. A report of 10,000 words has about a hundred kilobytes."""
WRITER_COMMAND = (sys.executable, "-P", "-m", "offing.report_files.writer_process")
"""-P: nothing is imported from the current folder."""
REMEDY = "Export the report as html, md or json, or ask for a shorter one."
PDF_MODULES = ("fpdf", "uharfbuzz", "manimgx_fonts", "pylopdf_fonts_zh_cn", "fontpkg_amiri")
"""What the extra `pdf` installs."""
MAX_LOGGED_BYTES = 2_000


class ReportFileWriter:
    """Writes files in child processes. It can be used from any number of tasks of one event loop."""

    def __init__(
        self,
        *,
        command: Sequence[str] = WRITER_COMMAND,
        timeout_seconds: float = WRITE_TIMEOUT_SECONDS,
        max_wait_seconds: float = MAX_WAIT_SECONDS,
    ) -> None:
        self._command, self._timeout_seconds, self._max_wait_seconds = command, timeout_seconds, max_wait_seconds
        self._turns = asyncio.Semaphore(MAX_WRITERS)

    async def write(self, document: ReportDocument, file_format: DocumentFormat) -> bytes:
        """Return the bytes of the file.

        Raises `InvalidInput` if the format is not installed or the report exceeds a limit, and `Unavailable` if the
        other exports take too long.
        """
        if file_format == "pdf":
            check_pdf_installed()
        body = document.model_dump_json().encode()
        if len(body) > MAX_DOCUMENT_BYTES:
            raise _too_large(file_format, f"has more than {MAX_DOCUMENT_BYTES // 2**20} MB of text")
        try:
            await asyncio.wait_for(self._turns.acquire(), self._max_wait_seconds)
        except TimeoutError:
            raise Unavailable(
                f"Other exports kept the writers busy for {self._max_wait_seconds:.0f} seconds. Try again later."
            ) from None
        try:
            return await self._run(body, file_format)
        finally:
            self._turns.release()

    async def _run(self, body: bytes, file_format: DocumentFormat) -> bytes:
        process = await self._start(file_format)
        try:
            answer, messages = await asyncio.wait_for(process.communicate(body), self._timeout_seconds)
        except TimeoutError:
            raise _too_large(file_format, f"takes more than {self._timeout_seconds:.0f} seconds") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if answer[:1] == FILE:
            return answer[1:]
        raise _explain(process.returncode, answer, messages, file_format)

    async def _start(self, file_format: DocumentFormat) -> Process:
        variables = environment.select_variables(INHERITED_VARIABLES)
        try:
            return await asyncio.create_subprocess_exec(
                *self._command, file_format, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=variables
            )
        except OSError as error:
            raise Unavailable(f"A writer of report files cannot be started: {error.strerror}.") from error


def check_pdf_installed() -> None:
    """Raise `InvalidInput` if a package of the extra `pdf` is missing."""
    missing = [module for module in PDF_MODULES if importlib.util.find_spec(module) is None]
    if missing:
        raise InvalidInput(
            "format",
            f"This installation cannot write PDF, because it lacks {', '.join(missing)}",
            "Install the extra: pip install 'offing[pdf]'. Or export the report as docx or html.",
        )


def _explain(code: int | None, answer: bytes, messages: bytes, file_format: DocumentFormat) -> Exception:
    """Return the error of a process that wrote no file."""
    if answer:
        return _too_large(file_format, answer[1:].decode())
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return _too_large(file_format, f"takes more than {MAX_CPU_SECONDS} seconds of processor time")
    if code == -signal.SIGXFSZ:
        return _too_large(file_format, f"would have more than {MAX_FILE_BYTES // 2**20} MB")
    log.error("report_writer_failed", code=code, messages=messages[-MAX_LOGGED_BYTES:].decode("utf-8", "replace"))
    return InvalidInput("format", f"The report could not be written as {file_format}", REMEDY)


def _too_large(file_format: DocumentFormat, problem: str) -> InvalidInput:
    return InvalidInput("format", f"This report as {file_format} {problem}", REMEDY)
