"""The child process that reads one document after another, so that a bad file hurts nothing but itself.

Run as `python -m offing.library.child`. On standard input come frames of (name, bytes), on standard output go frames of
JSON. It ends when its input ends. Knows no database.
"""

import os
import resource
import struct
import sys
from contextlib import suppress
from dataclasses import asdict
from typing import Any, BinaryIO

import orjson

from offing.library.digest import digest
from offing.library.extraction import Refused, extract

MEMORY = 3 * 2**29
"""Maximum bytes of address space of one reader."""
CPU_SECONDS = 60
"""Maximum seconds of processor time for one file. Exceeding it ends the reader."""

LENGTH = struct.Struct(">I")


def main() -> None:
    source, sink = sys.stdin.buffer, _private_output()
    _limit(resource.RLIMIT_AS, MEMORY)
    _limit(resource.RLIMIT_CORE, 0)
    while (name := _frame(source)) is not None:
        data = _frame(source)
        if data is None:
            return
        _allow_cpu(CPU_SECONDS)
        answer = orjson.dumps({**prepared(name.decode(), data), "used": _used()})
        sink.write(LENGTH.pack(len(answer)) + answer)
        sink.flush()


def prepared(name: str, data: bytes) -> dict[str, Any]:
    """A document's text and digest as JSON, or why there is none."""
    try:
        found = extract(data, name)
        made = digest(found.text, title=found.title, name=name)
    except Refused as refusal:
        return {"problem": refusal.problem, "remedy": refusal.remedy}
    except MemoryError:
        return {"problem": "The file needs too much memory to be read.", "remedy": "Split it."}
    passages = [(p.start, p.end, " \u203a ".join(p.headings)) for p in made.passages]
    postings = [(p.term, p.passages, p.weights) for p in made.postings]
    return {**asdict(found), "digest": made.version, "passages": passages, "postings": postings}


def _frame(source: BinaryIO) -> bytes | None:
    head = source.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    body = source.read(length)
    return body if len(body) == length else None


def _private_output() -> BinaryIO:
    """Standard output for us alone: what libraries print goes to standard error."""
    ours = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(ours, "wb")


def _used() -> int:
    """Bytes of this process in memory. Where the system does not tell: the most that there have been."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:  # macOS, which counts in bytes
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _limit(what: int, most: int) -> None:
    with suppress(ValueError, OSError):  # macOS has no limit on address space
        resource.setrlimit(what, (most, most))


def _allow_cpu(seconds: int) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))


if __name__ == "__main__":
    main()
