"""A deterministic embedding without a model: texts that share words are near. Opens no socket.

Each word is hashed to a direction of its own, with a sign; words count by their square root, so that a repeated word
does not cover the others.
"""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from offing.core.model import Usage
from offing.models.embedding import EmbeddingPurpose, Embeddings
from offing.models.role_call import AttemptFailure

DIMENSIONS = 64


def word_vector(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """Vector of length 1; of zeros for a text without words."""
    vector = [0.0] * dimensions
    for word, count in Counter(re.findall(r"\w+", text.lower())).items():
        for place, sign in _directions(word, dimensions):
            vector[place] += sign * math.sqrt(count)
    length = math.sqrt(sum(number * number for number in vector))
    return [number / length for number in vector] if length else vector


def shared_words(query: str, text: str) -> float:
    """What a reranker might score: the part of the query's words that the text has, from 0 to 1."""
    words = set(re.findall(r"\w+", query.lower()))
    return len(words & set(re.findall(r"\w+", text.lower()))) / len(words) if words else 0.0


def _directions(word: str, dimensions: int) -> list[tuple[int, float]]:
    """Four places of a word and their signs, so that two words rarely look alike in few dimensions."""
    digest = hashlib.blake2b(word.encode(), digest_size=16).digest()
    numbers = [int.from_bytes(digest[at : at + 4]) for at in range(0, 16, 4)]
    return [(number // 2 % dimensions, 1.0 if number % 2 else -1.0) for number in numbers]


@dataclass(slots=True)
class WordEmbedder:
    """An embedding model in the test's own process. Fails with `failure` while that is set."""

    key: str = "test/words dimensions=64"
    dimensions: int = DIMENSIONS
    batch_size: int = 32
    failure: AttemptFailure | None = None
    calls: list[tuple[EmbeddingPurpose, tuple[str, ...]]] = field(
        default_factory=list[tuple[EmbeddingPurpose, tuple[str, ...]]]
    )
    """Purpose and texts of every call, failed ones included."""

    async def embed(self, texts: Sequence[str], purpose: EmbeddingPurpose) -> Embeddings | AttemptFailure:
        self.calls.append((purpose, tuple(texts)))
        if self.failure is not None:
            return self.failure
        rows = np.array([word_vector(text, self.dimensions) for text in texts], dtype=np.float32)
        return Embeddings(rows.reshape(len(texts), self.dimensions), Usage(sum(len(text.split()) for text in texts)))
