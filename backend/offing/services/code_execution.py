"""Execute code for the tools of a run.

The code runs in a sandbox, with input files that the run may read, and its output files are stored.
"""

import asyncio
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Self
from uuid import UUID

from offing.sandbox.driver_choice import DriverChoice, choose_driver, list_drivers
from offing.sandbox.limits import DEFAULT_LIMITS
from offing.sandbox.sandbox import (
    ExecutionRequest,
    ExecutionResult,
    KillReason,
    Sandbox,
    SandboxUnavailableError,
    WorkspaceFile,
)
from offing.sandbox.sandboxed_process import is_valid_name
from offing.settings import Settings
from offing.storage import run_files
from offing.storage.pool import Connection, Database
from offing.storage.runs import RunRow
from offing.tools.tool import CodeOutput, InputFile, LibraryAccess, OutputFile

MAX_INPUT_CHARS = 2_000_000
"""Maximum code points of a source that is passed as input. A longer one is rejected rather than truncated."""

MAX_OUTPUT_FILE_BYTES = 64 << 20
"""Maximum bytes of files that are stored for one run."""

SANDBOX_DIR = "sandbox"
"""Folder in the data directory where drivers store what they compile."""

TEXT_SUFFIXES = frozenset((".csv", ".json", ".log", ".md", ".rst", ".tsv", ".txt", ".xml"))
"""Suffixes that fit the text of a source. The text of any other source gets `.txt` after its name."""


class CodeRunner:
    """Runs code for a process until it is closed.

    The sandbox driver is chosen by its self-test before the first code runs.
    """

    def __init__(self, candidates: Sequence[Sandbox], max_concurrent: int | None = None) -> None:
        """Run code with the first of `candidates` that works.

        `max_concurrent` is the maximum number of concurrent executions; `None` means the number of processors.
        """
        self._candidates = candidates
        self._slots = asyncio.Semaphore(max_concurrent or os.cpu_count() or 1)
        self._choice_task: asyncio.Task[DriverChoice] | None = None

    async def choose_driver(self) -> DriverChoice:
        """Return the chosen driver. It is chosen once; a cancelled call does not affect the next one."""
        if self._choice_task is None or self._choice_task.cancelled() or _has_failed(self._choice_task):
            self._choice_task = asyncio.create_task(choose_driver(self._candidates))
        return await asyncio.shield(self._choice_task)

    async def run(self, code: ExecutionRequest) -> ExecutionResult | str:
        """Return the result, or a sentence that says why the code was not run."""
        choice = await self.choose_driver()
        if choice.sandbox is None:
            return choice.reason
        try:
            async with self._slots:
                return await choice.sandbox.run(code)
        except SandboxUnavailableError as error:
            return f"The sandbox {choice.sandbox.name} did not start: {error.reason}"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._choice_task is not None and not self._choice_task.done():
            self._choice_task.cancel()
            await asyncio.gather(self._choice_task, return_exceptions=True)


def _has_failed(task: asyncio.Task[DriverChoice]) -> bool:
    return task.done() and task.exception() is not None


def open_code_runner(settings: Settings) -> CodeRunner:
    """Return a code runner with the operator's settings."""
    folder, packages, module = settings.home / SANDBOX_DIR, settings.sandbox_packages, settings.sandbox_wasm
    return CodeRunner(list_drivers(settings.sandbox, folder, packages=packages, module=module))


@dataclass(frozen=True, slots=True)
class _InputFiles:
    """The input files of a call, and their descriptions for the tool."""

    files: list[WorkspaceFile] = field(default_factory=list[WorkspaceFile])
    descriptions: list[InputFile] = field(default_factory=list[InputFile])

    def add(self, name: str, data: bytes, text_id: UUID | None) -> None:
        names = {file.name for file in self.files}
        free = next(n for n in (name, *(f"{k}-{name}" for k in range(2, 100))) if n not in names)
        self.files.append(WorkspaceFile(free, data))
        self.descriptions.append(InputFile(free, text_id))


@dataclass(frozen=True, slots=True)
class RunSandbox:
    """Code execution as the tools of one run see it."""

    database: Database
    tenant_id: UUID
    run_id: UUID
    library: LibraryAccess
    code_runner: CodeRunner

    async def run(self, source: str, input_names: Sequence[str]) -> CodeOutput | str:
        """Return the result, or a sentence that says why the code was not run."""
        input_files = _InputFiles()
        for name in input_names:
            if problem := await self._add_input(input_files, name):
                return problem
        if sum(len(file.data) for file in input_files.files) > DEFAULT_LIMITS.max_total_bytes // 2:
            return f"The files together are larger than {DEFAULT_LIMITS.max_total_bytes // 2 >> 20} MB. Put in fewer."
        ran = await self.code_runner.run(ExecutionRequest(source, input_files.files))
        return ran if isinstance(ran, str) else await self._store_outputs(ran, input_files)

    async def _add_input(self, inputs: _InputFiles, name: str) -> str:
        """Add a file to the inputs. Returns why this is impossible, or an empty text.

        A file of the run takes precedence over a source with the same name.
        """
        async with self.database.transaction(self.tenant_id) as connection:
            own = await run_files.find_file_by_name(connection, self.tenant_id, self.run_id, name)
        if own is not None:
            inputs.add(own.name, own.body, None)
            return ""
        window = await self.library.read(name, 0, MAX_INPUT_CHARS)
        if window is None:
            near = ", ".join(repr(one) for one in await self.library.suggest(name, 3))
            return f"There is no file or source {name!r} to put in." + (f" There are {near}." if near else "")
        if window.total_chars > MAX_INPUT_CHARS:
            return f"{window.name} has more than {MAX_INPUT_CHARS:,} characters, which is too long to put in."
        inputs.add(_input_file_name(window.name), window.text.encode(), window.text_id)
        return ""

    async def _store_outputs(self, result: ExecutionResult, inputs: _InputFiles) -> CodeOutput:
        stored, left_out = list[OutputFile](), list(result.skipped)
        async with self.database.transaction(self.tenant_id) as connection:
            remaining_bytes = MAX_OUTPUT_FILE_BYTES - await run_files.get_total_bytes(
                connection, self.tenant_id, self.run_id
            )
            for file in result.files:
                if (remaining_bytes := remaining_bytes - len(file.data)) < 0:
                    left_out.append(f"{file.name}: the run has kept as much as it may")
                else:
                    stored.append(await self._store_file(connection, file))
        descriptions = tuple(inputs.descriptions)
        return CodeOutput(
            result.exit_status,
            result.stdout,
            result.stderr,
            KILL_MESSAGES[result.kill_reason],
            tuple(stored),
            tuple(left_out),
            descriptions,
            result.truncated,
        )

    async def _store_file(self, connection: Connection, file: WorkspaceFile) -> OutputFile:
        digest, kind = hashlib.sha256(file.data).digest(), detect_media_type(file.data)
        await run_files.upsert_file(
            connection, self.tenant_id, self.run_id, name=file.name, sha256=digest, media_type=kind, body=file.data
        )
        return OutputFile(file.name, digest.hex(), len(file.data), kind)


def build_run_sandbox(
    database: Database, tenant_id: UUID, row: RunRow, library: LibraryAccess, code_runner: CodeRunner | None
) -> RunSandbox | None:
    """Return the sandbox of a run, or `None` if its scope has no code or this process runs none."""
    if code_runner is None or not row.scope.get("code"):
        return None
    return RunSandbox(database, tenant_id, row.id, library, code_runner)


KILL_MESSAGES = {
    None: "",
    KillReason.TIME: f"It was stopped after {DEFAULT_LIMITS.timeout_seconds:g} seconds.",
    KillReason.MEMORY: f"It wanted more memory than the {DEFAULT_LIMITS.max_memory_bytes >> 20} MB that it may have.",
    KillReason.OUTPUT: "It was stopped because it printed without end.",
    KillReason.FILES: (
        f"It was stopped because it wrote too many files, or more than {DEFAULT_LIMITS.max_total_bytes >> 20} MB."
    ),
    KillReason.CRASHED: "It crashed, or ended the processes that run it.",
}
"""Sentences for a model or a person."""


def detect_media_type(data: bytes) -> str:
    """Return the media type of the bytes, of those that are distinguished.

    File names are ignored because they prove nothing.
    """
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return "application/octet-stream"
    if "\0" in text:
        return "application/octet-stream"
    begin = text[:1000].lstrip().lower()
    return "image/svg+xml" if begin.startswith(("<?xml", "<!doctype svg", "<svg")) and "<svg" in begin else "text/plain"


def _input_file_name(name: str) -> str:
    """Return the file name of a source in the workspace."""
    path = PurePosixPath(name)
    file_name = path.name if path.suffix.lower() in TEXT_SUFFIXES else f"{path.name or 'source'}.txt"
    plain = "".join(c if c.isprintable() and c not in '/\\:*?"<>|' else "-" for c in file_name)[-120:]
    return plain if is_valid_name(plain) else "source.txt"
