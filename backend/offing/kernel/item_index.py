"""By which texts of its value an item is found, and what makes vectors of them."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from langchain_core.embeddings import Embeddings
from langgraph.store.base import IndexConfig, PutOp, ensure_embeddings, get_text_at_path, tokenize_path

from offing.core.errors import InvalidInput
from offing.core.store_item import ItemPut, Vectors, vectors_of

WHOLE = ("$",)
"""All of an item's value, as JSON."""

MAX_TEXTS = 100
"""Texts of one item."""


@dataclass(frozen=True, slots=True)
class ItemIndex:
    """How the items of a graph are indexed."""

    embeddings: Embeddings
    embedder: str
    """Its name: vectors of others are not compared with its own."""
    dims: int
    fields: tuple[str, ...] = WHOLE

    async def query(self, text: str) -> Vectors:
        """Return the vector of what a search asks for."""
        return vectors_of(self.embedder, self.dims, [await self.embeddings.aembed_query(text)])

    async def indexed(self, puts: Sequence[tuple[PutOp, ItemPut]]) -> list[ItemPut]:
        """Return the puts with the vectors of their texts, which are embedded together."""
        texts = [self._texts(op, put) for op, put in puts]
        wanted = list(dict.fromkeys(text for some in texts for text in some))
        found = dict(zip(wanted, await self._embedded(wanted), strict=True))
        return [
            replace(put, vectors=vectors_of(self.embedder, self.dims, [found[text] for text in some])) if some else put
            for (_, put), some in zip(puts, texts, strict=True)
        ]

    def _texts(self, op: PutOp, put: ItemPut) -> list[str]:
        if op.value is None or op.index is False:
            return []
        paths: Iterable[Any] = op.index or self.fields
        found = [text for path in paths for text in get_text_at_path(put.value, tokenize_path(path))]
        if len(found) > MAX_TEXTS:
            what = f"{len(found)} texts of one item are to be indexed"
            raise InvalidInput("index", what, f"Name fields with at most {MAX_TEXTS} texts.")
        return found

    async def _embedded(self, texts: list[str]) -> Sequence[Sequence[float]]:
        return await self.embeddings.aembed_documents(texts) if texts else []


def item_index(config: IndexConfig | None) -> ItemIndex | None:
    """Return the index that a graph declares in LangGraph's words. `None`: it declares none. Raises InvalidInput."""
    if config is None:
        return None
    embed, dims = config.get("embed"), config.get("dims")
    if embed is None or not dims:
        raise InvalidInput("store_index", "it names no dimensions or nothing to embed with", "Give dims and embed.")
    if isinstance(embed, str):
        problem = f"it names the model {embed!r}, and only functions are taken"
        raise InvalidInput("store_index", problem, "Give embed a function, or LangChain's Embeddings.")
    fields = tuple(config.get("fields") or WHOLE)
    return ItemIndex(ensure_embeddings(embed), _name(embed), dims, fields)


def _name(embed: Any) -> str:
    named = cast(Any, embed if hasattr(embed, "__qualname__") else type(embed))
    model = getattr(embed, "model", None) or getattr(embed, "model_name", None)
    return f"{named.__module__}.{named.__qualname__}" + (f" {model}" if isinstance(model, str) else "")


async def query_vectors(index: ItemIndex | None, ops: Sequence[Any]) -> list[Vectors | None]:
    """Return the vector of each operation that asks in words. Without an index none does."""

    async def vector(op: Any) -> Vectors | None:
        text = getattr(op, "query", None)
        return await index.query(text) if index and text else None

    return list(await asyncio.gather(*map(vector, ops)))
