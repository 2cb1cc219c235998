"""A few child processes that read documents, and the patience that each file is given.

A file that crashes its reader, or takes too long, is refused by itself; the reader is replaced and the next file finds
a fresh one. Knows no database.
"""

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Self

import orjson

from offing.library.child import LENGTH
from offing.library.extraction import Refused

PATIENCE = 60.0
"""Seconds for one file."""

COMMAND = (sys.executable, "-P", "-m", "offing.library.child")
"""-P: nothing is imported from the folder that we happen to be in."""

PASSED_ON = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TMPDIR", "HOME")
"""Of the environment. No address and no key reaches a process that parses strangers' files."""


@dataclass(frozen=True, slots=True)
class Document:
    """A file that was read: its text, and what the index keeps of it."""

    text: str
    title: str
    media_type: str
    extractor: str
    digest: int
    """Version of passages and postings."""
    passages: Sequence[tuple[int, int, str]]
    """Start, end and heading path of each."""
    postings: Sequence[tuple[str, Sequence[int], Sequence[float]]]
    """Term, ordinals of passages, weights."""


class Reader:
    """One child process, started when first needed and anew after it died. One file at a time."""

    def __init__(self, command: Sequence[str], patience: float) -> None:
        self._command, self._patience = command, patience
        self._process: Process | None = None

    async def read(self, name: str, data: bytes) -> Document:
        """Text and digest of a file. Raises `Refused`, also when the file crashed the reader or took too long."""
        try:
            return _document(await asyncio.wait_for(self._exchange(name, data), self._patience))
        except TimeoutError:
            await self.close(at_once=True)
            raise Refused(
                f"Reading the file took more than {self._patience:.0f} seconds.", "Split it, or save it as plain text."
            ) from None
        except (asyncio.IncompleteReadError, ConnectionError):
            await self.close(at_once=True)
            raise Refused("The file's reader crashed on it.", "Save it anew, or as plain text.") from None
        except asyncio.CancelledError:
            await self.close(at_once=True)  # in the middle of an exchange: its answer would go to the next file
            raise

    async def _exchange(self, name: str, data: bytes) -> dict[str, Any]:
        process = self._process = await self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        for part in (name.encode("utf-8", "replace"), data):
            process.stdin.write(LENGTH.pack(len(part)))
            process.stdin.write(part)
        await process.stdin.drain()
        (length,) = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))
        return orjson.loads(await process.stdout.readexactly(length))

    async def _started(self) -> Process:
        if self._process is not None and self._process.returncode is None:
            return self._process
        environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        return await asyncio.create_subprocess_exec(
            *self._command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment
        )

    async def close(self, *, at_once: bool = False) -> None:
        """End the process: by the end of its input, or by a signal."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), 0 if at_once else 2)
        except TimeoutError:
            with suppress(ProcessLookupError):  # it may have ended in the meantime
                process.kill()
            await process.wait()


class Readers:
    """`async with Readers() as readers: await readers.read(name, data)`, from as many tasks as one likes."""

    def __init__(
        self, count: int | None = None, *, patience: float = PATIENCE, command: Sequence[str] = COMMAND
    ) -> None:
        """`count` None: one for every processor."""
        self._readers = [Reader(command, patience) for _ in range(count or os.cpu_count() or 1)]
        self._idle: asyncio.LifoQueue[Reader] = asyncio.LifoQueue()

    async def __aenter__(self) -> Self:
        for reader in self._readers:
            self._idle.put_nowait(reader)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(reader.close() for reader in self._readers))

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[Reader]:
        """Waits for an idle reader, so that a file's bytes need not be held before its turn has come."""
        reader = await self._idle.get()
        try:
            yield reader
        finally:
            self._idle.put_nowait(reader)

    async def read(self, name: str, data: bytes) -> Document:
        """As `Reader.read`, by whichever reader is idle first."""
        async with self.turn() as reader:
            return await reader.read(name, data)


def _document(answer: dict[str, Any]) -> Document:
    if "problem" in answer:
        raise Refused(answer["problem"], answer["remedy"])
    return Document(**answer)
