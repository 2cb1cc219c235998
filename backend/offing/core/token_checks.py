"""Validation of the tokens of a completion before they are recorded."""

import math
from collections.abc import Sequence

from offing.core.errors import OffingError
from offing.core.tokens import TokenTrace

MAX_TOKEN_ID = 2**24 - 1

MAX_ENTROPY_NATS = 65504.0
"""Maximum of float16. A vocabulary of 2^24 tokens has at most 16.7 nats."""


class CorruptTokensError(OffingError):
    """`CorruptTokensError(field, problem)`: the tokens of a role call are inconsistent.

    The role call is not written.
    """

    code = "corrupt_tokens"

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(field, problem)
        self.field, self.problem = field, problem

    def __str__(self) -> str:
        return (
            f"{self.field}: {self.problem}. The role call is not recorded. The engine that returned it must "
            "be corrected."
        )


def check_token_trace(trace: TokenTrace, text: str) -> None:
    """Check the token trace of a completion.

    Raises CorruptTokensError if lengths differ, if ids or logprobs are impossible, or if the ids do not
    decode to `text`, the text that the graph used. End-of-turn tokens decode to nothing.
    """
    n = len(trace.completion_ids)
    if n == 0 or not trace.prompt_ids:
        raise CorruptTokensError("completion_ids" if n == 0 else "prompt_ids", "is empty")
    for field, values in (("logprobs", trace.logprobs), ("token_bytes", trace.token_bytes), ("entropy", trace.entropy)):
        if values is not None and len(values) != n:
            raise CorruptTokensError(field, f"has {len(values)} values for {n} completion ids")
    _check_ids("prompt_ids", trace.prompt_ids)
    _check_ids("completion_ids", trace.completion_ids)
    if not all(math.isfinite(value) and value <= 0 for value in trace.logprobs):
        raise CorruptTokensError(
            "logprobs", "a value is not a logarithm of a probability: it is not finite, or above 0"
        )
    if not all(0 <= value <= MAX_ENTROPY_NATS for value in trace.entropy or ()):
        raise CorruptTokensError("entropy", f"a value is not finite, below 0 or above {MAX_ENTROPY_NATS:.0f}")
    if trace.text != text:
        raise CorruptTokensError(
            "completion_ids", "the ids decode to a text that differs from the text of the completion"
        )


def _check_ids(field: str, ids: Sequence[int]) -> None:
    if min(ids) < 0 or max(ids) > MAX_TOKEN_ID:
        raise CorruptTokensError(field, f"an id is negative or above {MAX_TOKEN_ID}, the largest id of any vocabulary")
