"""The child process that writes one file, so that a report that takes too long or too much memory ends only itself.

Run it as `python -m offing.report_files.writer_process docx`. It reads a report document as JSON from standard input,
and writes one byte and then the file to standard output, or another byte and then the reason why there is none.
"""

import resource
import sys
from contextlib import suppress

from offing.core.report_document import ReportDocument

MAX_MEMORY_BYTES = 2 * 2**30
"""Maximum bytes of address space."""
MAX_CPU_SECONDS = 90
"""Maximum seconds of processor time."""
MAX_FILE_BYTES = 64 * 2**20

FILE, PROBLEM = b"f", b"p"
"""The first byte of the answer."""


def main() -> None:
    for kind, maximum in (
        (resource.RLIMIT_AS, MAX_MEMORY_BYTES),
        (resource.RLIMIT_CPU, MAX_CPU_SECONDS),
        (resource.RLIMIT_FSIZE, MAX_FILE_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        with suppress(ValueError, OSError):  # macOS has no limit on address space
            resource.setrlimit(kind, (maximum, maximum))
    answer = write_answer(sys.argv[1], sys.stdin.buffer.read())
    sys.stdout.buffer.write(answer)


def write_answer(file_format: str, document: bytes) -> bytes:
    """Return the answer for a document: a file, or the reason why there is none."""
    try:
        body = _write_file(file_format, ReportDocument.model_validate_json(document))
    except MemoryError:
        return PROBLEM + b"needs too much memory"
    if len(body) > MAX_FILE_BYTES:
        return PROBLEM + f"would have more than {MAX_FILE_BYTES // 2**20} MB".encode()
    return FILE + body


def _write_file(file_format: str, document: ReportDocument) -> bytes:
    match file_format:
        case "docx":
            from offing.report_files.docx_writer import write_docx

            return write_docx(document)
        case "pdf":
            from offing.report_files.pdf_writer import write_pdf

            return write_pdf(document)
        case other:
            raise ValueError(f"unknown format {other!r}")


if __name__ == "__main__":
    main()
