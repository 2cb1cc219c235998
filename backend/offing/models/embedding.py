"""What the document library expects of an embedding model and of a reranker."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from offing.core.model import Usage
from offing.models.role_call import AttemptFailure

EmbeddingPurpose = Literal["query", "passage"]
"""Many models embed a query otherwise than the passages that answer it."""


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Vectors of texts, in the order of the texts."""

    vectors: Any
    """Array of float32 with one row of length 1 per text. A row of zeros is a text without a direction."""
    usage: Usage


class Embedder(Protocol):
    """An embedding model."""

    @property
    def key(self) -> str:
        """Name of everything that makes vectors comparable: the model, its dimensions and its prefixes."""
        ...

    @property
    def batch_size(self) -> int:
        """Maximum number of texts per request."""
        ...

    async def embed(self, texts: Sequence[str], purpose: EmbeddingPurpose) -> Embeddings | AttemptFailure:
        """Return the vectors of these texts."""
        ...


@dataclass(frozen=True, slots=True)
class RerankScores:
    """How well each text answers a query, in the order of the texts. Higher is better."""

    scores: tuple[float, ...]
    usage: Usage


class Reranker(Protocol):
    """A model that reads a query and a text together and scores the text."""

    async def rerank(self, query: str, texts: Sequence[str]) -> RerankScores | AttemptFailure:
        """Return the score of each text."""
        ...
