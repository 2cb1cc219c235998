"""Items of a tenant's LangGraph store: for its runs, and as a store for code outside runs."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from langgraph.store.base import Op, PutOp, Result, TTLConfig

from offing.core.store_item import ItemPut, Vectors
from offing.kernel.item_index import ItemIndex, embed_queries
from offing.kernel.item_store import BLOCKED_LOOP_MESSAGE, ItemStore
from offing.kernel.run_items import check_item_count
from offing.sdk.current_run import EventLoopBlockedError, is_on_loop
from offing.storage import store_items
from offing.storage.pool import Database

MAX_ITEMS_PER_TENANT = 100_000
"""Maximum number of items of a tenant."""

RECOUNT_AFTER_ITEMS = 100
"""Number of written items after which the items are counted again."""


class TenantItems:
    """The items of a tenant as a run reads them. What the run writes is stored with its steps."""

    def __init__(self, database: Database, tenant_id: UUID, max_items: int = MAX_ITEMS_PER_TENANT) -> None:
        self._database, self._tenant, self._max_items = database, tenant_id, max_items
        self._remaining = 0

    async def read_items(
        self, ops: Sequence[Any], queries: Sequence[Vectors | None], unsaved: Sequence[ItemPut]
    ) -> Sequence[Any]:
        async with self._database.transaction(self._tenant) as connection:
            return await store_items.read_items(connection, self._tenant, ops, queries, unsaved)

    async def check_capacity(self, new_items: int) -> None:
        if new_items > self._remaining:
            async with self._database.transaction(self._tenant) as connection:
                stored = await store_items.count_items(connection, self._tenant, self._max_items)
            check_item_count(stored + new_items, self._max_items)
            self._remaining = max(new_items, min(RECOUNT_AFTER_ITEMS, self._max_items - stored))
        self._remaining -= new_items


class PostgresStore(ItemStore):
    """LangGraph's store over the items of a tenant, for code outside runs.

    Create it on the event loop that it uses.
    """

    def __init__(
        self, database: Database, tenant_id: UUID, *, index: ItemIndex | None = None, ttl: TTLConfig | None = None
    ) -> None:
        super().__init__(index, ttl)
        self._database, self._tenant = database, tenant_id
        self._items, self._loop = TenantItems(database, tenant_id), asyncio.get_running_loop()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations from another thread; see BaseStore.

        Raises EventLoopBlockedError on the event loop itself, where it would wait forever.
        """
        if is_on_loop(self._loop):
            raise EventLoopBlockedError(BLOCKED_LOOP_MESSAGE)
        return asyncio.run_coroutine_threadsafe(self.abatch(ops), self._loop).result()

    async def _read_items(self, ops: Sequence[Op]) -> Sequence[Any]:
        return await self._items.read_items(ops, await embed_queries(self.index, ops), ())

    async def _put_items(self, ops: Sequence[PutOp]) -> None:
        await self._items.check_capacity(sum(op.value is not None for op in ops))
        puts = await self._build_puts(ops)
        async with self._database.transaction(self._tenant) as connection:
            await store_items.write_items(connection, self._tenant, puts)
