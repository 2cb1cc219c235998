"""Tokens as a sampler drew them, and where the parts of an answer lie among them.

The only home of the rule that maps characters to tokens: by the bytes that each id decodes to, never by tokenizing
text again. Knows no tokenizer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class SpanKind(StrEnum):
    """What a stretch of a completion is."""

    PLAN = "plan"
    SWITCH = "switch"
    SUBGOAL = "subgoal"
    ACTION = "action"
    MEMORY_EDIT = "memory_edit"
    THINK = "think"
    REPORT = "report"
    """A rewritten report of the round."""
    SUMMARY = "summary"
    ANSWER = "answer"
    TEXT = "text"
    """All of a completion that no role could read."""
    KEPT = "kept"
    """A subgoal that goes on, copied; no new one."""


@dataclass(frozen=True, slots=True)
class TextSpan:
    """A stretch of a completion's text, in Unicode code points, end excluded."""

    kind: SpanKind
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TokenSpan:
    """The same stretch as completion ids, end excluded."""

    kind: SpanKind
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TokenTrace:
    """One completion as it was sampled. All per-token tuples have one entry a completion id."""

    prompt_ids: tuple[int, ...]
    """The whole prompt, what earlier turns gave included."""
    completion_ids: tuple[int, ...]
    """End-of-turn token included when it was sampled."""
    logprobs: tuple[float, ...]
    """Natural logarithms, of the distribution that was sampled from."""
    pieces: tuple[bytes, ...]
    """What each completion id decodes to; empty for special tokens."""
    policy: str
    """NAME@VERSION."""
    finish: str
    """stop or length."""
    entropy: tuple[float, ...] | None = None
    """Nats, of the same distribution. None: the engine does not say."""
    weights_sha256: str = ""
    tokenizer_sha256: str = ""
    template_sha256: str = ""
    engine_build: str = ""
    """Name and version of the serving engine."""

    @property
    def text(self) -> str:
        """What the completion ids decode to."""
        return b"".join(self.pieces).decode("utf-8", "replace")


def token_spans(text: str, pieces: Sequence[bytes], spans: Sequence[TextSpan]) -> tuple[TokenSpan, ...]:
    """Spans of `text` as spans of the tokens it was decoded from.

    A token belongs to the span in which it begins, white space before a word aside, so that spans that follow one
    another share no token; one that decodes to nothing, such as an end of turn, belongs to the span that ends there.
    """
    starts = _byte_starts(text)
    edges = [0]
    for piece in pieces:
        edges.append(edges[-1] + len(piece))
    begins = [edge + _blank(piece) for edge, piece in zip(edges, pieces, strict=False)]
    return tuple(_located(span, starts, begins, edges[1:]) for span in spans)


def _blank(piece: bytes) -> int:
    """Bytes of white space before its first word. 0: it begins with one, or has none."""
    word = piece.lstrip()
    return len(piece) - len(word) if word else 0


def _located(span: TextSpan, starts: Sequence[int], begins: Sequence[int], ends: Sequence[int]) -> TokenSpan:
    low, high = starts[span.start], starts[span.end]
    inside = [n for n, (start, end) in enumerate(zip(begins, ends, strict=True)) if _begins_in(start, end, low, high)]
    return TokenSpan(span.kind, inside[0], inside[-1] + 1) if inside else TokenSpan(span.kind, 0, 0)


def _begins_in(start: int, end: int, low: int, high: int) -> bool:
    return low <= start < high if end > start else low < start <= high


def _byte_starts(text: str) -> list[int]:
    """Byte offset of every code point, and of the end."""
    starts = [0]
    for character in text:
        starts.append(starts[-1] + len(character.encode("utf-8", "replace")))
    return starts
