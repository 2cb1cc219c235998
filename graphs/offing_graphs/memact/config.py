"""The limits of a context, and whether its agent edits it or sums it up when it is full."""

from dataclasses import dataclass

TOKENS_FOR_A_SUMMARY = 2_300
"""Tokens that the request for a summary and the summary itself may take; engines write at most 2,048 by default."""


@dataclass(frozen=True, slots=True)
class Config:
    """Sizes are estimated tokens. Raises ValueError for sizes that leave no room for a summary."""

    window: int
    """W: no call is made with a longer prompt."""
    observation: int
    """Of one observation; what a tool brought back beyond it is counted and left out."""
    edits: bool
    """The agent has prune and write."""
    full: int | None = None
    """L: from this size on the context is summed up. None: it never is."""
    summaries: int = 0
    """S: how often at most."""

    def __post_init__(self) -> None:
        if self.full is not None and self.window - self.full < TOKENS_FOR_A_SUMMARY:
            raise ValueError(f"window: leave at least {TOKENS_FOR_A_SUMMARY} tokens above full for the summary.")

    @property
    def limit(self) -> int:
        """What the prompt of an action may measure."""
        return self.window if self.full is None else self.full - 1


EDITING = Config(window=20_000, observation=4_000, edits=True)
SUMMING_UP = Config(window=16_000, observation=3_000, edits=False, full=13_500, summaries=7)
