"""A confined process from outside: its job goes in, what it prints is kept up to a bound, and it ends in time.

The only home of how an outcome is read: as data from a stranger. Knows no way to confine.
"""

import asyncio
import os
import signal
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from io import FileIO
from typing import Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from offing.finishing import finished
from offing.sandbox.control_group import ControlGroup
from offing.sandbox.inside import LONGEST_NAME, STARTED
from offing.sandbox.sandbox import CannotRun, Code, File, Killed, Limits, Ran

EXCESS = 16
"""Times what is kept that may be printed before the code is stopped."""

LONGEST_HEADER = 256 * 1024

LOOK_SECONDS = 0.05

Watch = Callable[[int], Killed | None]
"""Looks at what the process with this id, and all that it started, takes up. None: no more than it may."""


@dataclass(frozen=True, slots=True)
class Command:
    """What confines, and what the code finds there."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    folder: str
    """The workspace as `inside` sees it."""
    watch: Watch
    paths: Sequence[str] = ()
    """Folders to import from besides."""
    descriptors: Sequence[int] = ()
    """Passed on, and closed here once they are."""
    grace: float = 0.0
    """Seconds for what must happen before the code begins."""


async def confined(command: Command, code: Code) -> Ran:
    """Run the job to its end. Raises CannotRun when it never began. ValueError: a file's name leads out of the
    workspace."""
    for file in code.files:
        if not proper(file.name):
            raise ValueError(f"{file.name!r} is no name of a file in the workspace")
    return await _Run(command, code).run()


def judged(ran: Ran, group: ControlGroup | None) -> Ran:
    """The outcome with the kernel's own word for why it ended, where a control group has one."""
    if ran.killed is None or group is None or not group.ran_out_of_memory():
        return ran
    return replace(ran, exit=None, killed=Killed.MEMORY)


def proper(name: str) -> bool:
    """Whether this is the path of a file below a folder, and can be shown."""
    parts = name.split("/")
    return 0 < len(name) <= LONGEST_NAME and name.isprintable() and not {"", ".", ".."} & set(parts)


class _Told(BaseModel):
    """The outcome's first line."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    exit: int | None
    killed: Literal["", "time", "memory", "crashed", "files"]
    files: list[tuple[str, NonNegativeInt]]
    left_out: list[str]


@dataclass(slots=True)
class _Kept:
    """What was printed, as far as it is kept."""

    data: bytearray = field(default_factory=bytearray)
    cut: bool = False

    def text(self) -> str:
        return self.data.decode("utf-8", "replace").replace("\0", "\ufffd")


class _Run:
    """One process from its start to its end."""

    def __init__(self, command: Command, code: Code) -> None:
        self._command, self._code = command, code
        self._killed: Killed | None = None
        self._process: Process | None = None

    async def run(self) -> Ran:
        source, sink = os.pipe()
        with os.fdopen(source, "rb", buffering=0) as told:  # closed also when we are cancelled before anybody reads
            return await self._run(sink, told)

    async def _run(self, sink: int, told: FileIO) -> Ran:
        began = time.monotonic()
        try:
            process = self._process = await self._started(sink)
        except OSError as error:
            raise CannotRun(f"{self._command.argv[0]}: {error.strerror}") from error
        finally:
            for descriptor in (sink, *self._command.descriptors):
                os.close(descriptor)
        limits = self._code.limits
        out, err, result = _Kept(), _Kept(), _Kept()
        try:
            async with asyncio.TaskGroup() as tasks:
                watching = tasks.create_task(self._watched(process, result))
                await asyncio.gather(
                    self._sent(process, sink),
                    self._read(process.stdout, out, limits.text, limits.text * EXCESS, Killed.OUTPUT),
                    self._read(process.stderr, err, limits.text, limits.text * EXCESS, Killed.OUTPUT),
                    self._outcome(told, result),
                    process.wait(),
                )
                watching.cancel()
        finally:
            self._kill(None)
            await finished(process.wait())
        return self._ran(out, err, bytes(result.data), time.monotonic() - began)

    async def _started(self, sink: int) -> Process:
        return await asyncio.create_subprocess_exec(
            *self._command.argv,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=dict(self._command.environment),
            pass_fds=(sink, *self._command.descriptors),
            start_new_session=True,
            cwd="/",
        )

    async def _sent(self, process: Process, sink: int) -> None:
        code, source = self._code, self._code.source.encode("utf-8", "replace")
        job: dict[str, Any] = {
            "folder": self._command.folder,
            "paths": list(self._command.paths),
            "files": [[file.name, len(file.data)] for file in code.files],
            "code": len(source),
            "limits": _whole(code.limits),
            "result": sink,
        }
        assert process.stdin is not None
        with suppress(ConnectionError):  # it may have ended already, which its status tells
            process.stdin.write(orjson.dumps(job) + b"\n")
            process.stdin.writelines([*(file.data for file in code.files), source])
            await process.stdin.drain()
        process.stdin.close()

    async def _outcome(self, told: FileIO, into: _Kept) -> None:
        reader, loop = asyncio.StreamReader(), asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), told)
        try:
            most = LONGEST_HEADER + self._code.limits.total
            await self._read(reader, into, most, most, Killed.FILES)
        finally:
            transport.close()

    async def _read(
        self, reader: asyncio.StreamReader | None, into: _Kept, keep: int, most: int, excess: Killed
    ) -> None:
        """To the end; keeps the first `keep` bytes, and stops the code when there are more than `most`."""
        assert reader is not None
        total = 0
        while data := await reader.read(1 << 16):
            total += len(data)
            room = keep - len(into.data)
            into.data += data[:room]
            into.cut = into.cut or len(data) > room
            if total > most:
                self._kill(excess)

    async def _watched(self, process: Process, result: _Kept) -> None:
        """Stop what takes too long or takes up too much. The code's own time begins when it does."""
        began, seconds = time.monotonic(), self._code.limits.seconds + self._command.grace
        while True:
            if result.data and seconds > self._code.limits.seconds:
                began, seconds = time.monotonic(), self._code.limits.seconds
            if time.monotonic() > began + seconds:
                return self._kill(Killed.TIME)
            if (excess := self._command.watch(process.pid)) is not None:
                return self._kill(excess)
            await asyncio.sleep(LOOK_SECONDS)

    def _kill(self, why: Killed | None) -> None:
        """End the process and all that it started. None: it is over in any case, and nothing is told."""
        assert self._process is not None
        self._killed = self._killed or why
        with suppress(ProcessLookupError, PermissionError):  # it has ended meanwhile
            if self._process.returncode is None:
                os.killpg(self._process.pid, signal.SIGKILL)

    def _ran(self, out: _Kept, err: _Kept, result: bytes, seconds: float) -> Ran:
        ran = Ran(None, out.text(), err.text(), cut=out.cut or err.cut, killed=self._killed, seconds=seconds)
        if not result.startswith(STARTED):
            if self._killed is None:
                raise CannotRun(err.text().strip()[-500:] or "it ended before it began")
            return ran
        return ran if self._killed else _with_outcome(ran, result[len(STARTED) :], self._code.limits)


def _whole(limits: Limits) -> dict[str, int]:
    return {name: max(1, int(value)) for name, value in asdict(limits).items()}


def _with_outcome(ran: Ran, result: bytes, limits: Limits) -> Ran:
    head, _, body = result.partition(b"\n")
    try:
        told = _Told.model_validate_json(head)
    except ValidationError:
        told = None
    if told is None or not _plausible(told, limits, len(body)):
        return replace(ran, killed=Killed.CRASHED)
    files, at = list[File](), 0
    for name, size in told.files:
        files.append(File(name, body[at : at + size]))
        at += size
    killed = Killed(told.killed) if told.killed else None
    exit = None if killed is not None else told.exit
    return replace(ran, exit=exit, killed=killed, files=tuple(files), left_out=tuple(_shown(told.left_out)))


def _plausible(told: _Told, limits: Limits, size: int) -> bool:
    sizes, names = [size for _, size in told.files], [name for name, _ in told.files]
    return (
        sum(sizes) == size <= limits.total
        and all(one <= limits.file for one in sizes)
        and len(names) == len(set(names)) <= limits.files
        and all(proper(name) for name in names)
    )


def _shown(left_out: Sequence[str]) -> list[str]:
    return [text[: 2 * LONGEST_NAME] for text in left_out[:100] if text.isprintable()]
