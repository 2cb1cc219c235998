"""How long texts are in tokens, where nobody has counted: the one estimate that all flows bound their prompts by."""

import math

BYTES_PER_TOKEN = 3.5
"""As engines estimate it where no provider counts: a little below English prose, so that it is rarely too small."""


def tokens_of(*texts: str) -> int:
    """An estimate, in tokens, rounded up for each text. 0: all are empty."""
    return sum(math.ceil(len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN) for text in texts)


def within(text: str, tokens: int) -> str:
    """The beginning of a text that is at most so many tokens by the same estimate; whole if it is."""
    most = max(0, math.floor(tokens * BYTES_PER_TOKEN))
    data = text.encode("utf-8", "replace")
    return text if len(data) <= most else data[:most].decode("utf-8", "ignore")
