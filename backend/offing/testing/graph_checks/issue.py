"""Issues that the checks report."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["error", "warning"]
ERROR: Level = "error"
WARNING: Level = "warning"


@dataclass(frozen=True, slots=True)
class GraphIssue:
    """One issue of a graph."""

    level: Level
    """`error` means that a run will fail or may be charged twice.

    `warning` means that it costs more than necessary.
    """
    rule: str
    location: str
    """A state key, a role, or file and line."""
    explanation: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.level}: {self.location}: {self.explanation} {self.remedy} [{self.rule}]"
