"""The items of LangGraph's store of a tenant: as its runs share them, and as a store of their own."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from langgraph.store.base import Op, PutOp, Result, TTLConfig

from offing.core.store_item import ItemPut, Vectors
from offing.kernel.item_index import ItemIndex, query_vectors
from offing.kernel.item_store import ON_LOOP, ItemStore
from offing.kernel.run_items import check_room
from offing.sdk.running import BlockedLoop, on_loop
from offing.storage import store_items
from offing.storage.pool import Database

MAX_ITEMS = 100_000
"""Items of a tenant."""

COUNT_AFTER = 100
"""Items after which a run's are counted again."""


class TenantItems:
    """The items of a tenant as a run reads them. What it puts goes with its steps."""

    def __init__(self, database: Database, tenant: UUID, max_items: int = MAX_ITEMS) -> None:
        self._database, self._tenant, self._max_items = database, tenant, max_items
        self._room = 0

    async def read_items(
        self, ops: Sequence[Any], queries: Sequence[Vectors | None], unsaved: Sequence[ItemPut]
    ) -> Sequence[Any]:
        async with self._database.transaction(self._tenant) as connection:
            return await store_items.read(connection, self._tenant, ops, queries, unsaved)

    async def check_room(self, new: int) -> None:
        if new > self._room:
            async with self._database.transaction(self._tenant) as connection:
                stored = await store_items.count_up_to(connection, self._tenant, self._max_items)
            check_room(stored + new, self._max_items)
            self._room = max(new, min(COUNT_AFTER, self._max_items - stored))
        self._room -= new


class PostgresStore(ItemStore):
    """LangGraph's store over the items of a tenant, for code outside runs. Made on the event loop that it uses."""

    def __init__(
        self, database: Database, tenant: UUID, *, index: ItemIndex | None = None, ttl: TTLConfig | None = None
    ) -> None:
        super().__init__(index, ttl)
        self._database, self._tenant = database, tenant
        self._items, self._loop = TenantItems(database, tenant), asyncio.get_running_loop()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """See BaseStore; for other threads. Raises BlockedLoop on the event loop itself, which would wait for ever."""
        if on_loop(self._loop):
            raise BlockedLoop(ON_LOOP)
        return asyncio.run_coroutine_threadsafe(self.abatch(ops), self._loop).result()

    async def _read(self, ops: Sequence[Op]) -> Sequence[Any]:
        return await self._items.read_items(ops, await query_vectors(self.index, ops), ())

    async def _put(self, ops: Sequence[PutOp]) -> None:
        await self._items.check_room(sum(op.value is not None for op in ops))
        puts = await self._indexed(ops)
        async with self._database.transaction(self._tenant) as connection:
            await store_items.put(connection, self._tenant, puts)
