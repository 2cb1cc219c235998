"""Code as the tools of a run see it: confined, with texts that the run may read put in, and its files kept.

The only home of what may be put in and of how much a run keeps. How code is confined is the sandbox's business.
"""

import asyncio
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Self
from uuid import UUID

from offing.sandbox.choose import Choice, choose, drivers
from offing.sandbox.confined import proper
from offing.sandbox.sandbox import DEFAULT, CannotRun, Code, File, Killed, Ran, Sandbox
from offing.settings import Settings
from offing.storage import run_files
from offing.storage.pool import Connection, Database
from offing.storage.runs import RunRow
from offing.tools.tool import CodeRan, KeptFile, LibraryPort, PutIn

MOST_TEXT = 2_000_000
"""Code points of a source that is put in; a longer one is refused rather than cut."""

MOST_KEPT = 64 << 20
"""Bytes of files that one run keeps."""

FOLDER = "sandbox"
"""Of `OFFING_HOME`: where drivers keep what they compile."""

TEXTS = frozenset((".csv", ".json", ".log", ".md", ".rst", ".tsv", ".txt", ".xml"))
"""Suffixes that name what a source's text is; another source's text gets `.txt` behind its name."""


class Codes:
    """What a process has for running code, until it is closed.

    The sandbox is chosen, by its self-test, before the first code runs.
    """

    def __init__(self, candidates: Sequence[Sandbox], at_once: int | None = None) -> None:
        """`at_once`: pieces of code that may run side by side. None: as many as there are processors."""
        self._candidates = candidates
        self._room = asyncio.Semaphore(at_once or os.cpu_count() or 1)
        self._choosing: asyncio.Task[Choice] | None = None

    async def choice(self) -> Choice:
        """Made once; a call that is cancelled does not spoil it for the next."""
        if self._choosing is None or self._choosing.cancelled() or _failed(self._choosing):
            self._choosing = asyncio.create_task(choose(self._candidates))
        return await asyncio.shield(self._choosing)

    async def run(self, code: Code) -> Ran | str:
        """What came of it, or in a sentence why it was not run."""
        choice = await self.choice()
        if choice.sandbox is None:
            return choice.reason
        try:
            async with self._room:
                return await choice.sandbox.run(code)
        except CannotRun as refused:
            return f"The sandbox {choice.sandbox.name} did not start: {refused.reason}"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._choosing is not None and not self._choosing.done():
            self._choosing.cancel()
            await asyncio.gather(self._choosing, return_exceptions=True)


def _failed(task: asyncio.Task[Choice]) -> bool:
    return task.done() and task.exception() is not None


def codes(settings: Settings) -> Codes:
    """As the operator has set it up."""
    folder, packages, module = settings.home / FOLDER, settings.sandbox_packages, settings.sandbox_wasm
    return Codes(drivers(settings.sandbox, folder, packages=packages, module=module))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a call put in: files, and how the tool tells of them."""

    files: list[File] = field(default_factory=list[File])
    told: list[PutIn] = field(default_factory=list[PutIn])

    def add(self, name: str, data: bytes, artefact: UUID | None) -> None:
        taken = {file.name for file in self.files}
        free = next(n for n in (name, *(f"{k}-{name}" for k in range(2, 100))) if n not in taken)
        self.files.append(File(free, data))
        self.told.append(PutIn(free, artefact))


@dataclass(frozen=True, slots=True)
class RunCode:
    """Code as the tools of one run see it."""

    database: Database
    tenant: UUID
    run_id: UUID
    library: LibraryPort
    codes: Codes

    async def run(self, source: str, names: Sequence[str]) -> CodeRan | str:
        """What came of it; or in a sentence why it was not run."""
        wanted = _Wanted()
        for name in names:
            if problem := await self._put_in(wanted, name):
                return problem
        if sum(len(file.data) for file in wanted.files) > DEFAULT.total // 2:
            return f"The files together are larger than {DEFAULT.total // 2 >> 20} MB. Put in fewer."
        ran = await self.codes.run(Code(source, wanted.files))
        return ran if isinstance(ran, str) else await self._kept(ran, wanted)

    async def _put_in(self, wanted: _Wanted, name: str) -> str:
        """Why it cannot be. Empty: it is there. A file of the run goes before a source that bears its name."""
        async with self.database.transaction(self.tenant) as connection:
            own = await run_files.by_name(connection, self.tenant, self.run_id, name)
        if own is not None:
            wanted.add(own.name, own.body, None)
            return ""
        window = await self.library.read(name, 0, MOST_TEXT)
        if window is None:
            near = ", ".join(repr(one) for one in await self.library.suggest(name, 3))
            return f"There is no file or source {name!r} to put in." + (f" There are {near}." if near else "")
        if window.total > MOST_TEXT:
            return f"{window.name} has more than {MOST_TEXT:,} characters, which is too long to put in."
        wanted.add(_file_name(window.name), window.text.encode(), window.artefact)
        return ""

    async def _kept(self, ran: Ran, wanted: _Wanted) -> CodeRan:
        kept, left_out = list[KeptFile](), list(ran.left_out)
        async with self.database.transaction(self.tenant) as connection:
            room = MOST_KEPT - await run_files.kept_bytes(connection, self.tenant, self.run_id)
            for file in ran.files:
                if (room := room - len(file.data)) < 0:
                    left_out.append(f"{file.name}: the run has kept as much as it may")
                else:
                    kept.append(await self._put(connection, file))
        told = tuple(wanted.told)
        return CodeRan(
            ran.exit, ran.stdout, ran.stderr, ENDINGS[ran.killed], tuple(kept), tuple(left_out), told, ran.cut
        )

    async def _put(self, connection: Connection, file: File) -> KeptFile:
        digest, kind = hashlib.sha256(file.data).digest(), media_type(file.data)
        await run_files.put(
            connection, self.tenant, self.run_id, name=file.name, sha256=digest, media_type=kind, body=file.data
        )
        return KeptFile(file.name, digest.hex(), len(file.data), kind)


def code_for(
    database: Database, tenant: UUID, row: RunRow, library: LibraryPort, codes: Codes | None
) -> RunCode | None:
    """None: the run was not asked with code, or this process runs none."""
    if codes is None or not row.scope.get("code"):
        return None
    return RunCode(database, tenant, row.id, library, codes)


ENDINGS = {
    None: "",
    Killed.TIME: f"It was stopped after {DEFAULT.seconds:g} seconds.",
    Killed.MEMORY: f"It wanted more memory than the {DEFAULT.memory >> 20} MB that it may have.",
    Killed.OUTPUT: "It was stopped because it printed without end.",
    Killed.FILES: f"It was stopped because it wrote too many files, or more than {DEFAULT.total >> 20} MB.",
    Killed.CRASHED: "It crashed, or ended the processes that run it.",
}
"""In a sentence, for a model or a person."""


def media_type(data: bytes) -> str:
    """What the bytes are, of the kinds that are told apart; a name proves nothing."""
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


def _file_name(name: str) -> str:
    """What a source is called in the workspace."""
    found = PurePosixPath(name)
    shown = found.name if found.suffix.lower() in TEXTS else f"{found.name or 'source'}.txt"
    plain = "".join(c if c.isprintable() and c not in '/\\:*?"<>|' else "-" for c in shown)[-120:]
    return plain if proper(plain) else "source.txt"
