"""A stand-in for a server of embedding models and rerankers, with the wires of OpenAI, Ollama and Cohere.

It rejects what real ones reject: blank texts, and texts that are longer than the model takes. Opens no socket.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.model_provider.embeddings import DIMENSIONS, shared_words, word_vector
from tests.model_provider.replies import Fault, Reply, Whole
from tests.model_provider.server import Received

Json = dict[str, Any]


def _unchanged(body: Json) -> Json:
    return body


@dataclass(slots=True)
class RetrievalModels:
    """A responder for `WireServer`."""

    first: tuple[Reply, ...] = ()
    """Replies to the first requests, in order."""
    change: Callable[[Json], Json] = _unchanged
    """What becomes of a body before it is sent."""
    dimensions: int = DIMENSIONS
    max_chars: int = 100_000
    too_long: Fault = field(
        default_factory=lambda: Fault(400, "This model's maximum context length is 9", "context_length_exceeded")
    )

    def __call__(self, request: Received) -> Reply:
        if self.first:
            reply, self.first = self.first[0], self.first[1:]
            return reply
        texts: list[str] = request.body.get("input") or request.body.get("documents") or []
        if not texts or not all(text.strip() for text in texts):
            return Fault(400, "input cannot be an empty string")
        if any(len(text) > self.max_chars for text in texts):
            return self.too_long
        if request.path.endswith("/rerank"):
            return Whole(self.change(self._rank(request.body, texts)))
        length = request.body.get("dimensions", self.dimensions)
        vectors = [word_vector(text, length) for text in texts]
        if request.path.endswith("/api/embed"):
            return Whole(self.change({"embeddings": vectors, "prompt_eval_count": _count(texts)}))
        return Whole(self.change(self._embed(request.body["model"], vectors, texts)))

    def _embed(self, model: str, vectors: list[list[float]], texts: list[str]) -> Json:
        rows = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
        usage = {"prompt_tokens": _count(texts), "total_tokens": _count(texts)}
        return {"object": "list", "model": model, "data": rows, "usage": usage}

    def _rank(self, body: Json, texts: list[str]) -> Json:
        scores = [shared_words(body["query"], text) for text in texts]
        results = [{"index": index, "relevance_score": score} for index, score in enumerate(scores)]
        results.sort(key=lambda result: -result["relevance_score"])
        tokens = _count([body["query"], *texts])
        return {
            "id": "rerank-1",
            "results": results,
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
            "meta": {"billed_units": {"search_units": 1}},
        }


def _count(texts: list[str]) -> int:
    """Tokens, as this server counts them."""
    return sum(len(text.split()) for text in texts)
