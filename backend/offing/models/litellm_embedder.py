"""Embedding models of all providers of litellm."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offing.core.model import InvalidOutput, Usage
from offing.models.embedding import EmbeddingPurpose, Embeddings
from offing.models.litellm_client import price_embedding
from offing.models.litellm_request import estimate_tokens
from offing.models.retrieval_model import (
    BACKGROUND_LIMITS,
    INTERACTIVE_LIMITS,
    MAX_PASSAGE_CHARS,
    MAX_QUERY_CHARS,
    RetrievalModel,
    replace_surrogates,
    send_shortened,
)
from offing.models.role_call import AttemptFailure

Vectors = NDArray[np.float32]

PURPOSE_PARAMETERS: Mapping[str, Mapping[EmbeddingPurpose, Mapping[str, str]]] = {
    "cohere": {"query": {"input_type": "search_query"}, "passage": {"input_type": "search_document"}},
    "voyage": {"query": {"input_type": "query"}, "passage": {"input_type": "document"}},
    "nvidia_nim": {"query": {"input_type": "query"}, "passage": {"input_type": "passage"}},
    "gemini": {"query": {"task_type": "RETRIEVAL_QUERY"}, "passage": {"task_type": "RETRIEVAL_DOCUMENT"}},
}
"""Providers with a parameter that tells a query from a passage. Models of other providers use prefixes."""

MAX_BATCH_CHARS = 200_000
"""Maximum number of code points per request. OpenAI accepts 300,000 tokens."""
_LIMITS = {"query": INTERACTIVE_LIMITS, "passage": BACKGROUND_LIMITS}
_MAX_CHARS = {"query": MAX_QUERY_CHARS, "passage": MAX_PASSAGE_CHARS}
_CHANGED_MODEL = "Check what its server runs. A different model needs a different OFFING_EMBEDDING_MODEL."


@dataclass(slots=True)
class LitellmEmbedder:
    """An embedding model that is called through litellm.

    Texts are sent in batches. Of a query, the first 2,000 code points are sent, and of a passage the
    first 8,000, or fewer if the model rejects them as too long. A blank text is not sent, because
    providers reject it, and gets a row of zeros.
    """

    model: RetrievalModel
    dimensions: int | None = None
    """Requested length of vectors. `None` means the model's own."""
    query_prefix: str = ""
    passage_prefix: str = ""
    batch_size: int = 32
    """Maximum number of texts per request."""
    known_dimensions: int | None = field(default=None, init=False)
    """Length of the vectors so far. `None` before the first response."""

    @property
    def key(self) -> str:
        """The model with its dimensions and prefixes, without its server.

        Several servers may serve the same model.
        """
        parts = {"dimensions": self.dimensions, "query": self.query_prefix, "passage": self.passage_prefix}
        changed = [f"{name}={json.dumps(value)}" for name, value in parts.items() if value]
        return " ".join([self.model.name, *changed])

    async def embed(self, texts: Sequence[str], purpose: EmbeddingPurpose) -> Embeddings | AttemptFailure:
        """Return the vectors of these texts, or the first failure with the usage of all batches.

        A failed query has at most two attempts and waits for seconds; a passage has four and may wait for
        minutes.
        """
        places = [place for place, text in enumerate(texts) if text.strip()]
        usage, parts = Usage(), list[Vectors]()
        sendable = [texts[place][: _MAX_CHARS[purpose]] for place in places]
        for batch in split_batches(sendable, self.batch_size):
            outcome = await self._embed_batch(batch, purpose)
            usage += outcome.usage
            if isinstance(outcome, AttemptFailure):
                return replace(outcome, usage=usage)
            parts.append(outcome.vectors)
        if texts and not places and self.known_dimensions is None:
            outcome = await self._embed_batch(["text"], purpose)  # tells the dimensions of the rows of zeros
            if isinstance(outcome, AttemptFailure):
                return outcome
            usage += outcome.usage
        vectors = np.zeros((len(texts), self.known_dimensions or 0), dtype=np.float32)
        if parts:
            vectors[places] = np.concatenate(parts)
        return Embeddings(vectors, usage)

    async def _embed_batch(self, texts: Sequence[str], purpose: EmbeddingPurpose) -> Embeddings | AttemptFailure:
        """Embed texts of one batch, none of them blank."""

        async def send(shortened: Sequence[str]) -> Embeddings | AttemptFailure:
            return await self._send(shortened, purpose)

        return await send_shortened(send, texts, _MAX_CHARS[purpose])

    async def _send(self, texts: Sequence[str], purpose: EmbeddingPurpose) -> Embeddings | AttemptFailure:
        prefix = self.query_prefix if purpose == "query" else self.passage_prefix
        inputs = [replace_surrogates(prefix + text) for text in texts]
        arguments = self._build_arguments(inputs, purpose)
        response = await self.model.call("aembedding", arguments, _LIMITS[purpose])
        if isinstance(response, AttemptFailure):
            return response
        usage = await price_embedding(self.model.name, response, estimate_tokens(*inputs))
        vectors = read_vectors(response.data, len(inputs))
        if isinstance(vectors, InvalidOutput):
            return replace(self.model.reject(vectors.problem, "Check what its server runs."), usage=usage)
        if (problem := self._check_dimensions(vectors.shape[1])) is not None:
            return replace(self.model.reject(problem, _CHANGED_MODEL), usage=usage)
        self.known_dimensions = vectors.shape[1]
        return Embeddings(normalize_rows(vectors), usage)

    def _build_arguments(self, inputs: Sequence[str], purpose: EmbeddingPurpose) -> dict[str, Any]:
        arguments: dict[str, Any] = {"input": list(inputs), "drop_params": False}
        if self.dimensions is not None:
            # litellm sends dimensions to `openai` only for OpenAI's own models unless it is allowed here.
            arguments |= {"dimensions": self.dimensions, "allowed_openai_params": ["dimensions"]}
        return arguments | dict(PURPOSE_PARAMETERS.get(self.model.provider, {}).get(purpose, {}))

    def _check_dimensions(self, dimensions: int) -> str | None:
        """Return the problem with the length of vectors, or `None`."""
        if self.known_dimensions not in (None, dimensions):
            return f"vectors of {dimensions} numbers, after earlier ones of {self.known_dimensions}"
        if self.dimensions not in (None, dimensions):
            return f"vectors of {dimensions} numbers, although OFFING_EMBEDDING_DIMENSIONS is {self.dimensions}"
        return None


def split_batches(texts: Sequence[str], max_texts: int) -> Iterator[Sequence[str]]:
    """Split texts into batches of at most `max_texts` texts and MAX_BATCH_CHARS code points.

    A text that is longer is a batch of its own.
    """
    start, chars = 0, 0
    for place, text in enumerate(texts):
        if place - start == max_texts or (place > start and chars + len(text) > MAX_BATCH_CHARS):
            yield texts[start:place]
            start, chars = place, 0
        chars += len(text)
    if texts:
        yield texts[start:]


def read_vectors(data: Any, count: int) -> NDArray[np.float64] | InvalidOutput:
    """Read the vectors of litellm's response in the order of the texts.

    A response may be in any order, with an `index` per vector.
    """
    rows: list[Any] = list(data or ())
    if len(rows) != count:
        return InvalidOutput(f"{len(rows)} vectors for {count} texts")
    indexes = [_read(row, "index") for row in rows]
    if any(index is not None for index in indexes):
        if sorted(indexes, key=repr) != sorted(range(count), key=repr):
            return InvalidOutput("indexes of vectors that are missing, repeated or too large")
        rows = [rows[place] for place in np.argsort(indexes)]
    try:
        vectors = np.asarray([_read(row, "embedding") for row in rows], dtype=np.float64)
    except (TypeError, ValueError):
        return InvalidOutput("vectors of different lengths, or something other than numbers")
    if vectors.ndim != 2 or vectors.shape[1] == 0:
        return InvalidOutput("vectors without numbers")
    return vectors if np.isfinite(vectors).all() else InvalidOutput("vectors with numbers that are not finite")


def normalize_rows(vectors: NDArray[np.float64]) -> Vectors:
    """Return the vectors with length 1. A vector of zeros is not changed."""
    peaks = np.abs(vectors).max(axis=1, keepdims=True)
    scaled = vectors / np.where(peaks == 0, 1, peaks)  # so that squares neither overflow nor vanish
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return (scaled / np.where(lengths == 0, 1, lengths)).astype(np.float32)


def _read(row: Any, name: str) -> Any:
    """Return a field of an item of the response, which litellm returns as a dict or as an object."""
    return row.get(name) if isinstance(row, dict) else getattr(row, name, None)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
