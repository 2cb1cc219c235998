"""The pool of child processes that read documents. A process has one pool for all its requests and runs.

A file that crashes its reader or exceeds a limit is rejected without affecting other files: the reader is
replaced, and the next file gets a new one. The number of readers, the memory of each and the number of
documents in progress are limited, so the total is limited too.
"""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Self
from uuid import UUID

from offing import environment
from offing.core.errors import Unavailable
from offing.library.document_index import FlatPostings
from offing.library.extraction import DocumentRejectedError
from offing.library.publication import UNKNOWN_PUBLICATION, Publication
from offing.library.reader_process import FRAME_LENGTH, MAX_CPU_SECONDS, MAX_MEMORY_BYTES, unpack_answer

READ_TIMEOUT_SECONDS = 240.0
"""Maximum seconds of wall-clock time for one file. The tighter limit on processor time is not reached on a
busy machine.
"""

MAX_READERS = 4
"""Default maximum number of readers in one pool, however many processors the machine has."""

MEMORY_DIVISOR = 4
"""By default all readers of a pool together may use at most 1/`MEMORY_DIVISOR` of the machine's memory."""

DOCUMENTS_PER_READER = 2
"""Maximum number of documents between loading and storing, per reader: one is read while another is stored."""

MAX_READER_BYTES = 512 * 2**20
"""A reader that has grown beyond this many bytes ends after the file, because an interpreter returns little memory."""

READER_COMMAND = (sys.executable, "-P", "-m", "offing.library.reader_process")
"""-P: nothing is imported from the current folder."""

INHERITED_VARIABLES = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TMPDIR", "HOME")
"""Environment variables that a reader inherits. No address and no key reaches a process that parses untrusted files."""


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A file that was read: its text and its index."""

    text: str
    title: str
    media_type: str
    extractor: str
    digest: int
    """Version of passages and postings."""
    passages: Sequence[tuple[int, int, str]]
    """Start, end and heading path of each passage."""
    postings: FlatPostings
    publication: Publication = UNKNOWN_PUBLICATION
    page_starts: Sequence[tuple[int, int]] = ()
    """See `offing.library.page_starts`. Empty means that it has no pages."""


class ReadersBusyError(Exception):
    """`ReadersBusyError(seconds)`: no reader became available within that time. The file was not read."""

    def __str__(self) -> str:
        return f"All document readers were busy for {self.args[0]:.0f} seconds. Send the file again later."


class DocumentReader:
    """One child process that reads one file at a time.

    It is started when first needed and restarted after it has ended.
    """

    def __init__(self, command: Sequence[str], timeout_seconds: float) -> None:
        self._command, self._timeout_seconds = command, timeout_seconds
        self._process: Process | None = None

    async def read(self, name: str, data: bytes) -> ParsedDocument:
        """Return the text and index of a file.

        Raises `DocumentRejectedError`, also when the file crashed the reader or took too long.
        """
        try:
            answer = await asyncio.wait_for(self._exchange(name, data), self._timeout_seconds)
        except TimeoutError:
            await self.close(kill=True)
            raise _too_slow_error(self._timeout_seconds) from None
        except (asyncio.IncompleteReadError, ConnectionError):
            raise await self._explain_exit() from None
        except asyncio.CancelledError:
            # in the middle of an exchange: the answer would be taken for that of the next file
            await self.close(kill=True)
            raise
        if answer.pop("used") > MAX_READER_BYTES:
            await self.close()
        return _document_from_answer(answer)

    async def _explain_exit(self) -> DocumentRejectedError:
        """Return why the reader ended in the middle of a file."""
        process = self._process
        await self.close()
        if process is not None and process.returncode == -signal.SIGXCPU:
            return _too_slow_error(MAX_CPU_SECONDS)
        return DocumentRejectedError(
            "The document reader crashed while it read the file.", "Save it again, or save it as plain text."
        )

    async def _exchange(self, name: str, data: bytes) -> dict[str, Any]:
        process = self._process = await self._ensure_started()
        assert process.stdin is not None
        assert process.stdout is not None
        parts = (name.encode("utf-8", "replace"), data)
        process.stdin.write(b"".join(piece for part in parts for piece in (FRAME_LENGTH.pack(len(part)), part)))
        await process.stdin.drain()
        (length,) = FRAME_LENGTH.unpack(await process.stdout.readexactly(FRAME_LENGTH.size))
        return unpack_answer(await process.stdout.readexactly(length))

    async def _ensure_started(self) -> Process:
        if self._process is not None and self._process.returncode is None:
            return self._process
        variables = environment.select_variables(INHERITED_VARIABLES)
        try:
            return await asyncio.create_subprocess_exec(
                *self._command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=variables
            )
        except OSError as error:
            raise Unavailable(f"A document reader cannot be started: {error.strerror}.") from error

    async def close(self, *, kill: bool = False) -> None:
        """End the process, by the end of its input or with `kill` by a signal.

        No process keeps reading even if the caller is cancelled several times.
        """
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            if not kill:
                with suppress(TimeoutError):
                    await asyncio.wait_for(process.wait(), 2)
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):  # it may have ended in the meantime
                    process.kill()
        await process.wait()


class DocumentReaderPool:
    """A pool of document readers: `async with DocumentReaderPool() as readers: await readers.read(name, data)`.

    It can be used from any number of tasks. Tasks of a tenant are served in the order of their requests.
    """

    def __init__(
        self,
        reader_count: int = 0,
        *,
        timeout_seconds: float = READ_TIMEOUT_SECONDS,
        max_wait_seconds: float | None = None,
        command: Sequence[str] = READER_COMMAND,
    ) -> None:
        """Create a pool of `reader_count` readers. 0 means the number of `default_reader_count`.

        `max_wait_seconds` is the maximum time that a document waits for its turn. `None` means no limit.
        """
        self._readers = [
            DocumentReader(command, timeout_seconds) for _ in range(reader_count or default_reader_count())
        ]
        self._idle: asyncio.LifoQueue[DocumentReader] = asyncio.LifoQueue()
        self._max_wait_seconds = max_wait_seconds
        self.max_documents = DOCUMENTS_PER_READER * len(self._readers)
        """Maximum number of documents in progress."""
        self._turns = _FairSemaphore(self.max_documents)

    async def __aenter__(self) -> Self:
        for reader in self._readers:
            self._idle.put_nowait(reader)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(reader.close() for reader in self._readers))

    @asynccontextmanager
    async def acquire(self, tenant_id: UUID | None = None) -> AsyncGenerator["ReaderTurn"]:
        """Wait until a document may be loaded, read and stored. Raises `ReadersBusyError` if the wait is too long.

        Tenants take turns, however many documents of each are waiting.

        The turn lasts until the document is stored, so that documents do not accumulate in front of a database that
        stores them more slowly.
        """
        try:
            async with asyncio.timeout(self._max_wait_seconds):
                await self._turns.acquire(tenant_id)
        except TimeoutError:
            raise ReadersBusyError(self._max_wait_seconds) from None
        try:
            yield ReaderTurn(self._idle)
        finally:
            self._turns.release()

    async def read(self, name: str, data: bytes, tenant_id: UUID | None = None) -> ParsedDocument:
        """Read one document as `DocumentReader.read` does. Raises `ReadersBusyError` as `acquire` does."""
        async with self.acquire(tenant_id) as turn:
            return await turn.read(name, data)


class _FairSemaphore:
    """A semaphore whose waiters are served tenant by tenant in rotation."""

    def __init__(self, permits: int) -> None:
        self._free = permits
        self._waiting: dict[UUID | None, deque[asyncio.Future[None]]] = {}

    async def acquire(self, tenant_id: UUID | None) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant_id, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()  # it was given when its waiter had already stopped waiting
            raise

    def release(self) -> None:
        """Give the turn to the first waiter of the next tenant, and move that tenant behind the others."""
        while self._waiting:
            tenant = next(iter(self._waiting))
            waiting = self._waiting.pop(tenant)
            turn = waiting.popleft()
            if waiting:
                self._waiting[tenant] = waiting
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


@dataclass(frozen=True, slots=True)
class ReaderTurn:
    """The right to have one document in progress."""

    _idle: "asyncio.LifoQueue[DocumentReader]"

    async def read(self, name: str, data: bytes) -> ParsedDocument:
        """Read a document with the first idle reader. Raises `DocumentRejectedError`."""
        reader = await self._idle.get()
        try:
            return await reader.read(name, data)
        finally:
            self._idle.put_nowait(reader)


def default_reader_count() -> int:
    """Return the default number of readers: one per processor, limited by `MAX_READERS` and `MEMORY_DIVISOR`."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(os.cpu_count() or 1, MAX_READERS, memory // MEMORY_DIVISOR // MAX_MEMORY_BYTES))


def _too_slow_error(limit_seconds: float) -> DocumentRejectedError:
    return DocumentRejectedError(
        f"Reading the file took more than {limit_seconds:.0f} seconds.", "Split it, or save it as plain text."
    )


def _document_from_answer(answer: dict[str, Any]) -> ParsedDocument:
    if "problem" in answer:
        raise DocumentRejectedError(answer["problem"], answer["remedy"])
    publication, starts = (
        Publication(**answer.pop("publication")),
        [(at, page) for at, page in answer.pop("page_starts")],
    )
    return ParsedDocument(**answer, publication=publication, page_starts=starts)
