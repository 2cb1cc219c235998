"""Stores that must behave alike: LangGraph's own in memory, and ours."""

import asyncio
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from langgraph.store.base import IndexConfig, Op, PutOp
from langgraph.store.memory import InMemoryStore

from offing.kernel.item_index import build_item_index, embed_queries
from offing.kernel.item_store import ItemStore
from offing.kernel.run_items import PrivateItems
from offing.services.store_items import PostgresStore
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database

KINDS = ("langgraph", "postgres", "own")

WORDS = ("tea", "coffee", "boat", "sea")


async def embed(texts: Sequence[str]) -> list[list[float]]:
    """Vectors that say which words a text has."""
    return [[float(word in text) for word in WORDS] + [0.1] for text in texts]


INDEX = IndexConfig(dims=5, embed=embed, fields=["text", "notes[*].text"])


class OffingStore(ItemStore):
    """Items of one run, without the run."""

    def __init__(self, index: IndexConfig | None) -> None:
        super().__init__(build_item_index(index))
        self.items = PrivateItems(self._nothing)

    async def _nothing(self) -> list[Any]:
        return []

    def batch(self, ops: Any) -> list[Any]:
        return asyncio.run(self.abatch(ops))

    async def _read_items(self, ops: Sequence[Op]) -> Sequence[Any]:
        return await self.items.read_items(ops, await embed_queries(self.index, ops))

    async def _put_items(self, ops: Sequence[PutOp]) -> None:
        await self.items.add_puts(await self._build_puts(ops), datetime.now(UTC))


def a_store(kind: str, pool: Database, index: IndexConfig | None = None) -> Any:
    match kind:
        case "langgraph":
            return InMemoryStore(index=index)
        case "postgres":
            return PostgresStore(pool, LOCAL_TENANT, index=build_item_index(index))
        case _:
            return OffingStore(index)


def keys(results: Sequence[Any]) -> list[str]:
    return [item.key for item in results]


def cosine(text: str, other: str) -> float:
    a, b = ([float(word in one) for word in WORDS] + [0.1] for one in (text, other))
    return sum(x * y for x, y in zip(a, b, strict=True)) / (math.hypot(*a) * math.hypot(*b))
