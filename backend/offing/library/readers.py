"""The pool of child processes that read documents, one pool per process, shared by all its requests and runs.

A file that crashes its reader or exceeds a limit is rejected alone: the reader is replaced, and the next file gets a
new one. The number of readers, the memory of each and the number of documents in hand are bounded, so the total is too.
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

import orjson

from offing.core.errors import Unavailable
from offing.library.child import CPU_SECONDS, LENGTH, MEMORY
from offing.library.extraction import Refused

PATIENCE = 240.0
"""Maximum seconds for one file by the clock. Its processor time has a tighter limit, which a busy machine does not
use up."""

MAX_READERS = 4
"""Default maximum number of readers in one pool, however many processors the machine has."""

MEMORY_SHARE = 4
"""By default all readers of a pool together may use at most one part in so many of the machine's memory."""

IN_HAND_PER_READER = 2
"""Documents between loading and storing, per reader: one is read while another is stored."""

RETIRED_BYTES = 512 * 2**20
"""A reader whose memory has grown past this ends after the file, because an interpreter gives little of it back."""

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


class Busy(Exception):
    """`Busy(seconds)`: no reader became free within so many seconds. The file itself was not looked at."""

    def __str__(self) -> str:
        return f"All document readers were busy for {self.args[0]:.0f} seconds. Send the file again later."


class Reader:
    """One child process, started when first needed and started anew after it has ended. It reads one file at a time."""

    def __init__(self, command: Sequence[str], patience: float) -> None:
        self._command, self._patience = command, patience
        self._process: Process | None = None

    async def read(self, name: str, data: bytes) -> Document:
        """Text and digest of a file. Raises `Refused`, also when the file crashed the reader or took too long."""
        try:
            answer = await asyncio.wait_for(self._exchange(name, data), self._patience)
        except TimeoutError:
            await self.close(at_once=True)
            raise _too_slow(self._patience) from None
        except (asyncio.IncompleteReadError, ConnectionError):
            raise await self._ended() from None
        except asyncio.CancelledError:
            await self.close(at_once=True)  # in the middle of an exchange: its answer would go to the next file
            raise
        if answer.pop("used") > RETIRED_BYTES:
            await self.close()
        return _document(answer)

    async def _ended(self) -> Refused:
        """Why the reader ended in the middle of a file."""
        process = self._process
        await self.close()
        if process is not None and process.returncode == -signal.SIGXCPU:
            return _too_slow(CPU_SECONDS)
        return Refused("The file's reader crashed on it.", "Save it anew, or as plain text.")

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
        try:
            return await asyncio.create_subprocess_exec(
                *self._command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment
            )
        except OSError as error:
            raise Unavailable(f"A document reader cannot be started: {error.strerror}.") from error

    async def close(self, *, at_once: bool = False) -> None:
        """End the process: by the end of its input, or by a signal. However often the caller is cancelled, none is left
        that reads on."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            if not at_once:
                with suppress(TimeoutError):
                    await asyncio.wait_for(process.wait(), 2)
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):  # it may have ended in the meantime
                    process.kill()
        await process.wait()


class Readers:
    """`async with Readers() as readers: await readers.read(name, data)`, from any number of tasks.

    Tasks of a tenant get their turn in the order in which they asked.
    """

    def __init__(
        self,
        count: int = 0,
        *,
        patience: float = PATIENCE,
        wait_seconds: float | None = None,
        command: Sequence[str] = COMMAND,
    ) -> None:
        """`count`: number of readers. 0 means what fits this machine, see `fitting`. `wait_seconds`: maximum time that
        a document waits for its turn. `None` means no limit."""
        self._readers = [Reader(command, patience) for _ in range(count or fitting())]
        self._idle: asyncio.LifoQueue[Reader] = asyncio.LifoQueue()
        self._wait_seconds = wait_seconds
        self.at_once = IN_HAND_PER_READER * len(self._readers)
        """Maximum number of documents in hand."""
        self._in_hand = _FairTurns(self.at_once)

    async def __aenter__(self) -> Self:
        for reader in self._readers:
            self._idle.put_nowait(reader)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(reader.close() for reader in self._readers))

    @asynccontextmanager
    async def turn(self, tenant: UUID | None = None) -> AsyncGenerator["Turn"]:
        """Wait until a document may be loaded, read and stored. Raises `Busy` when the wait exceeds its limit.

        Tenants take turns, however many documents of each wait.

        The turn lasts until the document is stored, so that documents which were read never pile up before a database
        that stores them more slowly.
        """
        try:
            async with asyncio.timeout(self._wait_seconds):
                await self._in_hand.acquire(tenant)
        except TimeoutError:
            raise Busy(self._wait_seconds) from None
        try:
            yield Turn(self._idle)
        finally:
            self._in_hand.release()

    async def read(self, name: str, data: bytes, tenant: UUID | None = None) -> Document:
        """Read one document as `Reader.read` does. Raises `Busy` as `turn` does."""
        async with self.turn(tenant) as turn:
            return await turn.read(name, data)


class _FairTurns:
    """A semaphore whose waiters are served tenant by tenant in rotation."""

    def __init__(self, free: int) -> None:
        self._free = free
        self._waiting: dict[UUID | None, deque[asyncio.Future[None]]] = {}

    async def acquire(self, tenant: UUID | None) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()  # it was given in the moment in which nobody wanted it any more
            raise

    def release(self) -> None:
        """Give the turn to the next tenant's first waiter, and put that tenant behind the others."""
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
class Turn:
    """The right to have one document in hand."""

    _idle: "asyncio.LifoQueue[Reader]"

    async def read(self, name: str, data: bytes) -> Document:
        """Read a document by the first reader that is idle. Raises `Refused`."""
        reader = await self._idle.get()
        try:
            return await reader.read(name, data)
        finally:
            self._idle.put_nowait(reader)


def fitting() -> int:
    """The default number of readers: one per processor, at most `MAX_READERS`, within `MEMORY_SHARE` of the memory."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(os.cpu_count() or 1, MAX_READERS, memory // MEMORY_SHARE // MEMORY))


def _too_slow(seconds: float) -> Refused:
    return Refused(f"Reading the file took more than {seconds:.0f} seconds.", "Split it, or save it as plain text.")


def _document(answer: dict[str, Any]) -> Document:
    if "problem" in answer:
        raise Refused(answer["problem"], answer["remedy"])
    return Document(**answer)
