"""The models of the document library: one that embeds passages and queries, and one that reranks what was found.

Both are optional. A search whose model does not answer in time returns the ranking without that model and says so.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Protocol, TypeVar
from uuid import UUID

import structlog

from offing.core.model import Usage
from offing.core.rank_fusion import compute_fused_score
from offing.core.run import StopReason
from offing.models.embedding import Embedder, Reranker
from offing.models.embedding_models import open_embedder, open_reranker
from offing.models.litellm_client import get_litellm
from offing.models.role_call import AttemptFailure
from offing.services.tenant_meter import TenantMeter
from offing.settings import Settings
from offing.storage import vectors
from offing.storage.pool import Database
from offing.storage.search import PassageHitRow
from offing.storage.vector_search import QueryVector

MAX_QUERY_SECONDS = 5.0
"""Maximum number of seconds that a search waits for each of the two models."""

MAX_RERANKED = 50
"""Number of the best passages that the reranker scores."""

INCOMPLETE = "Some documents have no vectors yet, and are found by their words alone."

MIN_CALL_COST_USD = Decimal("0.000001")
"""Cost that a tenant's daily spending limit must still allow before a model is called."""


@dataclass(frozen=True, slots=True)
class LibraryModels:
    """The models that searches of the library use. `None` means that there is no such model."""

    embedder: Embedder | None = None
    reranker: Reranker | None = None


NO_MODELS = LibraryModels()


def open_library_models(settings: Settings) -> LibraryModels:
    """Return the models that the settings name. Raises InvalidInput if one can never be called.

    Their client is loaded in the background, because that takes longer than a search may wait. Call this on the event
    loop that uses the models.
    """
    models = LibraryModels(open_embedder(settings), open_reranker(settings))
    if models != NO_MODELS:
        _loading.add(task := asyncio.create_task(get_litellm()))
        task.add_done_callback(_loading.discard)
    return models


_loading = set[asyncio.Task[Any]]()
"""References to running tasks, which the event loop does not keep."""


@dataclass(frozen=True, slots=True)
class PassageSearch:
    """The result of a search."""

    hits: list[PassageHitRow]
    """The passages, best first."""
    notices: tuple[str, ...] = ()
    """What the search could not do, as sentences."""


class ModelResult(Protocol):
    """What a model returns."""

    @property
    def usage(self) -> Usage: ...


ResultT = TypeVar("ResultT", bound=ModelResult)

log = structlog.get_logger("offing.library")


async def embed_query(database: Database, tenant_id: UUID, query: str, embedder: Embedder) -> QueryVector | str:
    """Return the vector of a query, or a sentence that says why the search does without it."""
    async with database.transaction(tenant_id) as connection:
        model = await vectors.find_model(connection, tenant_id, embedder.key)
    if model is None:
        return "The passages are ranked by their words alone, because no document has vectors yet."
    meter = TenantMeter(database, tenant_id)
    result = await _call_model(meter, lambda: embedder.embed([query], "query"))
    if isinstance(result, str):
        log.warning("a query was not embedded", reason=result)
        return f"The passages are ranked by their words alone, because the embedding model was not used: {result}"
    (vector,) = result.vectors
    if len(vector) != model.dimensions:
        problem = f"the model returned {len(vector)} dimensions, but the stored vectors have {model.dimensions}"
        log.warning("a query was not embedded", reason=problem)
        return f"The passages are ranked by their words alone, because {problem}."
    return QueryVector(model.id, vector, model.is_complete)


async def rerank_hits(
    database: Database, tenant_id: UUID, query: str, hits: list[PassageHitRow], reranker: Reranker
) -> PassageSearch:
    """Order the best hits by the scores of the reranker. The score of a hit becomes that of its rank."""
    texts = ["\n".join(filter(None, (hit.title, hit.heading, hit.text))) for hit in hits[:MAX_RERANKED]]
    if not texts:
        return PassageSearch(hits)
    result = await _call_model(TenantMeter(database, tenant_id), lambda: reranker.rerank(query, texts))
    if isinstance(result, str):
        log.warning("hits were not reranked", reason=result)
        return PassageSearch(hits, (f"The passages are not reranked, because the reranker was not used: {result}",))
    order = sorted(range(len(texts)), key=lambda place: -result.scores[place])
    ranked = [*(hits[place] for place in order), *hits[MAX_RERANKED:]]
    return PassageSearch([replace(hit, score=compute_fused_score([rank])) for rank, hit in enumerate(ranked, 1)])


async def _call_model(meter: TenantMeter, call: Callable[[], Awaitable[ResultT | AttemptFailure]]) -> ResultT | str:
    """Return the result of a call, or a sentence that says why there is none. The tenant pays for the usage."""
    if await meter.reserve(0, MIN_CALL_COST_USD) is StopReason.TENANT_SPEND_LIMIT:
        return "The daily spending limit is reached."
    try:
        async with asyncio.timeout(MAX_QUERY_SECONDS):
            result = await call()
    except TimeoutError:
        return f"It did not answer within {MAX_QUERY_SECONDS:g} seconds."
    await meter.settle(result.usage)
    return result.message if isinstance(result, AttemptFailure) else result
