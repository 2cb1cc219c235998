"""Control a sandboxed process: send its job, keep a limited part of its output, and end it in time.

The outcome that the process writes is untrusted data.
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

from offing.cancellation import run_to_completion
from offing.sandbox.control_group import ControlGroup
from offing.sandbox.limits import SandboxLimits
from offing.sandbox.runner_script import MAX_NAME_CHARS, STARTED_MARK
from offing.sandbox.sandbox import ExecutionRequest, ExecutionResult, KillReason, SandboxUnavailableError, WorkspaceFile

MAX_OUTPUT_FACTOR = 16
"""The code is stopped when it prints this many times the output that is kept."""

MAX_HEADER_BYTES = 256 * 1024

POLL_SECONDS = 0.05

UsageCheck = Callable[[int], KillReason | None]
"""Returns why the process with this id and its descendants must be stopped, or `None` if they are within the limits."""


@dataclass(frozen=True, slots=True)
class SandboxCommand:
    """How to start the sandbox, and what the code finds in it."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    folder: str
    """The workspace as the runner script sees it."""
    check_usage: UsageCheck
    import_paths: Sequence[str] = ()
    """Additional folders to import from."""
    descriptors: Sequence[int] = ()
    """File descriptors to pass on. They are closed here afterwards."""
    startup_seconds: float = 0.0
    """Seconds for what must happen before the code starts."""


async def run_sandboxed(command: SandboxCommand, request: ExecutionRequest) -> ExecutionResult:
    """Run the job to its end. Raises SandboxUnavailableError if it never started.

    Raises ValueError for a file name that leads out of the workspace.
    """
    for file in request.files:
        if not is_valid_name(file.name):
            raise ValueError(f"{file.name!r} is not the name of a file in the workspace")
    return await _SandboxedRun(command, request).run()


def apply_memory_verdict(result: ExecutionResult, group: ControlGroup | None) -> ExecutionResult:
    """Return the result with the kernel's reason for the end, if a control group has one."""
    if result.kill_reason is None or group is None or not group.ran_out_of_memory():
        return result
    return replace(result, exit_status=None, kill_reason=KillReason.MEMORY)


def is_valid_name(name: str) -> bool:
    """Return whether this is the printable path of a file below a folder."""
    parts = name.split("/")
    return 0 < len(name) <= MAX_NAME_CHARS and name.isprintable() and not {"", ".", ".."} & set(parts)


class _Outcome(BaseModel):
    """The first line of the outcome."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    exit_status: int | None
    kill_reason: Literal["", "time", "memory", "crashed", "files"]
    files: list[tuple[str, NonNegativeInt]]
    skipped: list[str]


@dataclass(slots=True)
class _OutputBuffer:
    """Printed output, up to the limit."""

    data: bytearray = field(default_factory=bytearray)
    truncated: bool = False

    def text(self) -> str:
        return self.data.decode("utf-8", "replace").replace("\0", "\ufffd")


class _SandboxedRun:
    """One process from start to end."""

    def __init__(self, command: SandboxCommand, code: ExecutionRequest) -> None:
        self._command, self._code = command, code
        self._killed: KillReason | None = None
        self._process: Process | None = None

    async def run(self) -> ExecutionResult:
        source, sink = os.pipe()
        with os.fdopen(source, "rb", buffering=0) as reader:  # closed even if we are cancelled before anything reads it
            return await self._run(sink, reader)

    async def _run(self, sink: int, pipe: FileIO) -> ExecutionResult:
        began = time.monotonic()
        try:
            process = self._process = await self._start(sink)
        except OSError as error:
            raise SandboxUnavailableError(f"{self._command.argv[0]}: {error.strerror}") from error
        finally:
            for descriptor in (sink, *self._command.descriptors):
                os.close(descriptor)
        limits = self._code.limits
        out, err, result = _OutputBuffer(), _OutputBuffer(), _OutputBuffer()
        try:
            async with asyncio.TaskGroup() as tasks:
                watching = tasks.create_task(self._watch(process, result))
                await asyncio.gather(
                    self._send_job(process, sink),
                    self._read(
                        process.stdout,
                        out,
                        limits.max_output_bytes,
                        limits.max_output_bytes * MAX_OUTPUT_FACTOR,
                        KillReason.OUTPUT,
                    ),
                    self._read(
                        process.stderr,
                        err,
                        limits.max_output_bytes,
                        limits.max_output_bytes * MAX_OUTPUT_FACTOR,
                        KillReason.OUTPUT,
                    ),
                    self._read_outcome(pipe, result),
                    process.wait(),
                )
                watching.cancel()
        finally:
            self._kill(None)
            await run_to_completion(process.wait())
        return self._build_result(out, err, bytes(result.data), time.monotonic() - began)

    async def _start(self, sink: int) -> Process:
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

    async def _send_job(self, process: Process, sink: int) -> None:
        code, source = self._code, self._code.source.encode("utf-8", "replace")
        job: dict[str, Any] = {
            "folder": self._command.folder,
            "paths": list(self._command.import_paths),
            "files": [[file.name, len(file.data)] for file in code.files],
            "code": len(source),
            "limits": _integer_limits(code.limits),
            "result": sink,
        }
        assert process.stdin is not None
        with suppress(ConnectionError):  # it may have ended already, which its exit status shows
            process.stdin.write(orjson.dumps(job) + b"\n")
            process.stdin.writelines([*(file.data for file in code.files), source])
            await process.stdin.drain()
        process.stdin.close()

    async def _read_outcome(self, pipe: FileIO, buffer: _OutputBuffer) -> None:
        reader, loop = asyncio.StreamReader(), asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        try:
            max_output_bytes = MAX_HEADER_BYTES + self._code.limits.max_total_bytes
            await self._read(reader, buffer, max_output_bytes, max_output_bytes, KillReason.FILES)
        finally:
            transport.close()

    async def _read(
        self,
        reader: asyncio.StreamReader | None,
        buffer: _OutputBuffer,
        max_retained_bytes: int,
        max_bytes: int,
        kill_reason: KillReason,
    ) -> None:
        """Read to the end, keep the first `max_retained_bytes`, and stop the code after more than `max_bytes`."""
        assert reader is not None
        total = 0
        while data := await reader.read(1 << 16):
            total += len(data)
            available = max_retained_bytes - len(buffer.data)
            buffer.data += data[:available]
            buffer.truncated = buffer.truncated or len(data) > available
            if total > max_bytes:
                self._kill(kill_reason)

    async def _watch(self, process: Process, result: _OutputBuffer) -> None:
        """Stop the code when it takes too long or uses too much. Its time starts when it starts."""
        began, seconds = time.monotonic(), self._code.limits.timeout_seconds + self._command.startup_seconds
        while True:
            if result.data and seconds > self._code.limits.timeout_seconds:
                began, seconds = time.monotonic(), self._code.limits.timeout_seconds
            if time.monotonic() > began + seconds:
                return self._kill(KillReason.TIME)
            if (excess := self._command.check_usage(process.pid)) is not None:
                return self._kill(excess)
            await asyncio.sleep(POLL_SECONDS)

    def _kill(self, reason: KillReason | None) -> None:
        """Kill the process and its descendants.

        A `reason` of `None` means that it has ended and nothing is reported.
        """
        assert self._process is not None
        self._killed = self._killed or reason
        with suppress(ProcessLookupError, PermissionError):  # it has ended in the meantime
            if self._process.returncode is None:
                os.killpg(self._process.pid, signal.SIGKILL)

    def _build_result(self, out: _OutputBuffer, err: _OutputBuffer, result: bytes, seconds: float) -> ExecutionResult:
        ran = ExecutionResult(
            None,
            out.text(),
            err.text(),
            truncated=out.truncated or err.truncated,
            kill_reason=self._killed,
            elapsed_seconds=seconds,
        )
        if not result.startswith(STARTED_MARK):
            if self._killed is None:
                raise SandboxUnavailableError(err.text().strip()[-500:] or "it exited before the code started")
            return ran
        return ran if self._killed else _apply_outcome(ran, result[len(STARTED_MARK) :], self._code.limits)


def _integer_limits(limits: SandboxLimits) -> dict[str, int]:
    return {name: max(1, int(value)) for name, value in asdict(limits).items()}


def _apply_outcome(result_so_far: ExecutionResult, result: bytes, limits: SandboxLimits) -> ExecutionResult:
    head, _, body = result.partition(b"\n")
    try:
        outcome = _Outcome.model_validate_json(head)
    except ValidationError:
        outcome = None
    if outcome is None or not _is_plausible(outcome, limits, len(body)):
        return replace(result_so_far, kill_reason=KillReason.CRASHED)
    files, at = list[WorkspaceFile](), 0
    for name, size in outcome.files:
        files.append(WorkspaceFile(name, body[at : at + size]))
        at += size
    kill_reason = KillReason(outcome.kill_reason) if outcome.kill_reason else None
    exit_status = None if kill_reason is not None else outcome.exit_status
    return replace(
        result_so_far,
        exit_status=exit_status,
        kill_reason=kill_reason,
        files=tuple(files),
        skipped=tuple(_printable_names(outcome.skipped)),
    )


def _is_plausible(outcome: _Outcome, limits: SandboxLimits, body_bytes: int) -> bool:
    sizes, names = [body_bytes for _, body_bytes in outcome.files], [name for name, _ in outcome.files]
    return (
        sum(sizes) == body_bytes <= limits.max_total_bytes
        and all(one <= limits.max_file_bytes for one in sizes)
        and len(names) == len(set(names)) <= limits.max_files
        and all(is_valid_name(name) for name in names)
    )


def _printable_names(names: Sequence[str]) -> list[str]:
    return [text[: 2 * MAX_NAME_CHARS] for text in names[:100] if text.isprintable()]
