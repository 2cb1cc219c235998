"""Items of LangGraph's store as rows: whose they are, when they expire, and how many there may be."""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import psycopg
import pytest
from langgraph.store.base import GetOp, SearchOp, TTLConfig

from offing.core.errors import InvalidInput
from offing.core.store_item import ItemPut
from offing.kernel.item_index import build_item_index
from offing.sdk.current_run import EventLoopBlockedError
from offing.services.store_items import PostgresStore, TenantItems
from offing.storage import retention, store_items
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.storage.item_stores import INDEX, a_store, keys

EXPIRED = "update app.store_item set expires_at = now() - interval '1 second' where key = %s"


def expire(owner_url: str, key: str) -> None:
    with psycopg.connect(owner_url, autocommit=True) as owner:
        assert owner.execute(EXPIRED, (key,)).rowcount == 1


def minutes_left(owner_url: str) -> dict[str, float | None]:
    with psycopg.connect(owner_url, autocommit=True) as owner:
        left = "select key, extract(epoch from expires_at - now()) / 60 from app.store_item"
        return {key: None if one is None else round(float(one), 1) for key, one in owner.execute(left)}


async def test_a_tenant_sees_and_changes_its_own_items_alone(pool: Database, other_tenant: UUID) -> None:
    ours, theirs = PostgresStore(pool, LOCAL_TENANT), PostgresStore(pool, other_tenant)
    await ours.aput(("n",), "a", {"of": "ours"})
    assert await theirs.aget(("n",), "a") is None
    assert await theirs.alist_namespaces() == await theirs.asearch(()) == []
    await theirs.aput(("n",), "a", {"of": "theirs"})
    await theirs.adelete(("n",), "a")
    assert keys(await ours.asearch(())) == ["a"]


async def test_the_items_of_a_tenant_go_with_it(pool: Database, other_tenant: UUID, owner_url: str) -> None:
    await PostgresStore(pool, other_tenant).aput(("n",), "a", {})
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute("delete from app.tenant where id = %s", (other_tenant,))
        assert owner.execute("select count(*) from app.store_item").fetchone() == (0,)


async def test_what_has_expired_is_not_there(pool: Database, owner_url: str) -> None:
    store = PostgresStore(pool, LOCAL_TENANT)
    for key in ("gone", "here"):
        await store.aput((key,), key, {"x": 1}, ttl=10)
    first = (await store.aget(("gone",), "gone")).created_at  # pyright: ignore[reportOptionalMemberAccess]
    expire(owner_url, "gone")
    assert await store.aget(("gone",), "gone") is None
    assert keys(await store.asearch((), filter={"x": 1})) == ["here"]
    assert await store.alist_namespaces() == [("here",)]
    await store.aput(("gone",), "gone", {})
    again = await store.aget(("gone",), "gone")
    assert again is not None
    assert again.created_at > first


async def test_a_read_refreshes_the_time_that_an_item_has_left(pool: Database, owner_url: str) -> None:
    store = PostgresStore(pool, LOCAL_TENANT)
    for key in ("read", "searched", "left", "unasked"):
        await store.aput((key,), key, {}, ttl=10)
    await store.aput(("ever",), "ever", {})
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute("update app.store_item set expires_at = now() + interval '1 minute' where expires_at is not null")
    await store.aget(("read",), "read")
    await store.asearch(("searched",))
    await store.aget(("ever",), "ever")
    await store.aget(("unasked",), "unasked", refresh_ttl=False)
    assert minutes_left(owner_url) == {"read": 10.0, "searched": 10.0, "left": 1.0, "unasked": 1.0, "ever": None}


async def test_the_graph_says_how_long_its_items_live_and_whether_reading_counts(
    pool: Database, owner_url: str
) -> None:
    ttl = TTLConfig(default_ttl=5, refresh_on_read=False)
    store = PostgresStore(pool, LOCAL_TENANT, ttl=ttl)
    await store.aput(("n",), "default", {})
    await store.aput(("n",), "own", {}, ttl=60)
    await store.aput(("n",), "ever", {}, ttl=None)
    assert minutes_left(owner_url) == {"default": 5.0, "own": 60.0, "ever": None}
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute("update app.store_item set expires_at = now() + interval '1 minute' where expires_at is not null")
    await store.asearch(("n",))
    assert minutes_left(owner_url) == {"default": 1.0, "own": 1.0, "ever": None}
    await store.aput(("n",), "own", {}, ttl=None)
    assert minutes_left(owner_url)["own"] is None


async def test_a_sweep_removes_what_has_expired_of_all_tenants(
    pool: Database, other_tenant: UUID, owner_url: str
) -> None:
    for tenant, key in ((LOCAL_TENANT, "a"), (other_tenant, "b"), (other_tenant, "c")):
        await PostgresStore(pool, tenant).aput(("n",), key, {}, ttl=10)
    await PostgresStore(pool, LOCAL_TENANT).aput(("n",), "ever", {})
    for key in ("a", "b"):
        expire(owner_url, key)
    assert await retention.delete_expired_items(pool, 1) == 1
    assert await retention.delete_expired_items(pool, 50) == 1
    assert await retention.delete_expired_items(pool, 50) == 0
    assert set(minutes_left(owner_url)) == {"c", "ever"}


async def test_puts_that_are_stored_later_are_seen_and_not_stored(pool: Database, owner_url: str) -> None:
    await PostgresStore(pool, LOCAL_TENANT).aput(("n",), "old", {}, ttl=10)
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute("update app.store_item set expires_at = now() + interval '1 minute'")
    unsaved = [ItemPut(("n",), "new", {"v": 1}), ItemPut(("n",), "new", {"v": 2}), ItemPut(("n",), "never", None)]
    async with pool.transaction(LOCAL_TENANT) as connection:
        ops: Sequence[Any] = [GetOp(("n",), "new"), SearchOp(("n",))]
        one, some = await store_items.read_items(connection, LOCAL_TENANT, ops, [None, None], unsaved)
    assert one.value == {"v": 2}
    assert keys(some) == ["old", "new"]
    assert minutes_left(owner_url) == {"old": 10.0}


async def test_vectors_of_another_embedder_are_not_compared(pool: Database) -> None:
    async def other(texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, 0.0, 0.0, 0.0, 0.0] for _ in texts]

    await a_store("postgres", pool, INDEX).aput(("n",), "a", {"text": "tea"})
    items = await a_store("postgres", pool, {**INDEX, "embed": other}).asearch(("n",), query="tea")
    assert [(item.key, item.score) for item in items] == [("a", None)]


async def test_an_embedding_of_another_size_is_rejected(pool: Database) -> None:
    with pytest.raises(ValueError, match="5 dimensions; the index has 7"):
        await a_store("postgres", pool, {**INDEX, "dims": 7}).aput(("n",), "a", {"text": "tea"})


def test_an_index_without_dimensions_or_without_a_function_is_rejected() -> None:
    with pytest.raises(InvalidInput, match="dims"):
        build_item_index({"embed": INDEX.get("embed", "")})
    with pytest.raises(InvalidInput, match="not supported"):
        build_item_index({"dims": 3, "embed": "openai:text-embedding-3-small"})


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"text": "x" * 200_000}, "200011 bytes"),
        ({"text": "a\0b"}, "NUL"),
        ({"n": 2**70}, "not JSON"),
        ({"o": object()}, "not JSON"),
        ({1: "x"}, "not JSON"),
    ],
    ids=["long", "nul", "number", "object", "key"],
)
async def test_a_value_that_cannot_be_stored_is_rejected(pool: Database, value: Any, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        await PostgresStore(pool, LOCAL_TENANT).aput(("n",), "k", value)


async def test_names_and_pages_have_limits(pool: Database) -> None:
    store = PostgresStore(pool, LOCAL_TENANT)
    await store.aput(("n" * 1000,), "k" * 1000, {})
    for doing in (
        store.aput(("n" * 1001,), "k", {}),
        store.aput(("n",), "k" * 1001, {}),
        store.aput(("n",), "k\0", {}),
        store.asearch(("n",), limit=10_001),
        store.asearch(("n",), offset=-1),
        store.alist_namespaces(limit=-1),
    ):
        with pytest.raises(InvalidInput):
            await doing


async def test_a_tenant_has_a_maximum_of_items(pool: Database) -> None:
    store = PostgresStore(pool, LOCAL_TENANT)
    for key in ("a", "b"):
        await store.aput(("n",), key, {})
    items = TenantItems(pool, LOCAL_TENANT, max_items=3)
    await items.check_capacity(1)
    with pytest.raises(InvalidInput, match="more than 3 items"):
        await TenantItems(pool, LOCAL_TENANT, max_items=3).check_capacity(2)


async def test_two_writers_of_the_same_items_do_not_wait_for_each_other_for_ever(pool: Database) -> None:
    stores = [PostgresStore(pool, LOCAL_TENANT) for _ in range(3)]
    names = [f"{n}" for n in range(20)]

    async def write(store: PostgresStore, order: Sequence[str]) -> None:
        puts = [ItemPut(("n",), key, {}) for key in order]
        for _ in range(5):
            async with pool.transaction(LOCAL_TENANT) as connection:
                await store_items.write_items(connection, LOCAL_TENANT, puts)

    orders = (names, names[::-1], sorted(names))
    await asyncio.gather(*(write(store, order) for store, order in zip(stores, orders, strict=True)))


async def test_waiting_on_the_event_loop_is_rejected(pool: Database) -> None:
    with pytest.raises(EventLoopBlockedError, match="aget"):
        PostgresStore(pool, LOCAL_TENANT).get(("n",), "k")
