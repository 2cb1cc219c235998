"""Vector index of items: which texts of a value are embedded, and by which model."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from langchain_core.embeddings import Embeddings
from langgraph.store.base import IndexConfig, PutOp, ensure_embeddings, get_text_at_path, tokenize_path

from offing.core.errors import InvalidInput
from offing.core.store_item import ItemPut, Vectors, pack_vectors

WHOLE_VALUE_FIELDS = ("$",)
"""Index field for the whole value of an item, as JSON."""

MAX_TEXTS_PER_ITEM = 100
"""Maximum number of indexed texts per item."""


@dataclass(frozen=True, slots=True)
class ItemIndex:
    """The index configuration of the items of a graph."""

    embeddings: Embeddings
    embedder_name: str
    """Name of the embedding model. Vectors of different models are not compared."""
    dims: int
    fields: tuple[str, ...] = WHOLE_VALUE_FIELDS

    async def embed_query(self, text: str) -> Vectors:
        """Return the vector of a search query."""
        return pack_vectors(self.embedder_name, self.dims, [await self.embeddings.aembed_query(text)])

    async def embed_puts(self, puts: Sequence[tuple[PutOp, ItemPut]]) -> list[ItemPut]:
        """Return the puts with vectors of their texts. All texts are embedded together."""
        texts = [self._extract_texts(op, put) for op, put in puts]
        unique_texts = list(dict.fromkeys(text for some in texts for text in some))
        vectors = dict(zip(unique_texts, await self._embed_texts(unique_texts), strict=True))
        return [
            replace(put, vectors=pack_vectors(self.embedder_name, self.dims, [vectors[text] for text in some]))
            if some
            else put
            for (_, put), some in zip(puts, texts, strict=True)
        ]

    def _extract_texts(self, op: PutOp, put: ItemPut) -> list[str]:
        if op.value is None or op.index is False:
            return []
        paths: Iterable[Any] = op.index or self.fields
        fragments = [text for path in paths for text in get_text_at_path(put.value, tokenize_path(path))]
        if len(fragments) > MAX_TEXTS_PER_ITEM:
            what = f"{len(fragments)} texts of one item would be indexed"
            raise InvalidInput("index", what, f"Choose fields with at most {MAX_TEXTS_PER_ITEM} texts.")
        return fragments

    async def _embed_texts(self, texts: list[str]) -> Sequence[Sequence[float]]:
        return await self.embeddings.aembed_documents(texts) if texts else []


def build_item_index(config: IndexConfig | None) -> ItemIndex | None:
    """Return the index that a graph declares in LangGraph's format. `None` means that it declares none.

    Raises InvalidInput.
    """
    if config is None:
        return None
    embed, dims = config.get("embed"), config.get("dims")
    if embed is None or not dims:
        raise InvalidInput("store_index", "`dims` or `embed` is missing", "Set both.")
    if isinstance(embed, str):
        problem = f"`embed` is the name of a model, {embed!r}, which is not supported"
        raise InvalidInput("store_index", problem, "Set it to a function or to LangChain's Embeddings.")
    fields = tuple(config.get("fields") or WHOLE_VALUE_FIELDS)
    return ItemIndex(ensure_embeddings(embed), _embedder_name(embed), dims, fields)


def _embedder_name(embed: Any) -> str:
    named = cast(Any, embed if hasattr(embed, "__qualname__") else type(embed))
    model = getattr(embed, "model", None) or getattr(embed, "model_name", None)
    return f"{named.__module__}.{named.__qualname__}" + (f" {model}" if isinstance(model, str) else "")


async def embed_queries(index: ItemIndex | None, ops: Sequence[Any]) -> list[Vectors | None]:
    """Return the query vector of each operation. `None` means no query text or no index."""

    async def vector(op: Any) -> Vectors | None:
        text = getattr(op, "query", None)
        return await index.embed_query(text) if index and text else None

    return list(await asyncio.gather(*map(vector, ops)))
