"""Assistants as agents of A2A, in the words of version 0.3 of the protocol."""

import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import httpx
import pytest

from offing.bus.stream_messages import KeptEvent, StreamEvent
from offing.clock import new_id
from offing.protocols.langgraph.a2a_streams import StreamedAnswer
from offing.services import access
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.protocols.langgraph.conftest import ENVIRONMENT, Client

__all__ = ["ENVIRONMENT"]


@pytest.fixture
async def http(base: str, key_database: Database) -> AsyncIterator[httpx.AsyncClient]:
    async with await _open(base, key_database, LOCAL_TENANT) as opened:
        yield opened


async def _open(base: str, database: Database, tenant: UUID) -> httpx.AsyncClient:
    key = (await access.create_key(database, tenant, str(new_id()))).key
    return httpx.AsyncClient(base_url=f"{base}/langgraph", headers={"x-api-key": key}, timeout=60)


async def call(http: httpx.AsyncClient, agent: str, method: str, **params: Any) -> Any:
    body = {"jsonrpc": "2.0", "id": "one", "method": method, "params": params}
    answer = (await http.post(f"/a2a/{agent}", json=body)).json()
    assert answer["id"] == "one"
    return answer


async def send(http: httpx.AsyncClient, agent: str, *parts: dict[str, Any], **more: Any) -> Any:
    configuration = {"configuration": more.pop("configuration")} if "configuration" in more else {}
    message = {"role": "user", "messageId": str(new_id()), "kind": "message", "parts": list(parts), **more}
    return await call(http, agent, "message/send", message=message, **configuration)


def text(content: str) -> dict[str, Any]:
    return {"kind": "text", "text": content}


async def test_a_message_is_a_run_whose_answer_is_an_artifact(http: httpx.AsyncClient, client: Client) -> None:
    task = (await send(http, "chatter", text("salt")))["result"]
    assert (task["kind"], task["status"]["state"]) == ("task", "completed")
    assert task["artifacts"][0]["parts"] == [text("You said salt and so on")]
    (run,) = await client.runs.list(task["contextId"])
    assert (run["run_id"], run["status"]) == (task["id"], "success")
    both = {"contextId": task["contextId"], "taskId": task["id"], "configuration": {"historyLength": 3}}
    second = (await send(http, "chatter", text("pepper"), **both))["result"]
    assert (second["contextId"], second["id"] != task["id"]) == (task["contextId"], True)
    assert [one["parts"][0]["text"] for one in second["history"]] == [
        "You said salt and so on",
        "pepper",
        "You said pepper and so on",
    ]
    task_again = (await call(http, "chatter", "tasks/get", id=task["id"]))["result"]
    assert task_again["artifacts"] == task["artifacts"]


async def test_data_is_the_input_of_a_graph_without_messages(http: httpx.AsyncClient) -> None:
    task = (await send(http, "trail", {"kind": "data", "data": {"seen": ["x"]}}))["result"]
    assert task["artifacts"][0]["parts"] == [{"kind": "data", "data": {"seen": ["x", "first", "second"]}}]
    assert (await send(http, "trail", text("hello")))["error"]["code"] == -32005
    image = {"kind": "file", "file": {"uri": "file:///etc/passwd"}}
    assert (await send(http, "chatter", image))["error"]["code"] == -32005
    failed = (await send(http, "trail", {"kind": "data", "data": {"seen": [], "fail": True}}))["result"]
    assert failed["status"]["state"] == "failed"
    assert "the second node fails" in failed["status"]["message"]["parts"][0]["text"]


async def test_an_interrupt_needs_input_and_a_message_with_the_task_gives_it(http: httpx.AsyncClient) -> None:
    asking = (await send(http, "approval", {"kind": "data", "data": {"topic": "go", "decisions": []}}))["result"]
    assert asking["status"]["state"] == "input-required"
    assert asking["status"]["message"]["parts"][0] == text("May I go?")
    done = (await send(http, "approval", text("yes"), taskId=asking["id"]))["result"]
    assert done["artifacts"][0]["parts"][0]["data"]["decisions"] == ["yes"]
    several = (await send(http, "several", {"kind": "data", "data": {"topic": "a,b", "decisions": []}}))["result"]
    questions = several["status"]["message"]["parts"][1]["data"]["interrupts"]
    assert "2 interrupts" in (await send(http, "several", text("yes"), taskId=several["id"]))["error"]["message"]
    answers = {one["id"]: one["prompt"] for one in questions}
    both = (await send(http, "several", {"kind": "data", "data": answers}, taskId=several["id"]))["result"]
    assert sorted(both["artifacts"][0]["parts"][0]["data"]["decisions"]) == ["a", "b"]


async def test_a_stream_has_the_answer_while_it_is_written_and_ends_with_the_state(http: httpx.AsyncClient) -> None:
    message = {"role": "user", "messageId": "m", "parts": [text("salt")]}
    body = {"jsonrpc": "2.0", "id": 7, "method": "message/stream", "params": {"message": message}}
    answer = await http.post("/a2a/chatter", json=body)
    assert answer.headers["content-type"].startswith("text/event-stream")
    results = _parse(answer.text)
    assert [one["kind"] for one in (results[0], results[-1])] == ["task", "status-update"]
    assert (results[-1]["final"], results[-1]["status"]["state"]) == (True, "completed")
    updates = [one for one in results if one["kind"] == "artifact-update"]
    assert len(updates) > 2  # tokens came one by one
    assert _join(updates[:-1]) == _join(updates) == "You said salt and so on"
    again = await http.post(
        "/a2a/chatter", json={**body, "method": "tasks/resubscribe", "params": {"id": results[0]["id"]}}
    )
    assert _join([one for one in _parse(again.text) if one["kind"] == "artifact-update"]) == _join(updates)


async def test_an_active_task_is_read_and_canceled(http: httpx.AsyncClient) -> None:
    assert (await call(http, "trail", "tasks/resubscribe", id=str(new_id())))["error"]["code"] == -32001
    slow: dict[str, Any] = {"kind": "data", "data": {"seen": [], "delay": 60}}
    active = (await send(http, "trail", slow, configuration={"blocking": False}))["result"]
    assert active["status"]["state"] in ("submitted", "working")
    task_again = (await call(http, "trail", "tasks/get", id=active["id"]))["result"]
    assert (task_again["status"]["state"] in ("submitted", "working"), "artifacts" in task_again) == (True, False)
    assert (await call(http, "chatter", "tasks/cancel", id=active["id"]))["error"]["code"] == -32001
    canceled = (await call(http, "trail", "tasks/cancel", id=active["id"]))["result"]
    assert canceled["status"]["state"] == "canceled"
    assert (await call(http, "trail", "tasks/cancel", id=active["id"]))["error"]["code"] == -32002


async def test_another_tenant_neither_reads_nor_continues_a_task(
    http: httpx.AsyncClient, base: str, key_database: Database, other_tenant: UUID, client: Client
) -> None:
    task = (await send(http, "chatter", text("secret salt")))["result"]
    async with await _open(base, key_database, other_tenant) as other:
        assert (await call(other, "chatter", "tasks/get", id=task["id"]))["error"]["code"] == -32001
        assert (await call(other, "chatter", "tasks/cancel", id=task["id"]))["error"]["code"] == -32001
        answered = await send(other, "chatter", text("pepper"), contextId=task["contextId"])
        assert "secret" not in json.dumps(answered)
        assert "error" in answered
    assert len(await client.runs.list(task["contextId"])) == 1


async def test_the_card_names_the_address_and_the_key(http: httpx.AsyncClient, base: str, client: Client) -> None:
    created = await client.assistants.create("chatter", name="Talker", description="Talks.")
    card = (await http.get("/.well-known/agent-card.json", params={"assistant_id": created["assistant_id"]})).json()
    assert (card["name"], card["description"], card["protocolVersion"]) == ("Talker", "Talks.", "0.3.0")
    assert card["url"] == f"{base}/langgraph/a2a/{created['assistant_id']}"
    assert card["securitySchemes"]["key"]["name"] == "x-api-key"
    assert (await http.get(f"/a2a/{created['assistant_id']}/.well-known/agent-card.json")).json() == card
    assert (await http.get("/.well-known/agent-card.json")).status_code == 422
    async with httpx.AsyncClient() as unknown:
        assert (
            await unknown.get(f"{base}/langgraph/.well-known/agent-card.json?assistant_id=trail")
        ).status_code == 401


async def test_what_is_not_supported_is_rejected_by_its_name(http: httpx.AsyncClient) -> None:
    assert (await call(http, "chatter", "tasks/list"))["error"]["code"] == -32601
    webhook = {"pushNotificationConfig": {"url": "http://127.0.0.1/"}}
    assert (await send(http, "chatter", text("x"), configuration=webhook))["error"]["code"] == -32003
    assert "contextId" in (await send(http, "chatter", text("x"), contextId="mine"))["error"]["message"]
    assert "nothing" in (await send(http, "nothing", text("x")))["error"]["message"]


def test_a_draft_is_withdrawn_with_its_message_and_follows_the_one_that_is_written() -> None:
    draft = StreamedAnswer()
    assert draft.add(_event("a", "one ")) == ("one ", False)
    assert draft.add(_event("a", "two")) == ("two", True)
    assert draft.add(_event("b", "other")) == ("other", False)
    assert draft.add(_event("a", " three")) == ("one two three", False)
    assert draft.add(_event("b", "", "remove")) is None
    assert draft.add(_event("a", "", "remove")) == ("", False)
    assert draft.add(_event("c", "anew")) == ("anew", False)
    assert draft.add(_event("c", "anew", "ai")) is None
    assert draft.add(_event("t", "found", "tool")) is None


def _event(id: str, content: str, kind: str = "AIMessageChunk") -> KeptEvent:
    data = json.dumps([{"id": id, "type": kind, "content": content}, {}]).encode()
    return KeptEvent("1-0", StreamEvent("messages", data), new_id())


def _parse(stream: str) -> list[Any]:
    frames = [json.loads(line.removeprefix("data: ")) for line in stream.splitlines() if line.startswith("data: ")]
    assert len({str(one["id"]) for one in frames}) == 1
    return [one["result"] for one in frames]


def _join(updates: list[Any]) -> str:
    answer = ""
    for one in updates:
        part = "".join(part["text"] for part in one["artifact"]["parts"])
        answer = answer + part if one["append"] else part
    return answer
