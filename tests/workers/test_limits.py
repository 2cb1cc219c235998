"""Whatever limit ends a run, there is a partial report, and it says which."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import psycopg
import pytest

from offing.core.model import EngineChoice
from offing.core.run import Budget, RunStatus, StopReason
from offing.core.step import StepKind
from offing.services.runs import RunRequest
from offing.storage import reports
from tests.workers.conftest import Platform, Standing

ENDLESS = 100_000


def endless(budget: Budget, **script: Any) -> RunRequest:
    options = {"answers": [{"word": "w{turn}"}], "delay_ms": 20, **script}
    engines = {"speaker": EngineChoice(engine="scripted", options=options)}
    return RunRequest("Count", "endless", budget=budget, engines=engines)


async def ends_with(platform: Platform, request: RunRequest, reason: StopReason) -> tuple[int, int]:
    """Run it; the turns that it took, and the tokens."""
    return await ended_with(platform, (await platform.submit(request)).id, reason)


async def ended_with(platform: Platform, run: UUID, reason: StopReason) -> tuple[int, int]:
    """Wait for its end; the turns that it took, and the tokens."""
    ended = await platform.ended(run)
    steps = await platform.steps(run)
    async with platform.database.transaction(platform.tenant) as connection:
        report = await reports.latest(connection, run)
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, reason)
    assert [s.kind for s in steps][-2:] == [StepKind.REPORT, StepKind.ENDED]
    assert report is not None
    assert (report.status, report.reason) == ("partial", reason)
    written = [s.text for s in report.sentences()]
    assert written == [s.payload["word"] for s in steps if s.kind is StepKind.MEMORY]
    return len(written), ended.spent.tokens


async def test_turns_run_out(standing: Platform) -> None:
    turns, _ = await ends_with(standing, endless(Budget(turns=5)), StopReason.TURN_LIMIT)
    assert turns == 5


async def test_seconds_run_out(standing: Platform) -> None:
    turns, _ = await ends_with(standing, endless(Budget(turns=ENDLESS, seconds=2)), StopReason.TIME_LIMIT)
    assert 0 < turns <= 100  # of 20 ms each


async def test_tokens_run_out_before_the_call_that_would_exceed_them(standing: Platform) -> None:
    request = endless(Budget(turns=ENDLESS, tokens=35), usage={"prompt_tokens": 6, "completion_tokens": 4})
    assert await ends_with(standing, request, StopReason.TOKEN_LIMIT) == (3, 30)


async def test_the_runs_money_runs_out(standing: Platform) -> None:
    request = endless(Budget(turns=ENDLESS, usd=Decimal("0.045")), usage={"usd": "0.01"})
    turns, _ = await ends_with(standing, request, StopReason.SPEND_LIMIT)
    assert turns == 4


async def test_the_deadline_passes(standing: Platform, standing_servers: Standing) -> None:
    deadline = datetime.now(UTC) + timedelta(hours=1)
    run = await standing.submit(replace(endless(Budget(turns=ENDLESS)), deadline=deadline))
    await standing.until(run.id, lambda row: row.spent.turns > 1)
    with psycopg.connect(standing_servers.owner_url, autocommit=True) as connection:
        connection.execute("update app.run set deadline_at = clock_timestamp() where id = %s", (run.id,))
    turns, _ = await ended_with(standing, run.id, StopReason.TIME_LIMIT)
    assert turns > 0


async def test_the_provider_stays_down(standing: Platform) -> None:
    request = endless(Budget(turns=ENDLESS), fail={"3": {"kind": "overloaded"}})
    turns, _ = await ends_with(standing, request, StopReason.PROVIDER_DOWN)
    assert turns == 2


@pytest.fixture
def capped(standing_servers: Standing) -> Any:
    """A function that caps what the tenant may spend a day; the cap goes with the test."""

    def cap(usd: str | None) -> None:
        with psycopg.connect(standing_servers.owner_url, autocommit=True) as connection:
            connection.execute("delete from app.spend")
            connection.execute("update app.tenant set daily_spend_usd = %s", (usd,))

    yield cap
    cap(None)


async def test_the_tenants_day_runs_out(standing: Platform, standing_servers: Standing, capped: Any) -> None:
    capped("0.035")
    request = endless(Budget(turns=ENDLESS), usage={"usd": "0.01"})
    turns, _ = await ends_with(standing, request, StopReason.TENANT_SPEND_LIMIT)
    with psycopg.connect(standing_servers.owner_url) as connection:
        spent = connection.execute("select reserved, used from app.spend").fetchall()
    assert turns == 3
    assert spent == [(0, Decimal("0.03"))]
