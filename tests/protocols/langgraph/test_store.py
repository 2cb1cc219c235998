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


async def test_items_are_found_by_their_meaning(client: Client) -> None:
    root = str(uuid4())
    await client.store.put_item([root], "tea", {"text": "tea tea tea"})
    await client.store.put_item([root], "sea", {"text": "sea and tea"}, index=["text"])
    await client.store.put_item([root], "none", {"text": "tea"}, index=False)
    items = (await client.store.search_items([root], query="tea"))["items"]
    assert [one["key"] for one in items[:2]] == ["tea", "sea"]
    assert items[0]["score"] > items[1]["score"]


async def test_a_namespace_that_is_not_allowed_is_rejected(client: Client) -> None:
    with pytest.raises(UnprocessableEntityError, match="namespace"):
        await client.store.put_item(["langgraph"], "tea", {})
    with pytest.raises(UnprocessableEntityError, match="ttl"):
        await client.store.put_item(["a"], "tea", {}, ttl=-1)
