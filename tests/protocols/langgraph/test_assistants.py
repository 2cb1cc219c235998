"""Assistants through LangGraph's Python client."""

from uuid import UUID, uuid5

import httpx
import pytest
from langgraph_sdk.errors import NotFoundError

from tests.protocols.langgraph.conftest import ENVIRONMENT, Client

__all__ = ["ENVIRONMENT"]

NAMESPACE = UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8")


async def test_the_server_answers_probes_without_a_key(base: str) -> None:
    async with httpx.AsyncClient(base_url=f"{base}/langgraph") as nobody:
        assert (await nobody.get("/ok")).json() == {"ok": True}
        flags = (await nobody.get("/info")).json()["flags"]
        assert (flags["assistants"], flags["crons"]) == (True, True)
        denied = await nobody.post("/assistants/search", json={})
        assert (denied.status_code, list(denied.json())) == (401, ["detail"])


async def test_an_unknown_address_is_answered_in_json(client: Client) -> None:
    missing = await client.http.client.get("/nowhere")
    assert (missing.status_code, missing.json()) == (404, {"detail": "Not Found"})


async def test_every_graph_is_an_assistant_with_the_id_that_clients_derive(client: Client) -> None:
    assistants = await client.assistants.search(graph_id="trail")
    assert [(one["assistant_id"], one["metadata"]) for one in assistants] == [
        (str(uuid5(NAMESPACE, "trail")), {"created_by": "system"})
    ]
    everything = await client.assistants.search(limit=100)
    assert {"agentflow", "trail", "chatter"} <= {one["graph_id"] for one in everything}
    assert await client.assistants.count() == len(everything)
    assert (await client.assistants.search(limit=1, response_format="object"))["next"] == "1"


async def test_an_assistant_describes_its_graph(client: Client) -> None:
    (nested,) = await client.assistants.search(graph_id="nested")
    name = nested["assistant_id"]
    drawn = await client.assistants.get_graph(name)
    assert {node["id"] for node in drawn["nodes"]} == {"__start__", "inner", "__end__"}
    inside = await client.assistants.get_graph("nested", xray=True)
    assert {"inner:first", "inner:second"} <= {node["id"] for node in inside["nodes"]}
    schemas = await client.assistants.get_schemas(name)
    assert schemas["graph_id"] == "nested"
    assert "'seen': {'" in str(schemas["input_schema"])
    assert "'seen': {'" in str(schemas["state_schema"])
    assert list(await client.assistants.get_subgraphs(name)) == ["inner"]
    with pytest.raises(NotFoundError):
        await client.assistants.get_subgraphs(name, namespace="nowhere")


async def test_a_stored_assistant_has_versions_and_is_the_tenants_alone(client: Client, other_client: Client) -> None:
    assistant = await client.assistants.create("trail", metadata={"team": "a"}, name="Mine", context={"tone": "calm"})
    name = assistant["assistant_id"]
    assert (assistant["version"], assistant["name"], assistant["context"]) == (1, "Mine", {"tone": "calm"})
    changed = await client.assistants.update(name, metadata={"stage": "b"}, config={"recursion_limit": 7})
    assert (changed["version"], changed["metadata"]) == (2, {"team": "a", "stage": "b"})
    assert [one["version"] for one in await client.assistants.get_versions(name)] == [2, 1]
    assert (await client.assistants.set_latest(name, 1))["config"] == {}
    assert [one["name"] for one in await client.assistants.search(metadata={"team": "a"})] == ["Mine"]
    for action in (other_client.assistants.get(name), other_client.assistants.delete(name)):
        with pytest.raises(NotFoundError):
            await action
    await client.assistants.delete(name)
    with pytest.raises(NotFoundError):
        await client.assistants.get(name)


async def test_an_existing_assistant_is_kept_or_reported(client: Client) -> None:
    name = (await client.assistants.create("trail", name="First"))["assistant_id"]
    existing = await client.assistants.create("trail", assistant_id=name, name="Second", if_exists="do_nothing")
    assert existing["name"] == "First"
    with pytest.raises(httpx.HTTPStatusError) as raised:
        await client.assistants.create("trail", assistant_id=name, if_exists="raise")
    assert raised.value.response.status_code == 409


async def test_an_assistants_configuration_reaches_the_graph(client: Client) -> None:
    assistant = await client.assistants.create("trail", config={"recursion_limit": 1})
    result = await client.runs.wait(None, assistant["assistant_id"], input={"seen": []}, raise_error=False)
    assert result["__error__"]["error"] == "GraphRecursionError"


async def test_a_graphs_own_assistant_that_was_changed_is_used_by_the_next_run(client: Client) -> None:
    name = str(uuid5(NAMESPACE, "trail"))
    for _ in range(2):
        assert "__error__" not in await client.runs.wait(None, "trail", input={"seen": []}, raise_error=False)
    await client.assistants.update(name, config={"recursion_limit": 1})
    for _ in range(2):  # the second one is read first, because the first one has found the exception
        result = await client.runs.wait(None, "trail", input={"seen": []}, raise_error=False)
        assert result["__error__"]["error"] == "GraphRecursionError"
    await client.assistants.set_latest(name, 1)
    assert "__error__" not in await client.runs.wait(None, name, input={"seen": []}, raise_error=False)
