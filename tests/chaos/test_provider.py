"""A provider over the wire, who answers differently every time and is paid for each request, while faults strike."""

import asyncio
import re
import signal
from collections.abc import AsyncIterator
from decimal import Decimal
from itertools import count

import pytest

from offing.core.model import EngineConfig
from offing.core.run import Budget
from offing.services.graphs import open_registry
from offing.services.runs import RunRequest, submit_run
from offing.storage.migrate import LOCAL_TENANT
from tests.chaos import checker
from tests.chaos.private_stack import PrivateStack
from tests.chaos.trial import TURNS, Client, Moment, Subject, Trial, check_report_words
from tests.model_provider.replies import Completion, Slow
from tests.model_provider.server import Received, WireServer
from tests.workers.processes import ALL_GRAPHS

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]

MODEL = "openai/gpt-4o-mini"
"""One whose price is known, so that money is reserved and charged."""


def turn_of(request: Received) -> int:
    match = re.search(r"turn (\d+)", str(request.body["messages"]))
    assert match, request.body
    return int(match[1])


@pytest.fixture
async def provider() -> AsyncIterator[WireServer]:
    """Answers each request with a word that it never used before."""
    numbers = count(1)

    def respond(request: Received) -> Slow:
        return Slow(Completion(f'{{"word": "w{turn_of(request)}-{next(numbers)}"}}'), 0.03)

    async with WireServer(respond) as server:
        yield server


async def begun(client: Client, provider: WireServer, moment: Moment) -> Trial:
    trial = Trial(client.stack, moment)
    engines = {
        "speaker": EngineConfig(
            engine="litellm", model=MODEL, api_base=provider.url, max_tokens=50, options={"output_mode": "text"}
        )
    }
    request = RunRequest("Count", "counting", budget=Budget(max_turns=TURNS), engines=engines)
    created = await submit_run(
        client.database, client.notifier, LOCAL_TENANT, request, graphs=open_registry(ALL_GRAPHS)
    )
    trial.subjects = [Subject("varying", created.run.id, 0)]
    return trial


async def wait_for_requests(stack: PrivateStack, provider: WireServer, requests: int) -> None:
    await asyncio.to_thread(stack.until, f"{requests} requests", lambda: len(provider.requests) >= requests, 40)


async def expect_charged_once(trial: Trial, provider: WireServer, losses: int) -> None:
    stack, (subject,) = trial.stack, trial.subjects
    await asyncio.to_thread(trial.until_ended)
    rows = stack.facts(subject.run)
    requests = [checker.SentRequest("speaker", turn_of(r), 0) for r in provider.requests]
    wrong = [*checker.violations(rows), *trial.found_in_mid_run(subject, rows)]
    wrong += [*checker.one_tool_call_a_turn(rows, TURNS), *check_report_words(rows)]
    wrong += checker.check_charged_once(rows, requests, losses)
    assert not wrong, "\n".join([str(trial.moment), *wrong])
    assert rows.run.usd > 0
    assert rows.run.tokens == 18 * TURNS
    ((reserved, used),) = stack.rows("select reserved_usd, used_usd from app.daily_spend")
    paid = sum(u for (u,) in stack.rows("select cost_usd from app.run"))
    assert reserved == 0, trial.moment
    assert paid <= used <= paid + Decimal("0.001"), trial.moment


async def test_worker_killed_while_a_provider_answers(
    stack: PrivateStack, client: Client, provider: WireServer, rare_moment: Moment
) -> None:
    worker = await asyncio.to_thread(stack.lone_worker)
    trial = await begun(client, provider, rare_moment)
    spare = stack.spawn_worker()
    await wait_for_requests(stack, provider, rare_moment.dice.randint(3, 50))
    trial.strike()
    worker.kill()
    await asyncio.to_thread(spare.await_ready)
    await expect_charged_once(trial, provider, losses=1)


async def test_postgres_killed_while_a_provider_answers(
    stack: PrivateStack, client: Client, provider: WireServer, rare_moment: Moment
) -> None:
    await asyncio.to_thread(stack.lone_worker)
    trial = await begun(client, provider, rare_moment)
    await wait_for_requests(stack, provider, rare_moment.dice.randint(3, 50))
    trial.strike()
    await asyncio.to_thread(stack.kill_server, "postgres", signal.SIGKILL)
    await asyncio.to_thread(stack.restart, "postgres")
    await expect_charged_once(trial, provider, losses=1)
