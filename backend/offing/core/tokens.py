"""Tokens of a completion as the sampler drew them, and the mapping from its text to its tokens.

Characters are mapped to tokens by the bytes that each id decodes to. Text is never tokenized again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class SpanKind(StrEnum):
    """Label of a range of a completion."""

    PLAN = "plan"
    SWITCH = "switch"
    SUBGOAL = "subgoal"
    ACTION = "action"
    MEMORY_EDIT = "memory_edit"
    THINK = "think"
    REPORT = "report"
    """A rewritten report of the turn."""
    SUMMARY = "summary"
    ANSWER = "answer"
    TEXT = "text"
    """A rejected completion as a whole."""
    KEPT = "kept"
    """A repeated subgoal that continues; it is not a new one."""


@dataclass(frozen=True, slots=True)
class CompletionSpan:
    """A labeled range of a completion's text in Unicode code points, end exclusive."""

    kind: SpanKind
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TokenSpan:
    """The same range in completion ids, end exclusive."""

    kind: SpanKind
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TokenTrace:
    """Token trace of one completion. All per-token tuples have one entry per completion id."""

    prompt_ids: tuple[int, ...]
    """Token ids of the whole prompt, including earlier turns."""
    completion_ids: tuple[int, ...]
    """Sampled token ids. They include the end-of-turn token if it was sampled."""
    logprobs: tuple[float, ...]
    """Natural logarithms of the probabilities under the distribution that was sampled from."""
    token_bytes: tuple[bytes, ...]
    """Bytes that each completion id decodes to. Empty for special tokens."""
    policy: str
    """Policy version as NAME@VERSION."""
    finish_reason: str
    """`stop` or `length`."""
    entropy: tuple[float, ...] | None = None
    """Entropy of the same distribution in nats. `None` means that the engine does not report it."""
    weights_sha256: str = ""
    tokenizer_sha256: str = ""
    template_sha256: str = ""
    engine_build: str = ""
    """Name and version of the engine that served the request."""

    @property
    def text(self) -> str:
        """Text that the completion ids decode to."""
        return b"".join(self.token_bytes).decode("utf-8", "replace")


def locate_token_spans(
    text: str, token_bytes: Sequence[bytes], spans: Sequence[CompletionSpan]
) -> tuple[TokenSpan, ...]:
    """Map spans of `text` to spans of its tokens.

    A token belongs to the span in which it begins, not counting white space before a word, so that
    consecutive spans share no token. A token that decodes to nothing, such as an end of turn, belongs
    to the span that ends there.
    """
    starts = _byte_offsets(text)
    edges = [0]
    for token_text in token_bytes:
        edges.append(edges[-1] + len(token_text))
    begins = [edge + _count_leading_space(piece) for edge, piece in zip(edges, token_bytes, strict=False)]
    return tuple(_locate_span(span, starts, begins, edges[1:]) for span in spans)


def _count_leading_space(token: bytes) -> int:
    """Count the bytes of white space before the first word of a token.

    0 means that the token begins with a word or has none.
    """
    word = token.lstrip()
    return len(token) - len(word) if word else 0


def _locate_span(span: CompletionSpan, starts: Sequence[int], begins: Sequence[int], ends: Sequence[int]) -> TokenSpan:
    low, high = starts[span.start], starts[span.end]
    inside = [
        n for n, (start, end) in enumerate(zip(begins, ends, strict=True)) if _has_word_start(start, end, low, high)
    ]
    return TokenSpan(span.kind, inside[0], inside[-1] + 1) if inside else TokenSpan(span.kind, 0, 0)


def _has_word_start(start: int, end: int, low: int, high: int) -> bool:
    return low <= start < high if end > start else low < start <= high


def _byte_offsets(text: str) -> list[int]:
    """Return the byte offset of every code point and of the end."""
    starts = [0]
    for character in text:
        starts.append(starts[-1] + len(character.encode("utf-8", "replace")))
    return starts
