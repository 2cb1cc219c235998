"""What a check says: values, and no check."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["error", "warning"]
ERROR: Level = "error"
WARNING: Level = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault."""

    level: Level
    """error: a run will go wrong, or may be paid twice. warning: it costs more than it must."""
    rule: str
    place: str
    """A state key, a role, or file and line."""
    why: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.level}: {self.place}: {self.why} {self.remedy} [{self.rule}]"
