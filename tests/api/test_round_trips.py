"""How often the API waits for Postgres for a run. The numbers are the same on every machine."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from uuid import UUID

import pytest
from fastapi import FastAPI

from offing.api import dependencies
from offing.api.app import create_app
from offing.core.run import RunStatus
from offing.settings import Settings
from tests.api.conftest import Api, running
from tests.api.sse import following
from tests.workers.wire_trace import TracedDatabase

PREPARED_AFTER = 12
"""After some executions, psycopg has prepared its statements, and the key is cached."""


@asynccontextmanager
async def tracing(
    settings: Settings, app_url: str, other_tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[tuple[Api, TracedDatabase]]:
    """An API whose database is traced. It has one connection, on which every statement is prepared soon."""
    opened: list[TracedDatabase] = []

    def open_traced(url: str, **_: object) -> TracedDatabase:
        opened.append(TracedDatabase(url, max_connections=1))
        return opened[-1]

    monkeypatch.setattr(dependencies, "Database", open_traced)
    app: FastAPI = create_app(settings)
    async with running(app, settings, app_url, other_tenant) as api:
        for _ in range(PREPARED_AFTER):
            await follow_to_the_end(api)
        opened[0].take_trips()
        yield api, opened[0]


async def follow_to_the_end(api: Api) -> None:
    run = await api.submit()
    async with following(api.http, f"/api/v1/runs/{run}/events") as stream:
        await stream.until(lambda s: len(s.seqs) == 1)
        fence = await api.hands.claim(run)
        await api.hands.end(fence)
        await stream.until(lambda s: s.closed)
    assert stream.named("run")[-1].data["status"] == RunStatus.DONE


@pytest.mark.timeout(120)
async def test_a_question_is_stored_in_one_transaction_and_one_round_trip(
    settings: Settings, app_url: str, other_tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with tracing(settings, app_url, other_tenant, monkeypatch) as (api, database):
        await api.submit()
        trips = database.take_trips()
        assert (trips.transactions, trips.round_trips) == (1, 1), trips


@pytest.mark.timeout(120)
async def test_a_run_that_is_followed_to_its_end_takes_four_transactions(
    settings: Settings, app_url: str, other_tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with tracing(settings, app_url, other_tenant, monkeypatch) as (api, database):
        await follow_to_the_end(api)
        trips = database.take_trips()
        assert trips.transactions <= 4, trips
        assert trips.round_trips <= 4, trips


async def test_the_answer_to_a_submission_is_the_run_as_it_is_read_afterwards(api: Api) -> None:
    request = {"question": "Why is the sea salt?", "graph": "quiet", "scope": {"collections": ["a"]}, "seed": 7}
    created = (await api.http.post("/api/v1/runs", json=request)).json()
    read = (await api.http.get(f"/api/v1/runs/{created['id']}")).json()
    assert created == {name: read[name] for name in created}
