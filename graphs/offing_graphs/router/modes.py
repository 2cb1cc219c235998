"""The three modes, what each is expected to cost, and which is worth most: pure arithmetic over a role's estimates.

The only home of the price of a call. Knows no prompt.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum

from offing_graphs.extractive.agenda import CALCULATE, SEARCH, SEARCH_WEB
from offing_graphs.parts.shapes import Card, Shape

LOOKS = frozenset({SEARCH, SEARCH_WEB, CALCULATE})
"""Tools that can be called with the question's own words."""
PRICE = 0.005
"""What one call of a role or a tool must add to the chance of an answer, to be worth it."""
CALLS_A_TURN = 4
"""Of the whole loop: planner, executor, tool, verifier."""
TURNS_A_PART = 3


class Mode(StrEnum):
    INSTANT = "instant"
    """One look with the question's own words, and the report."""
    REASONING = "reasoning"
    """One look for each part of the question, and the report."""
    AGENTIC = "agentic"
    """Plan, act and verify turn by turn."""


class Offer(Shape):
    """A mode that this run could take."""

    mode: Mode
    calls: int
    """Calls of roles and tools that it is expected to make."""


class Worth(Shape):
    """A mode with what it promises and costs."""

    mode: Mode
    chance: float
    calls: int

    @property
    def worth(self) -> float:
        return self.chance - PRICE * self.calls


def offers(parts: int, turns: int, tools: Iterable[Card]) -> tuple[Offer, ...]:
    """The modes that a run with so many turns can take, cheapest first. `parts`: of the question, by its words."""
    loop = Offer(mode=Mode.AGENTIC, calls=2 + CALLS_A_TURN * min(turns, TURNS_A_PART * parts))
    if not any(tool.name in LOOKS for tool in tools):
        return (loop,)
    instant = Offer(mode=Mode.INSTANT, calls=2)
    by_parts = (Offer(mode=Mode.REASONING, calls=parts + 2),) if 1 < parts <= turns else ()
    return instant, *by_parts, loop


def weighed(offered: Sequence[Offer], chances: dict[Mode, float]) -> tuple[Worth, ...]:
    """All that is offered, best first, the cheaper of two that are worth the same. No chance named: it has none."""
    worths = [Worth(mode=o.mode, chance=chances.get(o.mode, 0.0), calls=o.calls) for o in offered]
    return tuple(sorted(worths, key=lambda w: (-round(w.worth, 9), w.calls)))
