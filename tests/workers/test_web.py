"""A run that was asked with the web, through a real worker: searched, fetched, cited; and one that was not."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import orjson
import pytest

from offing.core.report_sources import describe_source, list_report_sources
from offing.core.run import RunStatus
from offing.core.step import Step, StepKind
from offing.services.graphs import open_registry
from offing.services.runs import RunRequest, submit_run
from offing.storage import reports
from offing.storage.runs import RunRow
from tests.web.site import Reply, Site, running
from tests.workers import web_graphs
from tests.workers.conftest import Platform, StartWorker

PAGE = b"<html><head><title>Tides</title></head><body><main><p>The moon pulls the sea twice a day.</p></main></body>"


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with running() as site:
        results = {"results": [{"url": f"http://127.0.0.1:{site.port}/tides", "title": "Tides", "content": "The moon"}]}
        site.pages = {
            "/search": Reply(orjson.dumps(results), headers={"Content-Type": "application/json"}),
            "/tides": Reply(PAGE),
        }
        yield site


def reaching(site: Site, **more: str) -> Mapping[str, str]:
    address = f"127.0.0.1:{site.port}"
    return {
        "OFFING_EXTRA_GRAPHS": web_graphs.GRAPHS,
        "SEARXNG_URL": f"http://{address}",
        "OFFING_ALLOWED_FETCH_HOSTS": address,
        "OFFING_SEARCH_ENGINES": "searxng",
        **more,
    }


async def run_question(platform: Platform, scope: Mapping[str, Any], graph: str = "surfing") -> RunRow:
    request = RunRequest("What pulls the sea twice a day?", graph, scope=scope)
    graphs = open_registry(web_graphs.GRAPHS)
    submitted = await submit_run(platform.database, platform.notifier, platform.tenant, request, graphs=graphs)
    return await platform.ended(submitted.run.id)


async def tools(platform: Platform, run: RunRow) -> list[Step]:
    return [step for step in await platform.steps(run.id) if step.kind is StepKind.TOOL_RESULT]


async def test_a_run_asked_with_the_web_cites_the_page_that_it_read(
    platform: Platform, start_worker: StartWorker, site: Site
) -> None:
    start_worker(**reaching(site))
    run = await run_question(platform, {"web": True})
    assert run.status is RunStatus.DONE
    searched, page = await tools(platform, run)
    assert [step.payload["status"] for step in (searched, page)] == ["ok", "ok"]
    assert [step.payload["origin"] for step in (searched, page)] == ["tool:web_search", "web:127.0.0.1"]
    assert page.detail.endswith(" \u00b7 from 127.0.0.1")
    async with platform.database.transaction(platform.tenant) as connection:
        report = (await reports.get_verified_report(connection, run.id)).report
    (citation,) = report.citations
    assert ("The moon pulls the sea" in citation.quote, citation.title) == (True, "Tides")
    (source,) = list_report_sources(report)
    assert describe_source(source).startswith(f"127.0.0.1 \u00b7 http://127.0.0.1:{site.port}/tides \u00b7 retrieved ")


async def test_a_run_that_was_not_asked_with_it_does_not_know_the_web(
    platform: Platform, start_worker: StartWorker, site: Site
) -> None:
    start_worker(**reaching(site))
    run = await run_question(platform, {})
    (only,) = await tools(platform, run)
    assert (only.payload["status"], "no tool" in only.payload["message"]) == ("invalid", True)
    assert site.requests == []


async def test_a_page_that_is_not_public_stays_unread_unless_the_operator_allows_it(
    platform: Platform, start_worker: StartWorker, site: Site
) -> None:
    start_worker(**reaching(site, OFFING_ALLOWED_FETCH_HOSTS=""))
    run = await run_question(platform, {"web": True})
    _, page = await tools(platform, run)
    assert (page.payload["status"], page.payload["message"]) == (
        "failed",
        f"Port {site.port} may not be asked; 80 and 443 may.",
    )
    assert [head.split(" ")[1].partition("?")[0] for head in site.requests] == ["/search"]


@pytest.mark.parametrize("graph", ["agentflow", "iterresearch", "memact", "hiper"])
async def test_a_graph_without_a_model_answers_from_the_web_where_the_library_is_empty(
    platform: Platform, start_worker: StartWorker, site: Site, graph: str
) -> None:
    start_worker(**reaching(site))
    run = await run_question(platform, {"web": True}, graph)
    async with platform.database.transaction(platform.tenant) as connection:
        report = await reports.find_latest_report(connection, run.id)
    assert report is not None
    assert [(c.title, "The moon pulls the sea" in c.quote) for c in report.citations] == [("Tides", True)]
