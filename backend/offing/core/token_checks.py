"""Check the tokens of a completion before they are recorded."""

import math
from collections.abc import Sequence

from offing.core.errors import OffingError
from offing.core.tokens import TokenTrace

LARGEST_ID = 2**24 - 1

LARGEST_ENTROPY = 65504.0
"""Of float16. A vocabulary of 2^24 has at most 16.7 nats."""


class BrokenRecord(OffingError):
    """`BrokenRecord(field, problem)`: a turn whose tokens contradict one another; it is not written."""

    code = "broken_record"

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(field, problem)
        self.field, self.problem = field, problem

    def __str__(self) -> str:
        return f"{self.field}: {self.problem}. The turn is not recorded; the engine that gave it has to be corrected."


def refuse_broken(trace: TokenTrace, text: str) -> None:
    """Raises BrokenRecord for lengths that differ, ids and log-probabilities that cannot be, and ids of another text.

    `text`: what the flow used. The ids must decode to it, end-of-turn tokens aside, which decode to nothing.
    """
    n = len(trace.completion_ids)
    if n == 0 or not trace.prompt_ids:
        raise BrokenRecord("completion_ids" if n == 0 else "prompt_ids", "there are none")
    for field, values in (("logprobs", trace.logprobs), ("pieces", trace.pieces), ("entropy", trace.entropy)):
        if values is not None and len(values) != n:
            raise BrokenRecord(field, f"{len(values)} for {n} completion ids")
    _refuse_ids("prompt_ids", trace.prompt_ids)
    _refuse_ids("completion_ids", trace.completion_ids)
    if not all(math.isfinite(value) and value <= 0 for value in trace.logprobs):
        raise BrokenRecord("logprobs", "one is no logarithm of a probability: not finite, or above 0")
    if not all(0 <= value <= LARGEST_ENTROPY for value in trace.entropy or ()):
        raise BrokenRecord("entropy", f"one is not finite, below 0 or above {LARGEST_ENTROPY:.0f}")
    if trace.text != text:
        raise BrokenRecord("completion_ids", "they decode to another text than the flow used")


def _refuse_ids(field: str, ids: Sequence[int]) -> None:
    if min(ids) < 0 or max(ids) > LARGEST_ID:
        raise BrokenRecord(field, f"one is negative or above {LARGEST_ID}, which no vocabulary reaches")
