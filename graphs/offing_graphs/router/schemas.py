"""Modes, and the input and output of the router.

Field descriptions are part of the JSON schema in the prompt.
"""

from enum import StrEnum

from pydantic import Field

from offing_graphs.shared.schemas import FrozenModel, TaskContext

MIN_GAIN_PER_CALL = 0.005
"""Minimum gain in the probability of an answer that justifies one call of a role or a tool."""


class Mode(StrEnum):
    INSTANT = "instant"
    """One search with the words of the question, then the report."""
    REASONING = "reasoning"
    """One search per part of the question, then the report."""
    AGENTIC = "agentic"
    """Turns of plan, action and verification."""


class ModeOption(FrozenModel):
    """A mode that the run can take."""

    mode: Mode
    calls: int
    """Expected number of calls of roles and tools."""


class RankedMode(FrozenModel):
    """A mode with its estimated probability of an answer and its cost."""

    mode: Mode
    chance: float
    calls: int

    @property
    def expected_gain(self) -> float:
        return self.chance - MIN_GAIN_PER_CALL * self.calls


class Chance(FrozenModel):
    """One mode's chance."""

    mode: Mode
    chance: float = Field(ge=0, le=1, description="That it ends with a right and supported answer.")


class RouterInput(TaskContext):
    parts: tuple[str, ...]
    """Parts of the question, split by its words."""
    options: tuple[ModeOption, ...]


class Route(FrozenModel):
    """The router's answer."""

    why: str = Field(description="What the question needs, in one sentence.")
    chances: tuple[Chance, ...] = Field(min_length=1, max_length=len(Mode), description="One for each mode offered.")

    def chances_by_mode(self) -> dict[Mode, float]:
        return {c.mode: c.chance for c in self.chances}
