"""Threads and their states through LangGraph's Python client."""

from typing import Any
from uuid import uuid4

import pytest
from langgraph_sdk.errors import ConflictError, NotFoundError, UnprocessableEntityError

from tests.protocols.langgraph.conftest import ENVIRONMENT, Client

__all__ = ["ENVIRONMENT"]


async def run_trail(client: Client) -> str:
    thread = await client.threads.create()
    await client.runs.wait(thread["thread_id"], "trail", input={"seen": ["input"]})
    return thread["thread_id"]


async def test_threads_are_created_found_changed_and_deleted(client: Client) -> None:
    mark = str(uuid4())
    thread = await client.threads.create(metadata={"mark": mark})
    assert (thread["status"], thread["values"], thread["interrupts"]) == ("idle", None, {})
    changed = await client.threads.update(thread["thread_id"], metadata={"more": 1})
    assert changed["metadata"] == {"mark": mark, "more": 1}
    assert [one["thread_id"] for one in await client.threads.search(metadata={"mark": mark})] == [thread["thread_id"]]
    assert await client.threads.count(metadata={"mark": mark}) == 1
    assert await client.threads.search(metadata={"mark": mark}, status="busy") == []
    await client.threads.delete(thread["thread_id"])
    with pytest.raises(NotFoundError):
        await client.threads.get(thread["thread_id"])


async def test_an_existing_thread_is_kept_or_reported(client: Client, other_client: Client) -> None:
    name = str(uuid4())
    await client.threads.create(thread_id=name, metadata={"first": True})
    assert (await client.threads.create(thread_id=name, if_exists="do_nothing"))["metadata"] == {"first": True}
    with pytest.raises(ConflictError):
        await client.threads.create(thread_id=name)
    with pytest.raises(ConflictError):
        await other_client.threads.create(thread_id=name, if_exists="do_nothing")


async def test_a_thread_of_another_tenant_does_not_exist(client: Client, other_client: Client) -> None:
    name = await run_trail(client)
    for action in (
        other_client.threads.get(name),
        other_client.threads.get_state(name),
        other_client.threads.get_history(name),
        other_client.threads.update(name, metadata={}),
        other_client.threads.update_state(name, {"seen": ["theirs"]}),
        other_client.threads.copy(name),
        other_client.threads.delete(name),
        other_client.runs.list(name),
        other_client.runs.create(name, "trail", input={}),
    ):
        with pytest.raises(NotFoundError):
            await action
    assert (await client.threads.get(name))["status"] == "idle"


async def test_the_states_of_a_thread_are_listed_and_read_at_their_checkpoints(client: Client) -> None:
    name = await run_trail(client)
    latest = await client.threads.get_state(name)
    assert (latest["values"], latest["next"]) == ({"seen": ["input", "first", "second"]}, [])
    history = await client.threads.get_history(name)
    assert [state["next"] for state in history] == [[], ["second"], ["first"], ["__start__"]]
    middle = history[1]["checkpoint"]
    assert (await client.threads.get_state(name, checkpoint=middle))["values"] == {"seen": ["input", "first"]}
    assert (await client.threads.get_state(name, checkpoint_id=middle["checkpoint_id"]))["next"] == ["second"]
    older = await client.threads.get_history(name, before=middle, limit=1)
    assert [state["next"] for state in older] == [["first"]]
    with pytest.raises(NotFoundError):
        await client.threads.get_state(name, checkpoint_id=str(uuid4()))


async def test_a_thread_without_a_run_has_an_empty_state(client: Client) -> None:
    name = (await client.threads.create())["thread_id"]
    state = await client.threads.get_state(name)
    assert (state["values"], state["next"]) == ({}, [])
    assert await client.threads.get_history(name) == []


async def test_a_state_is_updated_as_a_node_and_the_next_run_goes_on_from_there(client: Client) -> None:
    name = await run_trail(client)
    written = await client.threads.update_state(name, {"seen": ["edited"]}, as_node="first")
    state = await client.threads.get_state(name)
    assert state["checkpoint"]["checkpoint_id"] == written["checkpoint"]["checkpoint_id"]
    assert (state["values"]["seen"][-1], state["next"]) == ("edited", ["second"])
    assert (await client.threads.get(name))["status"] == "interrupted"
    result = await client.runs.wait(name, "trail", input=None)
    assert result["seen"][-2:] == ["edited", "second"]
    assert len(await client.runs.list(name)) == 2


async def test_an_update_that_the_graph_rejects_changes_nothing(client: Client) -> None:
    name = await run_trail(client)
    before = await client.threads.get_state(name)
    with pytest.raises(UnprocessableEntityError):
        await client.threads.update_state(name, {"seen": ["x"]}, as_node="nowhere")
    assert await client.threads.get_state(name) == before


async def test_a_run_starts_from_an_earlier_checkpoint(client: Client) -> None:
    name = await run_trail(client)
    middle = (await client.threads.get_history(name))[1]["checkpoint"]
    edited = await client.threads.update_state(name, {"seen": ["fork"]}, checkpoint=middle, as_node="first")
    result = await client.runs.wait(name, "trail", input=None, checkpoint=edited["checkpoint"])
    assert result == {"seen": ["input", "first", "fork", "second"]}
    again = await client.runs.wait(name, "trail", input=None, checkpoint_id=middle["checkpoint_id"])
    assert again == {"seen": ["input", "first", "second"]}


async def test_a_copied_thread_has_the_same_states_and_goes_its_own_way(client: Client) -> None:
    name = await run_trail(client)
    copied = await client.threads.copy(name)
    assert copied["values"] == {"seen": ["input", "first", "second"]}
    await client.runs.wait(copied["thread_id"], "trail", input={"seen": ["again"]})
    assert len((await client.threads.get_state(copied["thread_id"]))["values"]["seen"]) == 6
    assert len((await client.threads.get_state(name))["values"]["seen"]) == 3


async def test_a_thread_with_an_active_run_is_deleted_with_it(client: Client) -> None:
    thread = (await client.threads.create())["thread_id"]
    run = await client.runs.create(thread, "trail", input={"seen": [], "delay": 60})
    await client.runs.create(thread, "trail", input={"seen": []})
    await client.threads.delete(thread)
    with pytest.raises(NotFoundError):
        await client.threads.get(thread)
    with pytest.raises(NotFoundError):
        await client.runs.get(thread, run["run_id"])


async def test_a_thread_is_created_with_states(client: Client) -> None:
    thread = await client.threads.create(
        graph_id="trail",
        supersteps=[
            {"updates": [{"values": {"seen": ["given"]}, "as_node": "__start__"}]},
            {"updates": [{"values": {"seen": ["made"]}, "as_node": "first"}]},
        ],
    )
    state = await client.threads.get_state(thread["thread_id"])
    assert (state["values"], state["next"]) == ({"seen": ["given", "made"]}, ["second"])


async def test_the_thread_of_a_stateless_run_is_gone_with_its_end_unless_it_is_kept(client: Client) -> None:
    for keep in (False, True):
        more: Any = {"on_completion": "keep"} if keep else {}
        run = await client.runs.create(None, "trail", input={"seen": []}, **more)
        await client.runs.join(run["thread_id"], run["run_id"])
        threads = await client.threads.search(ids=[run["thread_id"]])
        assert [one["thread_id"] for one in threads] == ([run["thread_id"]] if keep else [])


async def test_what_is_not_supported_is_rejected_by_its_name(client: Client) -> None:
    name = (await client.threads.create())["thread_id"]
    response = await client.http.client.patch(f"/threads/{name}", json={"status": "idle"})
    assert response.status_code == 422
    assert "status" in response.json()["detail"]
    assert (await client.http.client.get("/threads/not-an-id")).status_code == 422


async def test_json_is_read_also_without_its_content_type(client: Client) -> None:
    headers = {"content-type": "text/plain"}
    created = await client.http.client.post("/threads", content=b'{"metadata": {"a": "b"}}', headers=headers)
    assert (created.status_code, created.json()["metadata"]) == (200, {"a": "b"})
