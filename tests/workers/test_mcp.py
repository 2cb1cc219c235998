"""A run that was asked with an MCP server, through a real worker: answered, cited, killed in mid-call; and one without."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from offing.core.step import Step, StepKind
from offing.mcp.catalogue import Catalogue
from offing.services.graphs import installed
from offing.services.runs import RunRequest, submit
from offing.storage import reports
from offing.storage.runs import RunRow
from tests.mcp.files import entry, pin_all, written
from tests.mcp.serving import Own, own
from tests.workers import asking_servers
from tests.workers.conftest import Platform, StartWorker

TOKEN = "canary-5e1f00d7a2b94"


@pytest.fixture
async def served() -> AsyncIterator[Own]:
    async with own() as server:
        yield server


async def submitted(platform: Platform, file: Path, servers: tuple[str, ...] = ("own",)) -> RunRow:
    request = RunRequest("What pulls the sea?", "asking", scope={"mcp": list(servers)} if servers else {})
    graphs = installed(asking_servers.GRAPHS)
    made = await submit(
        platform.database, platform.hints, platform.tenant, request, graphs=graphs, servers=Catalogue(file)
    )
    return made.run


async def tools(platform: Platform, run: RunRow) -> list[Step]:
    return [step for step in await platform.steps(run.id) if step.kind is StepKind.TOOL]


async def quotes(platform: Platform, run: RunRow) -> list[tuple[str, str]]:
    async with platform.database.transaction(platform.tenant) as connection:
        report = await reports.latest(connection, run.id)
    assert report is not None
    return [(citation.title, citation.quote) for citation in report.citations]


def worker_with(file: Path, **more: str) -> dict[str, str]:
    return {"OFFING_GRAPHS": asking_servers.GRAPHS, "OFFING_MCP": str(file), **more}


async def test_a_run_asked_with_a_server_cites_what_its_tool_answered(
    platform: Platform, start_worker: StartWorker, served: Own, tmp_path: Path
) -> None:
    file = written(tmp_path, entry(served.url))
    await pin_all(file)
    start_worker(**worker_with(file))
    run = await platform.ended((await submitted(platform, file)).id)
    (step,) = await tools(platform, run)
    assert (step.payload["status"], step.payload["rule"]) == ("ok", "mcp_own_echo: as the operator allows")
    assert await quotes(platform, run) == [("echo (own)", "What pulls the sea?")]
