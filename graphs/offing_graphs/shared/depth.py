"""Deep runs: breadth first, then depth, until nothing new comes.

The rules count turns, passages and covered parts. They read no prose.
"""

from collections.abc import Sequence
from enum import StrEnum

from offing.sdk import Depth, RunInfo
from offing_graphs.shared.schemas import Coverage, MemoryRecord

MIN_BARREN_TURNS, MAX_BARREN_TURNS = 3, 12
"""Limits of the number of turns without anything new after which a deep run ends."""
BARREN_TURNS_FRACTION = 10
"""A deep run ends after a tenth of its turns without anything new, within the limits."""


class ResearchPhase(StrEnum):
    """What the turns of a deep run are for."""

    BREADTH = "breadth"
    """Each part of the question gets one step."""
    DEPTH = "depth"
    """What is contested or missing gets further steps."""


def is_deep(run: RunInfo) -> bool:
    return run.budget.depth is Depth.DEEP


def find_phase(run: RunInfo, turn: int, part_count: int) -> ResearchPhase | None:
    """Return the phase of a turn, from 1. `None` means that the run is not deep."""
    if not is_deep(run):
        return None
    return ResearchPhase.BREADTH if turn <= part_count else ResearchPhase.DEPTH


def count_barren_turns(max_turns: int) -> int:
    """Return after how many turns without anything new a deep run ends."""
    return min(MAX_BARREN_TURNS, max(MIN_BARREN_TURNS, max_turns // BARREN_TURNS_FRACTION))


def may_stop(run: RunInfo, turn: int, part_count: int, coverage: Sequence[Coverage]) -> bool:
    """Return whether a verifier may end the run after a turn.

    While parts are uncovered, it may not end a deep run in its first turns: those for breadth, and then as many as
    have to bring nothing new. Without any statement about the parts they count as uncovered.
    """
    if not is_deep(run) or (coverage and all(one.covered for one in coverage)):
        return True
    return turn >= part_count + count_barren_turns(run.budget.max_turns)


def is_saturated(
    run: RunInfo, turn: int, part_count: int, records: Sequence[MemoryRecord], covered_counts: Sequence[tuple[int, int]]
) -> bool:
    """Return whether the latest turns of a deep run brought no new passage and covered no further part.

    `covered_counts` has the turns and the number of parts that were covered after them, oldest first. While parts have
    had no step, the run is not saturated.
    """
    barren_turns = count_barren_turns(run.budget.max_turns)
    first = turn - barren_turns + 1
    if not is_deep(run) or first < 1 or turn < part_count:
        return False
    has_new_passage = any(record.fresh for record in records if record.turn >= first)
    return not has_new_passage and not _has_new_part(covered_counts, first)


def _has_new_part(covered_counts: Sequence[tuple[int, int]], first_turn: int) -> bool:
    before = max((count for turn, count in covered_counts if turn < first_turn), default=0)
    return any(count > before for turn, count in covered_counts if turn >= first_turn)
