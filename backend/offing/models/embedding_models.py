"""The embedding model and the reranker that the settings name.

litellm is imported at the first call, not when they are opened.
"""

from collections.abc import Mapping

from offing import environment
from offing.core.errors import InvalidInput, Unavailable
from offing.core.model import EngineConfig, EngineFailure
from offing.models.api_base import parse_api_base
from offing.models.credentials import INVALID_BASE_MESSAGE
from offing.models.embedding import Embedder, Reranker
from offing.models.litellm_request import parse_options
from offing.models.retrieval_model import RetrievalModel
from offing.models.role_call import AttemptFailure
from offing.settings import Settings

EMBEDDING_PREFIX = "OFFING_EMBEDDING"
RERANK_PREFIX = "OFFING_RERANK"


def open_embedder(settings: Settings, env: Mapping[str, str] = environment.VARIABLES) -> Embedder | None:
    """Return the embedding model of the settings. `None` means that none is set up.

    Keys come from `env`. No request is sent. Raises InvalidInput that names the setting if the model or
    its address can never be called.
    """
    from offing.models.litellm_embedder import LitellmEmbedder

    if not settings.embedding_model:
        return None
    _check_model(EMBEDDING_PREFIX, settings.embedding_model, settings.embedding_api_base)
    model = RetrievalModel(
        EMBEDDING_PREFIX, "embedding model", settings.embedding_model, settings.embedding_api_base, env
    )
    return LitellmEmbedder(
        model,
        settings.embedding_dimensions,
        settings.embedding_query_prefix,
        settings.embedding_passage_prefix,
        settings.embedding_batch_size,
    )


def open_reranker(settings: Settings, env: Mapping[str, str] = environment.VARIABLES) -> Reranker | None:
    """Return the reranker of the settings. `None` means that none is set up.

    Keys come from `env`. No request is sent. Raises InvalidInput as `open_embedder`, and if the provider
    has no rerankers.
    """
    from offing.models.litellm_reranker import RERANK_PROVIDERS, LitellmReranker

    if not settings.rerank_model:
        return None
    _check_model(RERANK_PREFIX, settings.rerank_model, settings.rerank_api_base)
    provider = settings.rerank_model.partition("/")[0]
    if provider not in RERANK_PROVIDERS:
        remedy = f"Use a model of one of: {', '.join(sorted(RERANK_PROVIDERS))}."
        raise InvalidInput(f"{RERANK_PREFIX}_MODEL", f"{provider} has no rerankers", remedy)
    return LitellmReranker(
        RetrievalModel(RERANK_PREFIX, "reranker", settings.rerank_model, settings.rerank_api_base, env)
    )


async def describe_embedder(embedder: Embedder) -> str:
    """Embed one word and describe the vector. Raises Unavailable with the reason and the remedy."""
    outcome = await embedder.embed(["word"], "query")
    if isinstance(outcome, AttemptFailure):
        raise Unavailable(outcome.message)
    return f"{embedder.key}, vectors of {outcome.vectors.shape[1]} numbers"


async def describe_reranker(reranker: Reranker, name: str) -> str:
    """Score two texts and describe the result. Raises Unavailable as `describe_embedder`."""
    outcome = await reranker.rerank("capital of France", ["Water is wet.", "Paris is the capital of France."])
    if isinstance(outcome, AttemptFailure):
        raise Unavailable(outcome.message)
    first, second = outcome.scores
    if second <= first:
        raise Unavailable(f"{name} ranks a wrong answer first ({first:g} against {second:g}). Is it a reranker?")
    return f"{name}, scores such as {second:.3g} and {first:.3g}"


def _check_model(prefix: str, model: str, api_base: str) -> None:
    """Raise InvalidInput if a model or its address can never be called, by the rules of engines."""
    failure = parse_options(EngineConfig(engine="litellm", model=model))
    if isinstance(failure, EngineFailure):
        problem, _, remedy = failure.message.removeprefix("model: ").partition(". ")
        raise InvalidInput(f"{prefix}_MODEL", problem, remedy)
    if api_base and parse_api_base(api_base) is None:
        raise InvalidInput(f"{prefix}_API_BASE", INVALID_BASE_MESSAGE, "Use http://HOST:PORT, or with a path.")
