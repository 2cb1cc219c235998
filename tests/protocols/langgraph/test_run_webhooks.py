"""Webhooks of runs: what a real receiver gets from a real worker at each end of a run."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from langgraph_sdk.errors import UnprocessableEntityError

from offing.services import webhooks
from offing.services.webhooks import WebhookRequest
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.web.guard import AddressGuard, resolve_host
from tests.api.test_notifications import Receiver, verify
from tests.ports import free_port
from tests.protocols.langgraph.conftest import ENVIRONMENT as GRAPHS_ENVIRONMENT
from tests.protocols.langgraph.conftest import Client

PORT = free_port()

ALLOWED = f"127.0.0.1:{PORT}"

ENVIRONMENT = {**GRAPHS_ENVIRONMENT, "OFFING_ALLOWED_WEBHOOK_HOSTS": ALLOWED}


@pytest.fixture(autouse=True)
def allowed_receiver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the API accept the receiver's address, as the worker does."""
    monkeypatch.setenv("OFFING_ALLOWED_WEBHOOK_HOSTS", ALLOWED)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver(PORT)
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", PORT)
    yield receiver
    server.close()
    await server.wait_closed()


async def next_message(receiver: Receiver, number: int = 1) -> tuple[dict[str, str], dict[str, Any]]:
    for _ in range(300):
        if len(receiver.got) >= number:
            break
        await asyncio.sleep(0.1)
    headers, body = receiver.got[number - 1]
    return headers, json.loads(body)


@pytest.mark.parametrize(
    ("graph_input", "status", "values"),
    [
        ({"seen": ["input"]}, "success", {"seen": ["input", "first", "second"]}),
        ({"seen": ["input"], "fail": True}, "error", {"seen": ["input", "first"], "fail": True}),
    ],
)
async def test_a_receiver_gets_the_ended_run_with_its_values(
    client: Client, receiver: Receiver, graph_input: Any, status: str, values: Any
) -> None:
    run = await client.runs.create(None, "trail", input=graph_input, metadata={"a": 1}, webhook=receiver.address)
    _, message = await next_message(receiver)
    assert (message["run_id"], message["status"], message["metadata"]) == (run["run_id"], status, {"a": 1})
    assert message["values"] == values
    assert message["run_started_at"] < message["run_ended_at"] < message["webhook_sent_at"]
    assert message.get("error") == (
        {"error": "ValueError", "message": "the second node fails"} if status == "error" else None
    )


async def test_a_receiver_is_told_of_a_cancelled_run_and_of_one_that_waits_for_a_person(
    client: Client, receiver: Receiver
) -> None:
    thread = (await client.threads.create())["thread_id"]
    graph_input = {"seen": ["input"], "delay": 30}
    run = await client.runs.create(thread, "trail", input=graph_input, webhook=receiver.address)
    await client.runs.cancel(thread, run["run_id"], wait=True)
    _, message = await next_message(receiver)
    assert (message["run_id"], message["status"]) == (run["run_id"], "interrupted")
    stopped = await client.runs.create(
        thread, "trail", input={"seen": [], "delay": 0}, interrupt_before=["second"], webhook=receiver.address
    )
    _, message = await next_message(receiver, 2)
    assert (message["run_id"], message["status"]) == (stopped["run_id"], "success")
    assert message["values"]["seen"][-1] == "first"


async def test_a_message_is_signed_with_the_secret_of_a_webhook_of_the_same_host(
    client: Client, receiver: Receiver, key_database: Database
) -> None:
    guard = AddressGuard(resolve_host, frozenset({ALLOWED}))
    request = WebhookRequest(f"http://{ALLOWED}/registered", ["run.waiting"])
    created = await webhooks.add_webhook(key_database, LOCAL_TENANT, request, guard)
    await client.runs.create(None, "trail", input={"seen": []}, webhook=receiver.address)
    for _ in range(300):
        if receiver.got:
            break
        await asyncio.sleep(0.1)
    headers, body = receiver.got[0]
    assert verify(created.secret, headers, body)
    await webhooks.remove_webhook(key_database, LOCAL_TENANT, created.row.id)


async def test_an_address_that_may_not_be_reached_is_rejected(client: Client) -> None:
    with pytest.raises(UnprocessableEntityError, match="webhook"):
        await client.runs.create(None, "trail", input={"seen": []}, webhook="http://127.0.0.1:9/")
    with pytest.raises(UnprocessableEntityError, match="webhook"):
        await client.runs.create(None, "trail", input={"seen": []}, webhook="/of/this/server")
