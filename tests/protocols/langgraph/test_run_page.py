"""What the page shows of runs of LangGraph's clients, and what a client sees of what a person does there."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import httpx
import pytest

from offing.clock import new_id
from offing.services import access
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.protocols.langgraph.conftest import ENVIRONMENT, Client

__all__ = ["ENVIRONMENT"]


@pytest.fixture
async def page(base: str, key_database: Database) -> AsyncIterator[httpx.AsyncClient]:
    """The API that the page uses."""
    key = (await access.create_key(key_database, LOCAL_TENANT, str(new_id()))).key
    address = f"{base}/api/v1"
    async with httpx.AsyncClient(base_url=address, headers={"Authorization": f"Bearer {key}"}, timeout=60) as opened:
        yield opened


async def test_another_tenant_neither_sees_nor_answers_such_a_run(
    client: Client, base: str, key_database: Database, other_tenant: UUID
) -> None:
    thread = (await client.threads.create())["thread_id"]
    run = await client.runs.create(thread, "approval", input={"topic": "go", "decisions": []})
    await client.runs.join(thread, run["run_id"])
    interrupt = (await client.threads.get_state(thread))["interrupts"][0]["id"]
    key = (await access.create_key(key_database, other_tenant, "theirs")).key
    at, headers = f"{base}/api/v1/runs/{run['run_id']}", {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(headers=headers, timeout=60) as other:
        assert (await other.get(f"{at}/langgraph")).status_code == 404
        answered = await other.post(f"{at}/interrupts/{interrupt}/response", json={"text": "yes"})
        assert answered.status_code == 404
    assert len(await client.runs.list(thread)) == 1


async def test_the_page_shows_what_a_client_asked_for_and_the_state_that_its_run_left(
    client: Client, page: httpx.AsyncClient
) -> None:
    thread = (await client.threads.create())["thread_id"]
    request: Any = {"input": {"seen": ["one"]}, "metadata": {"customer": "ada"}, "config": {"tags": ["tagged"]}}
    run = await client.runs.create(thread, "trail", **request)
    await client.runs.join(thread, run["run_id"])
    await client.runs.wait(thread, "trail", input={"seen": ["two"]})
    view = (await page.get(f"/runs/{run['run_id']}/langgraph")).json()
    assert view == {
        "assistant_id": run["assistant_id"],
        "metadata": {"customer": "ada"},
        "tags": ["tagged"],
        "input": {"seen": ["one"]},
        "command": None,
        "values": {"seen": ["one", "first", "second"]},
        "next_nodes": [],
        "interrupts": [],
    }
    listed = (await page.get("/runs", params={"limit": 1, "latest_of_thread": True})).json()["items"][0]
    assert (listed["protocol"], listed["thread_runs"], listed["thread_id"]) == ("langgraph", 2, thread)


async def test_a_response_on_the_page_starts_the_run_that_continues_from_an_interrupt(
    client: Client, page: httpx.AsyncClient
) -> None:
    thread = (await client.threads.create())["thread_id"]
    run = await client.runs.create(thread, "approval", input={"topic": "go", "decisions": []}, metadata={"who": "ada"})
    await client.runs.join(thread, run["run_id"])
    (interrupt,) = (await page.get(f"/runs/{run['run_id']}/langgraph")).json()["interrupts"]
    assert interrupt["prompt"] == "May I go?"
    at = f"/runs/{run['run_id']}/interrupts"
    assert (await page.post(f"{at}/other/response", json={"text": "yes"})).status_code == 404
    answered = await page.post(f"{at}/{interrupt['id']}/response", json={"text": "yes"})
    assert (answered.status_code, answered.json()["thread_id"]) == (201, thread)
    resumed = (await client.runs.list(thread))[0]
    assert (resumed["run_id"], resumed["metadata"]) == (answered.json()["id"], {"who": "ada"})
    assert (await client.runs.join(thread, resumed["run_id"]))["decisions"] == ["yes"]
    assert (await page.get(f"/runs/{run['run_id']}/langgraph")).json()["interrupts"] == []
    assert (await page.post(f"{at}/{interrupt['id']}/response", json={"text": "again"})).status_code == 404


async def test_the_page_lists_each_run_of_a_thread_once_and_in_order(client: Client, page: httpx.AsyncClient) -> None:
    thread = (await client.threads.create())["thread_id"]
    ids: list[str] = []
    for request in ({"input": {"messages": [("user", "salt")]}}, {"command": {"resume": "yes"}}):
        ids.append((await client.runs.create(thread, "dialogue", **request))["run_id"])
        await client.runs.join(thread, ids[-1])
    listing = (await page.get(f"/threads/{thread}")).json()
    assert [one["id"] for one in listing["runs"]] == ids
    assert [one["interrupted"] for one in listing["runs"]] == [False, False]
    listed = (await page.get("/runs", params={"thread_id": thread})).json()["items"]
    assert [one["id"] for one in listed] == ids[::-1]


async def test_an_interrupted_run_waits_for_a_person_until_a_run_follows(
    client: Client, page: httpx.AsyncClient
) -> None:
    async def read() -> tuple[bool, bool, bool, int]:
        listed = (await page.get("/runs", params={"waiting_for_person": True})).json()["items"]
        summary = (await page.get(f"/runs/{id}")).json()
        of_thread = (await page.get("/runs", params={"thread_id": thread})).json()["items"]
        marked = next(one["interrupted"] for one in of_thread if one["id"] == id)
        count = (await page.get("/runs/counts")).json()["waiting_for_person"]
        return summary["interrupted"], marked, any(one["id"] == id for one in listed), count

    before = (await page.get("/runs/counts")).json()["waiting_for_person"]
    thread = (await client.threads.create())["thread_id"]
    id = (await client.runs.create(thread, "approval", input={"topic": "go", "decisions": []}))["run_id"]
    await client.runs.join(thread, id)
    assert await read() == (True, True, True, before + 1)
    await client.runs.wait(thread, "approval", command={"resume": "yes"})
    assert await read() == (False, False, False, before)


async def until_begun(client: Client, thread: str) -> None:
    while True:
        if (await client.threads.get_state(thread))["next"]:
            return
        await asyncio.sleep(0.02)


async def test_neither_a_cancelled_run_nor_one_at_its_end_waits_for_a_person(
    client: Client, page: httpx.AsyncClient
) -> None:
    before = (await page.get("/runs/counts")).json()["waiting_for_person"]
    thread = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread, "trail", input={"seen": []})
    run = await client.runs.create(thread, "trail", input={"seen": [], "delay": 60})
    await until_begun(client, thread)  # a run that has not begun leaves nothing to continue
    await client.runs.cancel(thread, run["run_id"], wait=True)
    assert (await client.threads.get(thread))["status"] == "interrupted"
    assert (await page.get(f"/runs/{run['run_id']}")).json()["interrupted"] is False
    await client.runs.wait(None, "approval", input={"topic": "go", "decisions": []})  # a run without a thread
    assert (await page.get("/runs/counts")).json()["waiting_for_person"] == before + 1
    for one in (await page.get("/runs", params={"waiting_for_person": True})).json()["items"]:
        assert (await page.delete(f"/runs/{one['id']}")).status_code == 200


async def test_a_follow_up_that_is_asked_on_the_page_is_in_the_thread_of_the_client(
    client: Client, page: httpx.AsyncClient
) -> None:
    thread = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread, "chatter", input={"messages": [{"role": "user", "content": "salt"}]})
    follow_up = await page.post("/runs", json={"question": "pepper", "graph": "chatter", "thread_id": thread})
    assert follow_up.status_code == 201, follow_up.text
    await page.get(f"/runs/{follow_up.json()['id']}/wait", params={"timeout": 60})
    messages = (await client.threads.get_state(thread))["values"]["messages"]
    assert [one["type"] for one in messages] == ["human", "ai", "human", "ai"]
    assert (await page.get(f"/runs/{follow_up.json()['id']}/langgraph")).status_code == 404
