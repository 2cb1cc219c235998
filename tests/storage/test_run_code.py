"""Code of a run over a real database: what it is given, what of it is kept, and what an erasure takes along."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

import pytest

from offing.core.errors import NotFound
from offing.core.step import StepDraft, StepKind
from offing.core.usage import UsageDelta
from offing.sandbox.sandbox import Code, File, Killed, Ran
from offing.services import code as running
from offing.services import files
from offing.services.code import Codes, RunCode, media_type
from offing.services.erasure import erase_source
from offing.services.library import LibraryScope, Upload, library_port
from offing.storage import run_files, runs, steps
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.tools.run_python import RunPython, RunPythonArgs
from offing.tools.tool import CodeRan, ToolFailed, ToolScope
from tests.documents import ingest_uploads
from tests.storage.builders import TERM, claimed

TIDES = b"# Tides\n\nThe moon pulls the sea.\n"


@dataclass
class Told:
    """A sandbox that runs nothing, and says what it is told to."""

    ran: Ran
    given: list[File] = field(default_factory=list[File])
    name: str = "told"

    async def run(self, code: Code) -> Ran:
        self.given = list(code.files)
        return self.ran


class Trusting(Codes):
    """Takes its sandbox as it is; the self-test has its own tests."""

    def __init__(self, sandbox: Told) -> None:
        super().__init__([sandbox])
        self._sandbox = sandbox

    async def run(self, code: Code) -> Ran | str:
        return await self._sandbox.run(code)


async def a_run(pool: Database) -> UUID:
    return (await claimed(pool, LOCAL_TENANT)).fence.run


def port(pool: Database, run: UUID, sandbox: Told, scope: LibraryScope | None = None) -> RunCode:
    library = library_port(pool, LOCAL_TENANT, scope or LibraryScope())
    return RunCode(pool, LOCAL_TENANT, run, library, Trusting(sandbox))


async def ran(code: RunCode, *names: str) -> CodeRan:
    found = await code.run("pass", names)
    assert isinstance(found, CodeRan), found
    return found


def wrote(*written: tuple[str, bytes]) -> Told:
    return Told(Ran(0, "", "", tuple(File(name, data) for name, data in written)))


async def test_sources_are_put_in_by_name_and_told_with_the_text_that_they_are(pool: Database) -> None:
    (taken,) = await ingest_uploads(pool, LOCAL_TENANT, [Upload("moon/tides.md", TIDES)])
    sandbox, run = wrote(), await a_run(pool)
    found = await ran(port(pool, run, sandbox), "tides.md" if taken.name == "tides.md" else taken.name)
    assert [(file.name, b"moon pulls" in file.data) for file in sandbox.given] == [("tides.md", True)]
    ((name, artefact),) = [(one.name, one.artefact) for one in found.put_in]
    assert (name, artefact is not None) == ("tides.md", True)


async def test_what_the_run_may_not_see_is_not_put_in(pool: Database) -> None:
    (taken,) = await ingest_uploads(pool, LOCAL_TENANT, [Upload("tides.md", TIDES)])
    sandbox, run = wrote(), await a_run(pool)
    elsewhere = port(pool, run, sandbox, LibraryScope(sources=(UUID(int=9),)))
    assert str(await elsewhere.run("pass", [taken.name])).startswith("There is no file or source 'tides.md' to put in.")
    assert sandbox.given == []


async def test_a_file_of_an_earlier_call_is_found_by_its_name_and_the_latest_counts(pool: Database) -> None:
    run, again = await a_run(pool), wrote()
    await ran(port(pool, run, wrote(("a.txt", b"old"))))
    await ran(port(pool, run, wrote(("a.txt", b"new"))))
    await ran(port(pool, run, again), "a.txt", "a.txt")
    assert [(file.name, file.data) for file in again.given] == [("a.txt", b"new"), ("2-a.txt", b"new")]
    another = await a_run(pool)
    assert "no file or source 'a.txt'" in str(await port(pool, another, again).run("pass", ["a.txt"]))


async def test_a_run_keeps_only_so_much(pool: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "MOST_KEPT", 5)
    run = await a_run(pool)
    found = await ran(port(pool, run, wrote(("a", b"123"), ("b", b"456"))))
    assert [file.name for file in found.files] == ["a"]
    assert found.left_out == ("b: the run has kept as much as it may",)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x89PNG\r\n\x1a\nrest", "image/png"),
        (b"<svg xmlns='x'></svg>", "image/svg+xml"),
        (b"<?xml version='1.0'?>\n<svg></svg>", "image/svg+xml"),
        (b"<html><svg></svg></html>", "text/plain"),
        (b"a,b\n1,2\n", "text/plain"),
        (b"a\0b", "application/octet-stream"),
        (b"\xff\xfe", "application/octet-stream"),
        (b"", "text/plain"),
    ],
)
def test_a_files_kind_is_told_by_its_bytes(data: bytes, kind: str) -> None:
    assert media_type(data) == kind


async def test_erasing_a_source_takes_along_what_code_of_its_readers_wrote(pool: Database) -> None:
    (taken,) = await ingest_uploads(pool, LOCAL_TENANT, [Upload("tides.md", TIDES)])
    assert taken.source is not None
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    found = await ran(port(pool, fence.run, wrote(("copy.txt", TIDES))), taken.name)
    payload = {"content": {"put_in": [{"name": one.name, "artefact": str(one.artefact)} for one in found.put_in]}}
    async with pool.transaction(LOCAL_TENANT) as connection:
        await steps.append(connection, fence, TERM, [StepDraft(StepKind.TOOL, "copy", payload)], UsageDelta())
        assert len(await run_files.listed(connection, LOCAL_TENANT, fence.run)) == 1
        await connection.execute("update run set status = 'done', ended_at = now() where id = %s", (fence.run,))
    await erase_source(pool, LOCAL_TENANT, taken.source)
    assert await files.listed(pool, LOCAL_TENANT, fence.run) == []


async def test_another_tenant_finds_neither_run_nor_file(pool: Database, other_tenant: UUID) -> None:
    run = await a_run(pool)
    (file,) = (await ran(port(pool, run, wrote(("a", b"1"))))).files
    with pytest.raises(NotFound):
        await files.one(pool, other_tenant, run, file.sha256)
    with pytest.raises(NotFound):
        await files.listed(pool, other_tenant, run)
    async with pool.transaction(other_tenant) as connection:
        assert await run_files.by_name(connection, LOCAL_TENANT, run, "a") is None


def scope(code: RunCode | None, run: UUID) -> ToolScope:
    no_library: Sequence[object] = ()
    return ToolScope(LOCAL_TENANT, run, "key", no_library, code=code)  # pyright: ignore[reportArgumentType]


async def test_the_tool_shows_both_ends_of_a_long_text_and_why_code_was_stopped(pool: Database) -> None:
    run = await a_run(pool)
    long = Told(Ran(None, "a" * 20_000 + "z" * 20_000, "", killed=Killed.TIME))
    output = await RunPython()(RunPythonArgs(code="import os\n# why\nx = 1\n"), scope(port(pool, run, long), run))
    assert (output.title, output.detail) == ("x = 1", "It was stopped after 30 seconds.")
    shown = str(output.content["stdout"])
    assert (shown[:3], shown[-3:], "28,000 characters left out" in shown) == ("aaa", "zzz", True)
    assert (output.content["exit"], output.content["error"]) == (None, "It was stopped after 30 seconds.")
    assert output.spans == ()
    assert RunPython.spec.untrusted


async def test_the_tool_fails_in_words_where_the_run_may_run_no_code(pool: Database) -> None:
    with pytest.raises(ToolFailed, match="may not run code"):
        await RunPython()(RunPythonArgs(code="1"), scope(None, await a_run(pool)))


async def test_a_run_that_is_gone_keeps_nothing(pool: Database) -> None:
    run = await a_run(pool)
    await ran(port(pool, run, wrote(("a", b"1"))))
    async with pool.transaction(LOCAL_TENANT) as connection:
        assert (await runs.by_id(connection, run)).id == run
        assert await run_files.kept_bytes(connection, LOCAL_TENANT, run) == 1
        await run_files.drop(connection, LOCAL_TENANT, run)
        assert await run_files.kept_bytes(connection, LOCAL_TENANT, run) == 0
