"""A provider over the wire, who answers differently every time and is paid for each request, while faults strike."""

import asyncio
import re
import signal
from collections.abc import AsyncIterator
from decimal import Decimal
from itertools import count

import pytest

from offing.core.model import EngineChoice
from offing.core.run import Budget
from offing.services.graphs import installed
from offing.services.runs import RunRequest, submit
from offing.storage.migrate import LOCAL_TENANT
from tests.chaos import checker
from tests.chaos.stage import Stage
from tests.chaos.trial import TURNS, Client, Moment, Subject, Trial, words_kept
from tests.wire.replies import Completion, Slow
from tests.wire.server import Received, WireServer
from tests.workers.processes import ALL_GRAPHS

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]

MODEL = "openai/gpt-4o-mini"
"""One whose price is known, so that money is set aside and booked."""


def turn_of(request: Received) -> int:
    found = re.search(r"turn (\d+)", str(request.body["messages"]))
    assert found, request.body
    return int(found[1])


@pytest.fixture
async def provider() -> AsyncIterator[WireServer]:
    """Answers each request with a word that it never used before."""
    numbers = count(1)

    def respond(request: Received) -> Slow:
        return Slow(Completion(f'{{"word": "w{turn_of(request)}-{next(numbers)}"}}'), 0.03)

    async with WireServer(respond) as server:
        yield server


async def begun(client: Client, provider: WireServer, moment: Moment) -> Trial:
    trial = Trial(client.stage, moment)
    engines = {
        "speaker": EngineChoice(
            engine="litellm", model=MODEL, api_base=provider.url, max_tokens=50, options={"form": "text"}
        )
    }
    request = RunRequest("Count", "counting", budget=Budget(turns=TURNS), engines=engines)
    made = await submit(client.database, client.hints, LOCAL_TENANT, request, graphs=installed(ALL_GRAPHS))
    trial.subjects = [Subject("varying", made.run.id, 0)]
    return trial


async def until_asked(stage: Stage, provider: WireServer, requests: int) -> None:
    await asyncio.to_thread(stage.until, f"{requests} requests", lambda: len(provider.requests) >= requests, 40)


async def expect_paid_once(trial: Trial, provider: WireServer, losses: int) -> None:
    stage, (subject,) = trial.stage, trial.subjects
    await asyncio.to_thread(trial.until_ended)
    rows = stage.facts(subject.run)
    asked = [checker.Asked("speaker", turn_of(r), 0) for r in provider.requests]
    wrong = [*checker.violations(rows), *trial.found_in_mid_run(subject, rows)]
    wrong += [*checker.one_tool_call_a_turn(rows, TURNS), *words_kept(rows)]
    wrong += checker.paid_once(rows, asked, losses)
    assert not wrong, "\n".join([str(trial.moment), *wrong])
    assert rows.run.usd > 0
    assert rows.run.tokens == 18 * TURNS
    ((reserved, used),) = stage.rows("select reserved, used from app.spend")
    paid = sum(u for (u,) in stage.rows("select usd from app.run"))
    assert reserved == 0, trial.moment
    assert paid <= used <= paid + Decimal("0.001"), trial.moment


async def test_worker_killed_while_a_provider_answers(
    stage: Stage, client: Client, provider: WireServer, rare_moment: Moment
) -> None:
    worker = await asyncio.to_thread(stage.lone_worker)
    trial = await begun(client, provider, rare_moment)
    spare = stage.spawn_worker()
    await until_asked(stage, provider, rare_moment.dice.randint(3, 50))
    trial.strike()
    worker.kill()
    await asyncio.to_thread(spare.await_ready)
    await expect_paid_once(trial, provider, losses=1)


async def test_postgres_killed_while_a_provider_answers(
    stage: Stage, client: Client, provider: WireServer, rare_moment: Moment
) -> None:
    await asyncio.to_thread(stage.lone_worker)
    trial = await begun(client, provider, rare_moment)
    await until_asked(stage, provider, rare_moment.dice.randint(3, 50))
    trial.strike()
    await asyncio.to_thread(stage.kill_server, "postgres", signal.SIGKILL)
    await asyncio.to_thread(stage.restart, "postgres")
    await expect_paid_once(trial, provider, losses=1)
