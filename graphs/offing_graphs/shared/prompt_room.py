"""The room of a prompt: how much each of its parts may take in the context window of a model.

Sizes are estimated tokens, see `token_estimate`. A role whose engine has no context window, or an
unknown one, has fixed limits in characters instead.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from pydantic import BaseModel

from offing_graphs.shared.token_estimate import estimate_tokens

MARGIN_FRACTION = 0.1
"""Fraction of a window that stays empty, because sizes are estimates."""
ANSWER_FRACTION = 0.25
"""Fraction of a window that is reserved for the answer, as engines do."""
MAX_ANSWER_TOKENS = 32_768
"""Maximum tokens that are reserved for an answer, including thinking."""
MEMORY_FRACTION = 1 / 3
"""Fraction of the room that memory may take. Evidence gets the rest."""
MAX_MEMORY_TOKENS = 24_000
"""Maximum tokens of memory, however large the window is."""
TASK_FRACTION = 1 / 16
"""Fraction of a window for earlier questions of the thread, and for user messages."""
TOOLS_FRACTION = 1 / 6
"""Fraction of a window that the tools may take with their full descriptions."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """Maximum size of a part of a prompt."""

    max_size: int
    in_tokens: bool = False
    """Whether sizes are estimated tokens. False means characters."""

    def measure(self, text: str) -> int:
        return estimate_tokens(text) if self.in_tokens else len(text)


@dataclass(frozen=True, slots=True)
class PromptRoom:
    """The room that a prompt has for parts that can be shortened."""

    tokens: int | None
    """Estimated tokens. `None` means that the window is unknown, so that fixed limits apply."""

    def allow(self, default_chars: int, max_tokens: int, fraction: float = 1.0) -> Allowance:
        """Return the allowance of a part.

        `default_chars` applies to an unknown window. Otherwise the part may take `fraction` of the room and
        at most `max_tokens`.
        """
        if self.tokens is None:
            return Allowance(default_chars)
        return Allowance(min(max_tokens, math.floor(self.tokens * fraction)), in_tokens=True)

    def without(self, parts: Iterable[str]) -> "PromptRoom":
        """Return the room that is left after parts."""
        if self.tokens is None:
            return self
        return replace(self, tokens=max(0, self.tokens - estimate_tokens(*parts)))


def compute_prompt_tokens(context_tokens: int, output: type[BaseModel]) -> int:
    """Return the maximum tokens of a prompt: the window without the margin, the answer and its JSON schema."""
    answer = min(MAX_ANSWER_TOKENS, math.floor(context_tokens * ANSWER_FRACTION))
    return max(0, math.floor(context_tokens * (1 - MARGIN_FRACTION)) - answer - _estimate_schema(output))


def compute_room(context_tokens: int | None, output: type[BaseModel], fixed_parts: Iterable[str]) -> PromptRoom:
    """Return the room beside the parts that a prompt always has.

    `context_tokens` is the context window of the model. `None` means that it is unknown.
    """
    if context_tokens is None:
        return PromptRoom(None)
    return PromptRoom(compute_prompt_tokens(context_tokens, output)).without(fixed_parts)


def compute_share(context_tokens: int | None, fraction: float) -> int | None:
    """Return a fraction of a window in tokens. `None` means that the window is unknown."""
    return None if context_tokens is None else math.floor(context_tokens * fraction)


@lru_cache(maxsize=64)
def _estimate_schema(output: type[BaseModel]) -> int:
    return estimate_tokens(json.dumps(output.model_json_schema()))
