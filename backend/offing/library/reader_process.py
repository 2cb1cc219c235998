"""The child process that reads one document after another, so that a malformed file affects only itself.

Run it as `python -m offing.library.reader_process`. It reads frames of (name, bytes) from standard input and writes
one frame per document to standard output. It ends when its input ends.
"""

import os
import resource
import struct
import sys
from array import array
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any, BinaryIO

import orjson

from offing.library.document_index import NO_POSTINGS, FlatPostings, build_index
from offing.library.extraction import DocumentRejectedError, extract_text
from offing.library.passages import HEADING_SEPARATOR

MAX_MEMORY_BYTES = 3 * 2**29
"""Maximum bytes of address space of one reader."""
MAX_CPU_SECONDS = 60
"""Maximum seconds of processor time for one file. Exceeding it ends the reader."""

FRAME_LENGTH = struct.Struct(">I")


def main() -> None:
    source, sink = sys.stdin.buffer, _open_private_output()
    _set_limit(resource.RLIMIT_AS, MAX_MEMORY_BYTES)
    _set_limit(resource.RLIMIT_CORE, 0)
    while (name := _read_frame(source)) is not None:
        data = _read_frame(source)
        if data is None:
            return
        _extend_cpu_limit(MAX_CPU_SECONDS)
        answer = pack_answer({**read_document(name.decode(), data), "used": _memory_bytes()})
        sink.write(FRAME_LENGTH.pack(len(answer)) + answer)
        sink.flush()


def read_document(name: str, data: bytes) -> dict[str, Any]:
    """Return the text and the index of a document, or the reason why there is none."""
    try:
        extracted = extract_text(data, name)
        index = build_index(extracted.text, title=extracted.title, name=name)
    except DocumentRejectedError as error:
        return {"problem": error.problem, "remedy": error.remedy}
    except MemoryError:
        return {"problem": "The file needs too much memory to be read.", "remedy": "Split it."}
    passages = [(p.start, p.end, HEADING_SEPARATOR.join(p.headings)) for p in index.passages]
    fields = {**asdict(extracted), "page_starts": list(extracted.page_starts)}
    return {**fields, "digest": index.version, "passages": passages, "postings": index.flat_postings}


def pack_answer(answer: Mapping[str, Any]) -> bytes:
    """Return the answer of `read_document` as bytes: JSON, followed by the numbers of the postings as arrays.

    As JSON, the numbers would take most of the time of the transfer.
    """
    terms, *columns = answer.get("postings", NO_POSTINGS)
    head = orjson.dumps({**answer, "postings": (terms, [len(column) for column in columns])})
    return b"".join([FRAME_LENGTH.pack(len(head)), head, *columns])


def unpack_answer(body: bytes) -> dict[str, Any]:
    """Return the answer that `pack_answer` packed."""
    (length,) = FRAME_LENGTH.unpack_from(body)
    at = FRAME_LENGTH.size + length
    answer = orjson.loads(memoryview(body)[FRAME_LENGTH.size : at])
    terms, lengths = answer["postings"]
    columns: list[array[Any]] = [array("I"), array("I"), array("d")]
    for column, length in zip(columns, lengths, strict=True):
        end = at + length * column.itemsize
        column.frombytes(memoryview(body)[at:end])
        at = end
    return {**answer, "postings": FlatPostings(terms, *columns)}


def _read_frame(source: BinaryIO) -> bytes | None:
    head = source.read(FRAME_LENGTH.size)
    if len(head) < FRAME_LENGTH.size:
        return None
    (length,) = FRAME_LENGTH.unpack(head)
    body = source.read(length)
    return body if len(body) == length else None


def _open_private_output() -> BinaryIO:
    """Return a private standard output. What libraries print goes to standard error instead."""
    ours = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(ours, "wb")


def _memory_bytes() -> int:
    """Return the resident bytes of this process. If the system does not report them, return the peak."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:  # macOS, which counts in bytes
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _set_limit(resource_kind: int, maximum: int) -> None:
    with suppress(ValueError, OSError):  # macOS has no limit on address space
        resource.setrlimit(resource_kind, (maximum, maximum))


def _extend_cpu_limit(seconds: int) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))


if __name__ == "__main__":
    main()
