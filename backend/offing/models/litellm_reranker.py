"""Rerankers of all providers of litellm that have one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from offing.core.model import InvalidOutput, Usage
from offing.models.embedding import RerankScores
from offing.models.litellm_client import price_rerank
from offing.models.litellm_request import estimate_tokens
from offing.models.retrieval_model import (
    INTERACTIVE_LIMITS,
    MAX_PASSAGE_CHARS,
    MAX_QUERY_CHARS,
    RetrievalModel,
    replace_surrogates,
    send_shortened,
)
from offing.models.role_call import AttemptFailure

RERANK_PROVIDERS = frozenset(
    {"azure_ai", "bedrock", "cohere", "dashscope", "deepinfra", "fireworks_ai", "hosted_vllm", "huggingface"}
    | {"infinity", "jina_ai", "litellm_proxy", "nvidia_nim", "qwen_ai_platform", "qwencloud", "scaleway"}
    | {"together_ai", "vertex_ai", "voyage", "watsonx"}
)
"""Providers whose rerankers litellm can call."""
MAX_TEXTS_PER_REQUEST = 100
"""Maximum number of texts per request. Some providers bill each hundred as one search."""


@dataclass(frozen=True, slots=True)
class _Reply:
    """Scores of one request by the place of their text, and its usage."""

    scores: dict[int, float]
    usage: Usage


@dataclass(frozen=True, slots=True)
class LitellmReranker:
    """A reranker that is called through litellm.

    Of the query, the first 2,000 code points are sent, and of each text the first 8,000, or fewer if the
    model rejects them as too long. A blank text is not sent. It and texts that the model leaves out get
    the same score, below all others.
    """

    model: RetrievalModel

    async def rerank(self, query: str, texts: Sequence[str]) -> RerankScores | AttemptFailure:
        """Return the score of each text. Without a query, all scores are 0 and nothing is sent.

        A failed request has at most two attempts and waits for seconds.
        """
        places = [place for place, text in enumerate(texts) if text.strip()]
        if not places or not query.strip():
            return RerankScores((0.0,) * len(texts), Usage())
        usage, scores = Usage(), dict[int, float]()
        for start in range(0, len(places), MAX_TEXTS_PER_REQUEST):
            batch = places[start : start + MAX_TEXTS_PER_REQUEST]
            reply = await self._rerank_batch(query, [texts[place] for place in batch])
            usage += reply.usage
            if isinstance(reply, AttemptFailure):
                return replace(reply, usage=usage)
            scores |= {batch[index]: score for index, score in reply.scores.items()}
        lowest = min(scores.values()) - 1.0
        return RerankScores(tuple(scores.get(place, lowest) for place in range(len(texts))), usage)

    async def _rerank_batch(self, query: str, texts: Sequence[str]) -> _Reply | AttemptFailure:
        async def send(shortened: Sequence[str]) -> _Reply | AttemptFailure:
            return await self._send(replace_surrogates(query[:MAX_QUERY_CHARS]), shortened)

        return await send_shortened(send, texts, MAX_PASSAGE_CHARS)

    async def _send(self, query: str, texts: Sequence[str]) -> _Reply | AttemptFailure:
        documents = [replace_surrogates(text) for text in texts]
        arguments: dict[str, Any] = {
            "query": query,
            "documents": documents,
            "top_n": len(documents),
            "return_documents": False,
        }
        response = await self.model.call("arerank", arguments, INTERACTIVE_LIMITS)
        if isinstance(response, AttemptFailure):
            return response
        usage = await price_rerank(self.model.name, response, estimate_tokens(query, *documents))
        scores = read_scores(response.results, len(documents))
        if isinstance(scores, InvalidOutput):
            return replace(self.model.reject(scores.problem, "Check what its server runs."), usage=usage)
        return _Reply(scores, usage)


def read_scores(results: Any, count: int) -> dict[int, float] | InvalidOutput:
    """Read the scores of litellm's response by the index of their text.

    A server may return fewer results than texts, but at least one.
    """
    scores: dict[int, float] = {}
    for result in results or ():
        index, score = result.get("index"), result.get("relevance_score")
        if type(index) is not int or not 0 <= index < count:
            return InvalidOutput(f"the index {index!r} for {count} texts")
        if index in scores:
            return InvalidOutput(f"the index {index} twice")
        if not isinstance(score, int | float) or not math.isfinite(score):
            return InvalidOutput("a score that is not a finite number")
        scores[index] = float(score)
    return scores or InvalidOutput("no results")
