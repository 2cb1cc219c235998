"""Spans of requests: where, how and how it ended, and nothing of what was asked."""

import asyncio
from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from offing.storage import runs
from tests.api.conftest import Api


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    yield exporter
    provider.shutdown()


async def test_a_runs_trace_begins_with_its_request(spans: InMemorySpanExporter, api: Api) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    body = {"question": "Why is the sea salt?", "graph": "quiet"}
    created = await api.http.post("/api/v1/runs", json=body, headers={"traceparent": parent})
    (request,) = [s for s in spans.get_finished_spans() if s.name == "POST /api/v1/runs"]
    assert dict(request.attributes or {}) == {
        "http.request.method": "POST",
        "http.route": "/api/v1/runs",
        "http.response.status_code": 201,
    }
    assert request.parent is not None
    assert f"{request.parent.span_id:016x}" == "b7ad6b7169203331"
    async with api.database.transaction(api.tenant) as connection:
        run = await runs.get_run(connection, created.json()["id"])
    context = request.get_span_context()
    assert context is not None
    assert run.traceparent == f"00-{context.trace_id:032x}-{context.span_id:016x}-01"


async def test_no_span_holds_a_token_a_search_or_an_id(spans: InMemorySpanExporter, api: Api) -> None:
    run = await api.submit("A question with canary1 in it?")
    await api.http.get("/api/v1/library/search?q=canary2")
    await api.nobody.get("/login?token=canary3")
    await api.http.get(f"/api/v1/runs/{run}")
    await api.http.get("/no/such/canary4")
    async with asyncio.timeout(30):
        while len(finished := spans.get_finished_spans()) < 5:  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # an answer arrives a little before its span ends
    assert {"GET /api/v1/library/search", "GET /login", "GET /api/v1/runs/{run_id}", "GET"} <= {
        s.name for s in finished
    }
    written = "".join(s.to_json() for s in finished)
    assert "canary" not in written
    assert str(run) not in written
