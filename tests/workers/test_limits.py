"""Whatever limit ends a run, there is a partial report, and it says which."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import psycopg
import pytest

from offing.core.model import EngineConfig
from offing.core.run import Budget, RunStatus, StopReason
from offing.core.step import StepKind
from offing.services.runs import RunRequest
from offing.storage import reports
from tests.workers.conftest import Platform, SharedServers

ENDLESS = 100_000


def endless(budget: Budget, **script: Any) -> RunRequest:
    options = {"answers": [{"word": "w{turn}"}], "delay_ms": 20, **script}
    engines = {"speaker": EngineConfig(engine="scripted", options=options)}
    return RunRequest("Count", "endless", budget=budget, engines=engines)


async def ends_with(platform: Platform, request: RunRequest, reason: StopReason) -> tuple[int, int]:
    """Run it; the turns that it took, and the tokens."""
    return await ended_with(platform, (await platform.submit(request)).id, reason)


async def ended_with(platform: Platform, run_id: UUID, reason: StopReason) -> tuple[int, int]:
    """Wait for its end; the turns that it took, and the tokens."""
    ended = await platform.ended(run_id)
    steps = await platform.steps(run_id)
    async with platform.database.transaction(platform.tenant) as connection:
        report = await reports.find_latest_report(connection, run_id)
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, reason)
    assert [s.kind for s in steps][-2:] == [StepKind.REPORT, StepKind.ENDED]
    assert report is not None
    assert (report.status, report.stop_reason) == ("partial", reason)
    written = [s.text for s in report.sentences()]
    assert written == [s.payload["word"] for s in steps if s.kind is StepKind.MEMORY]
    return len(written), ended.usage.tokens


async def test_turns_run_out(shared_platform: Platform) -> None:
    turns, _ = await ends_with(shared_platform, endless(Budget(max_turns=5)), StopReason.TURN_LIMIT)
    assert turns == 5


async def test_seconds_run_out(shared_platform: Platform) -> None:
    turns, _ = await ends_with(
        shared_platform, endless(Budget(max_turns=ENDLESS, max_seconds=2)), StopReason.TIME_LIMIT
    )
    assert 0 < turns <= 100  # of 20 ms each


async def test_tokens_run_out_before_the_call_that_would_exceed_them(shared_platform: Platform) -> None:
    request = endless(Budget(max_turns=ENDLESS, max_tokens=35), usage={"prompt_tokens": 6, "completion_tokens": 4})
    assert await ends_with(shared_platform, request, StopReason.TOKEN_LIMIT) == (3, 30)


async def test_the_runs_money_runs_out(shared_platform: Platform) -> None:
    request = endless(Budget(max_turns=ENDLESS, max_cost_usd=Decimal("0.045")), usage={"cost_usd": "0.01"})
    turns, _ = await ends_with(shared_platform, request, StopReason.SPEND_LIMIT)
    assert turns == 4


async def test_the_deadline_passes(shared_platform: Platform, shared_servers: SharedServers) -> None:
    deadline = datetime.now(UTC) + timedelta(hours=1)
    run = await shared_platform.submit(replace(endless(Budget(max_turns=ENDLESS)), deadline=deadline))
    await shared_platform.until(run.id, lambda row: row.usage.turns > 1)
    with psycopg.connect(shared_servers.owner_url, autocommit=True) as connection:
        connection.execute("update app.run set deadline_at = clock_timestamp() where id = %s", (run.id,))
    turns, _ = await ended_with(shared_platform, run.id, StopReason.TIME_LIMIT)
    assert turns > 0


async def test_the_provider_stays_down(shared_platform: Platform) -> None:
    request = endless(Budget(max_turns=ENDLESS), fail={"3": {"kind": "overloaded"}})
    turns, _ = await ends_with(shared_platform, request, StopReason.PROVIDER_DOWN)
    assert turns == 2


@pytest.fixture
def capped(shared_servers: SharedServers) -> Any:
    """A function that caps what the tenant may spend a day; the cap goes with the test."""

    def cap(usd: str | None) -> None:
        with psycopg.connect(shared_servers.owner_url, autocommit=True) as connection:
            connection.execute("delete from app.daily_spend")
            connection.execute("update app.tenant set max_daily_spend_usd = %s", (usd,))

    yield cap
    cap(None)


async def test_the_tenants_day_runs_out(shared_platform: Platform, shared_servers: SharedServers, capped: Any) -> None:
    capped("0.035")
    request = endless(Budget(max_turns=ENDLESS), usage={"cost_usd": "0.01"})
    turns, _ = await ends_with(shared_platform, request, StopReason.TENANT_SPEND_LIMIT)
    with psycopg.connect(shared_servers.owner_url) as connection:
        spent = connection.execute("select reserved_usd, used_usd from app.daily_spend").fetchall()
    assert turns == 3
    assert spent == [(0, Decimal("0.03"))]
