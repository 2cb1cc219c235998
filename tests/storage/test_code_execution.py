"""Code of a run over a real database: what it is given, what of it is kept, and what an erasure takes along."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

import pytest

from offing.core.errors import NotFound
from offing.core.step import StepDraft, StepKind
from offing.core.usage import UsageDelta
from offing.sandbox.sandbox import ExecutionRequest, ExecutionResult, KillReason, WorkspaceFile
from offing.services import code_execution as running
from offing.services import run_files as run_file_service
from offing.services.code_execution import CodeRunner, RunSandbox, detect_media_type
from offing.services.erasure import erase_source
from offing.services.ingestion import Upload
from offing.services.library import LibraryScope, build_library_access
from offing.storage import run_files, runs, steps
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.tools.run_python import RunPython, RunPythonArgs
from offing.tools.tool import CodeOutput, ToolFailedError, ToolScope
from tests.documents import ingest_uploads
from tests.storage.builders import TERM, claimed

TIDES = b"# Tides\n\nThe moon pulls the sea.\n"


@dataclass
class RecordingSandbox:
    """A sandbox that runs nothing, and says what it is told to."""

    ran: ExecutionResult
    received_files: list[WorkspaceFile] = field(default_factory=list[WorkspaceFile])
    name: str = "told"

    async def run(self, request: ExecutionRequest) -> ExecutionResult:
        self.received_files = list(request.files)
        return self.ran


class Trusting(CodeRunner):
    """Takes its sandbox without a self-test, which has its own tests."""

    def __init__(self, sandbox: RecordingSandbox) -> None:
        super().__init__([sandbox])
        self._sandbox = sandbox

    async def run(self, code: ExecutionRequest) -> ExecutionResult | str:
        return await self._sandbox.run(code)


async def a_run(pool: Database) -> UUID:
    return (await claimed(pool, LOCAL_TENANT)).fence.run_id


def port(pool: Database, run_id: UUID, sandbox: RecordingSandbox, scope: LibraryScope | None = None) -> RunSandbox:
    library = build_library_access(pool, LOCAL_TENANT, scope or LibraryScope())
    return RunSandbox(pool, LOCAL_TENANT, run_id, library, Trusting(sandbox))


async def ran(code: RunSandbox, *names: str) -> CodeOutput:
    result = await code.run("pass", names)
    assert isinstance(result, CodeOutput), result
    return result


def wrote(*written: tuple[str, bytes]) -> RecordingSandbox:
    return RecordingSandbox(ExecutionResult(0, "", "", tuple(WorkspaceFile(name, data) for name, data in written)))


async def test_sources_are_passed_by_name_and_reported_with_their_text_id(pool: Database) -> None:
    (taken,) = await ingest_uploads(pool, LOCAL_TENANT, [Upload("moon/tides.md", TIDES)])
    sandbox, run = wrote(), await a_run(pool)
    result = await ran(port(pool, run, sandbox), "tides.md" if taken.name == "tides.md" else taken.name)
    assert [(file.name, b"moon pulls" in file.data) for file in sandbox.received_files] == [("tides.md", True)]
    ((name, text_id),) = [(one.name, one.text_id) for one in result.inputs]
    assert (name, text_id is not None) == ("tides.md", True)


async def test_what_the_run_may_not_see_is_not_passed(pool: Database) -> None:
    (taken,) = await ingest_uploads(pool, LOCAL_TENANT, [Upload("tides.md", TIDES)])
    sandbox, run = wrote(), await a_run(pool)
    elsewhere = port(pool, run, sandbox, LibraryScope(sources=(UUID(int=9),)))
    assert str(await elsewhere.run("pass", [taken.name])).startswith("There is no file or source 'tides.md' to put in.")
    assert sandbox.received_files == []


async def test_a_file_of_an_earlier_call_is_found_by_its_name_and_the_latest_counts(pool: Database) -> None:
    run, again = await a_run(pool), wrote()
    await ran(port(pool, run, wrote(("a.txt", b"old"))))
    await ran(port(pool, run, wrote(("a.txt", b"new"))))
    await ran(port(pool, run, again), "a.txt", "a.txt")
    assert [(file.name, file.data) for file in again.received_files] == [("a.txt", b"new"), ("2-a.txt", b"new")]
    another = await a_run(pool)
    assert "no file or source 'a.txt'" in str(await port(pool, another, again).run("pass", ["a.txt"]))


async def test_a_run_keeps_only_so_much(pool: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "MAX_OUTPUT_FILE_BYTES", 5)
    run = await a_run(pool)
    result = await ran(port(pool, run, wrote(("a", b"123"), ("b", b"456"))))
    assert [file.name for file in result.files] == ["a"]
    assert result.skipped == ("b: the run has kept as much as it may",)


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
    assert detect_media_type(data) == kind


async def test_erasing_a_source_takes_along_what_code_of_its_readers_wrote(pool: Database) -> None:
    (taken,) = await ingest_uploads(pool, LOCAL_TENANT, [Upload("tides.md", TIDES)])
    assert taken.source_id is not None
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    result = await ran(port(pool, fence.run_id, wrote(("copy.txt", TIDES))), taken.name)
    payload = {"content": {"put_in": [{"name": one.name, "text_id": str(one.text_id)} for one in result.inputs]}}
    async with pool.transaction(LOCAL_TENANT) as connection:
        await steps.append_steps(
            connection, fence, TERM, [StepDraft(StepKind.TOOL_RESULT, "copy", payload)], UsageDelta()
        )
        assert len(await run_files.list_files_of_run(connection, LOCAL_TENANT, fence.run_id)) == 1
        await connection.execute("update run set status = 'done', ended_at = now() where id = %s", (fence.run_id,))
    await erase_source(pool, LOCAL_TENANT, taken.source_id)
    assert await run_file_service.list_files(pool, LOCAL_TENANT, fence.run_id) == []


async def test_another_tenant_finds_neither_run_nor_file(pool: Database, other_tenant: UUID) -> None:
    run = await a_run(pool)
    (file,) = (await ran(port(pool, run, wrote(("a", b"1"))))).files
    with pytest.raises(NotFound):
        await run_file_service.get_file(pool, other_tenant, run, file.sha256)
    with pytest.raises(NotFound):
        await run_file_service.list_files(pool, other_tenant, run)
    async with pool.transaction(other_tenant) as connection:
        assert await run_files.find_file_by_name(connection, LOCAL_TENANT, run, "a") is None


def scope(code: RunSandbox | None, run_id: UUID) -> ToolScope:
    no_library: Sequence[object] = ()
    return ToolScope(LOCAL_TENANT, run_id, "key", no_library, code=code)  # pyright: ignore[reportArgumentType]


async def test_the_tool_shows_both_ends_of_a_long_text_and_why_code_was_stopped(pool: Database) -> None:
    run = await a_run(pool)
    long = RecordingSandbox(ExecutionResult(None, "a" * 20_000 + "z" * 20_000, "", kill_reason=KillReason.TIME))
    output = await RunPython()(RunPythonArgs(code="import os\n# why\nx = 1\n"), scope(port(pool, run, long), run))
    assert (output.title, output.detail) == ("x = 1", "It was stopped after 30 seconds.")
    rendered = str(output.content["stdout"])
    assert (rendered[:3], rendered[-3:], "28,000 characters left out" in rendered) == ("aaa", "zzz", True)
    assert (output.content["exit"], output.content["error"]) == (None, "It was stopped after 30 seconds.")
    assert output.spans == ()
    assert RunPython.spec.untrusted


async def test_the_tool_fails_in_words_where_the_run_may_run_no_code(pool: Database) -> None:
    with pytest.raises(ToolFailedError, match="may not run code"):
        await RunPython()(RunPythonArgs(code="1"), scope(None, await a_run(pool)))


async def test_a_deleted_run_keeps_nothing(pool: Database) -> None:
    run = await a_run(pool)
    await ran(port(pool, run, wrote(("a", b"1"))))
    async with pool.transaction(LOCAL_TENANT) as connection:
        assert (await runs.get_run(connection, run)).id == run
        assert await run_files.get_total_bytes(connection, LOCAL_TENANT, run) == 1
        await run_files.delete_files(connection, LOCAL_TENANT, run)
        assert await run_files.get_total_bytes(connection, LOCAL_TENANT, run) == 0
