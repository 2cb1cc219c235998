"""The token estimate that bounds the prompts of all graphs, for use without a tokenizer."""

import math

BYTES_PER_TOKEN = 3.5
"""Estimated bytes per token, as in the engines.

It is a little below English prose, so that an estimate is rarely too small.
"""


def estimate_tokens(*texts: str) -> int:
    """Estimate the tokens of texts, rounded up for each text.

    The estimate is 0 if all texts are empty.
    """
    return sum(math.ceil(len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN) for text in texts)


def truncate_to_tokens(text: str, max_tokens: int) -> str:
    """Return the longest prefix of a text of at most `max_tokens` estimated tokens."""
    max_bytes = max(0, math.floor(max_tokens * BYTES_PER_TOKEN))
    data = text.encode("utf-8", "replace")
    return text if len(data) <= max_bytes else data[:max_bytes].decode("utf-8", "ignore")
