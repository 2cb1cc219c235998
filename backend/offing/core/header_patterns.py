"""Patterns that choose headers of requests by name. `*` stands for any number of characters."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HeaderPatterns:
    """Which headers are chosen. Names are compared in lower case."""

    includes: tuple[str, ...] = ()
    """Empty means all that are not excluded."""
    excludes: tuple[str, ...] = ()
    """They come before `includes`."""

    def matches(self, name: str) -> bool:
        """Return whether a header is chosen."""
        if any(_fits(pattern, name) for pattern in self.excludes):
            return False
        return not self.includes or any(_fits(pattern, name) for pattern in self.includes)


def _fits(pattern: str, name: str) -> bool:
    expression = ".*".join(re.escape(part) for part in pattern.lower().split("*"))
    return re.fullmatch(expression, name.lower()) is not None
