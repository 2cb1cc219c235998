"""The A2A project's own Python client against assistants as agents."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import psycopg
import pytest
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory  # pyright: ignore[reportMissingTypeStubs]
from a2a.types import (  # pyright: ignore[reportMissingTypeStubs]
    CancelTaskRequest,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskState,
)
from fastapi import FastAPI

from offing.clock import new_id
from offing.services import access
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.protocols.langgraph.conftest import ENVIRONMENT, app, base, key_database
from tests.protocols.langgraph.test_limits import AGENT, owner, spent
from tests.workers.conftest import shared_servers

__all__ = ["ENVIRONMENT", "app", "base", "key_database", "owner", "shared_servers", "spent"]

untyped: Any = Message
"""Its classes are made from a description at import, and have no types."""


@pytest.fixture
async def http(base: str, key_database: Database) -> AsyncIterator[httpx.AsyncClient]:
    key = (await access.create_key(key_database, LOCAL_TENANT, str(new_id()))).key
    async with httpx.AsyncClient(headers={"x-api-key": key}, timeout=60) as opened:
        yield opened


async def _talk(http: httpx.AsyncClient, base: str, agent: str, *, streaming: bool, **message: Any) -> Any:
    """Send a message. Return the client, and what it got."""
    card = await A2ACardResolver(http, f"{base}/langgraph/a2a/{agent}").get_agent_card()
    client: Any = ClientFactory(ClientConfig(streaming=streaming, httpx_client=http)).create(card)
    new = untyped(message_id=str(new_id()), role=Role.ROLE_USER, **message)
    return client, [one async for one in client.send_message(SendMessageRequest(message=new))]


async def test_a_message_is_answered_with_a_task_that_can_be_read(http: httpx.AsyncClient, base: str) -> None:
    client, (answer,) = await _talk(http, base, "chatter", streaming=False, parts=[Part(text="salt")])
    assert answer.task.status.state == TaskState.TASK_STATE_COMPLETED
    assert answer.task.artifacts[0].parts[0].text == "You said salt and so on"
    assert (await client.get_task(GetTaskRequest(id=answer.task.id))).artifacts == answer.task.artifacts


async def test_a_stream_brings_tokens_and_the_end(http: httpx.AsyncClient, base: str) -> None:
    _, events = await _talk(http, base, "chatter", streaming=True, parts=[Part(text="salt")])
    assert events[0].HasField("task")
    answer = ""
    for one in events:
        if one.HasField("artifact_update"):
            part = one.artifact_update.artifact.parts[0].text
            answer = answer + part if one.artifact_update.append else part
    assert answer == "You said salt and so on"
    assert events[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED


async def test_a_person_is_asked_and_responds(http: httpx.AsyncClient, base: str) -> None:
    data: Any = Part()
    data.data.struct_value.update({"topic": "go", "decisions": []})
    _, (asking,) = await _talk(http, base, "approval", streaming=False, parts=[data])
    assert asking.task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
    assert asking.task.status.message.parts[0].text == "May I go?"
    both = {"task_id": asking.task.id, "context_id": asking.task.context_id}
    _, (done,) = await _talk(http, base, "approval", streaming=False, parts=[Part(text="yes")], **both)
    assert done.task.status.state == TaskState.TASK_STATE_COMPLETED
    assert list(done.task.artifacts[0].parts[0].data.struct_value["decisions"]) == ["yes"]


async def test_a_context_is_a_thread_whose_messages_go_on(http: httpx.AsyncClient, base: str) -> None:
    _, (first,) = await _talk(http, base, "chatter", streaming=False, parts=[Part(text="salt")])
    context = first.task.context_id
    _, (second,) = await _talk(http, base, "chatter", streaming=False, parts=[Part(text="pepper")], context_id=context)
    assert (second.task.context_id, second.task.id != first.task.id) == (context, True)
    state = (await http.get(f"{base}/langgraph/threads/{context}/state")).json()
    texts = [one["content"] for one in state["values"]["messages"]]
    assert texts == ["salt", "You said salt and so on", "pepper", "You said pepper and so on"]


async def test_a_task_that_fails_says_why(http: httpx.AsyncClient, base: str) -> None:
    data: Any = Part()
    data.data.struct_value.update({"seen": [], "fail": True})
    _, events = await _talk(http, base, "trail", streaming=True, parts=[data])
    status = events[-1].status_update.status
    assert status.state == TaskState.TASK_STATE_FAILED
    assert "the second node fails" in status.message.parts[0].text


async def test_a_stream_that_was_lost_is_subscribed_to_again_and_the_task_cancelled(
    http: httpx.AsyncClient, base: str
) -> None:
    data: Any = Part()
    data.data.struct_value.update({"seen": [], "delay": 60})
    card = await A2ACardResolver(http, f"{base}/langgraph/a2a/trail").get_agent_card()
    client: Any = ClientFactory(ClientConfig(streaming=True, httpx_client=http)).create(card)
    message = untyped(message_id=str(new_id()), role=Role.ROLE_USER, parts=[data])
    stream = client.send_message(SendMessageRequest(message=message))
    task = (await anext(stream)).task
    await stream.aclose()
    again = client.subscribe(SubscribeToTaskRequest(id=task.id))
    assert (await anext(again)).task.id == task.id  # leaving did not end the run
    canceled = await client.cancel_task(CancelTaskRequest(id=task.id))
    assert canceled.status.state == TaskState.TASK_STATE_CANCELED
    events = [one async for one in again]
    assert events[-1].status_update.status.state == TaskState.TASK_STATE_CANCELED


async def test_a_task_stops_at_the_spending_limit_of_the_tenant(
    http: httpx.AsyncClient, app: tuple[FastAPI, str], spent: psycopg.Connection
) -> None:
    server, base = app
    server.state.dependencies = replace(server.state.dependencies, role_engines={"agent": AGENT})
    _, (done,) = await _talk(http, base, "guide", streaming=False, parts=[Part(text="Does it rain?")])
    assert done.task.artifacts[0].parts[0].text == "It says: found rain"
    _, (failed,) = await _talk(http, base, "guide", streaming=False, parts=[Part(text="Does it rain?")])
    assert failed.task.status.state == TaskState.TASK_STATE_FAILED
    assert "tenant_spend_limit" in failed.task.status.message.parts[0].text
