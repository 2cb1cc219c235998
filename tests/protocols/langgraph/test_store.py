"""The store through LangGraph's Python client."""

from uuid import uuid4

import pytest
from langgraph_sdk.errors import UnprocessableEntityError

from tests.protocols.langgraph.conftest import ENVIRONMENT, Client

__all__ = ["ENVIRONMENT"]


async def test_items_are_put_found_and_deleted(client: Client, other_client: Client) -> None:
    root = str(uuid4())
    await client.store.put_item([root, "ada"], "tea", {"kind": "taste", "text": "likes tea"})
    await client.store.put_item([root, "ada"], "size", {"kind": "body"}, ttl=5)
    item = await client.store.get_item([root, "ada"], "tea")
    assert (item["namespace"], item["value"]["text"]) == ([root, "ada"], "likes tea")
    items = await client.store.search_items([root], filter={"kind": "taste"})
    assert [one["key"] for one in items["items"]] == ["tea"]
    assert (await client.store.list_namespaces(prefix=[root]))["namespaces"] == [[root, "ada"]]
    assert (await other_client.store.search_items([root]))["items"] == []
    assert await other_client.store.get_item([root, "ada"], "tea") is None
    await client.store.delete_item([root, "ada"], "tea")
    assert await client.store.get_item([root, "ada"], "tea") is None


async def test_what_is_not_supported_is_rejected_by_its_name(client: Client) -> None:
    with pytest.raises(UnprocessableEntityError, match="query"):
        await client.store.search_items(["a"], query="tea")
    with pytest.raises(UnprocessableEntityError, match="namespace"):
        await client.store.put_item(["langgraph"], "tea", {})
