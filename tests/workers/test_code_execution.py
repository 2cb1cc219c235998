"""A run that was asked with code, through a real worker and a real sandbox; one that was not; and a worker without."""

from collections.abc import Mapping
from typing import Any

from offing.core.run import RunStatus
from offing.core.step import Step, StepKind
from offing.services.graphs import open_registry
from offing.services.ingestion import Upload
from offing.services.runs import RunRequest, submit_run
from offing.storage import run_files
from offing.storage.runs import RunRow
from tests.documents import ingest_uploads
from tests.workers import code_graph
from tests.workers.conftest import Platform, StartWorker

PATIENCE = 90.0
"""Seconds: the first code waits for the self-test, on a machine that may be busy."""

TIDES = b"low,3\n\nhigh,39\n"


async def run_code(platform: Platform, scope: Mapping[str, Any]) -> RunRow:
    request, graphs = RunRequest("How high is it?", "computing", scope=scope), open_registry(code_graph.GRAPHS)
    submitted = await submit_run(platform.database, platform.notifier, platform.tenant, request, graphs=graphs)
    return await platform.ended(submitted.run.id, PATIENCE)


async def results(platform: Platform, run: RunRow) -> list[Mapping[str, Any]]:
    steps: list[Step] = [step for step in await platform.steps(run.id) if step.kind is StepKind.TOOL_RESULT]
    return [step.payload for step in steps]


async def test_a_run_asked_with_code_computes_from_a_source_and_keeps_the_picture_that_it_drew(
    platform: Platform, start_worker: StartWorker
) -> None:
    start_worker(OFFING_EXTRA_GRAPHS=code_graph.GRAPHS)
    await ingest_uploads(platform.database, platform.tenant, [Upload("tides.txt", TIDES)])
    run = await run_code(platform, {"code": True})
    assert run.status is RunStatus.DONE
    first, second = await results(platform, run)
    assert (first["status"], first["message"]) == ("ok", "")
    content = first["content"]
    assert (content["exit"], content["stdout"], content["error"]) == (0, "42\n", "")
    ((name, kind),) = [(file["name"], file["kind"]) for file in content["files"]]
    assert (name, kind) == ("plot.png", "image/png")
    assert content["put_in"][0]["name"] == "tides.txt"
    async with platform.database.transaction(platform.tenant) as connection:
        (stored,) = await run_files.list_files_of_run(connection, platform.tenant, run.id)
        body = await run_files.find_file_by_hash(
            connection, platform.tenant, run.id, bytes.fromhex(content["files"][0]["sha256"])
        )
    assert body is not None
    assert (stored.name, stored.size_bytes, body.body[:4]) == ("plot.png", len(body.body), b"\x89PNG")
    assert second["content"]["stdout"] == f"{stored.size_bytes}\n"


async def test_a_run_that_was_not_asked_with_it_does_not_know_code(
    platform: Platform, start_worker: StartWorker
) -> None:
    start_worker(OFFING_EXTRA_GRAPHS=code_graph.GRAPHS)
    run = await run_code(platform, {})
    for result in await results(platform, run):
        assert (result["status"], "no tool" in result["message"]) == ("invalid", True)


async def test_where_no_sandbox_may_be_used_nothing_runs_and_the_step_says_why(
    platform: Platform, start_worker: StartWorker
) -> None:
    start_worker(OFFING_EXTRA_GRAPHS=code_graph.GRAPHS, OFFING_SANDBOX="off")
    await ingest_uploads(platform.database, platform.tenant, [Upload("tides.txt", TIDES)])
    run = await run_code(platform, {"code": True})
    first, _ = await results(platform, run)
    assert (first["status"], first["message"]) == ("failed", "Running code is turned off here by OFFING_SANDBOX.")
    async with platform.database.transaction(platform.tenant) as connection:
        assert await run_files.list_files_of_run(connection, platform.tenant, run.id) == []
