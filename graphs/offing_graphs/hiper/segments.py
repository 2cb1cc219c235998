"""Where segments begin and which subgoal is in force: the rule that records, masks and the page agree on."""

from dataclasses import dataclass

from offing_graphs.hiper.shapes import Switch, Turn, TurnRecord


@dataclass(frozen=True, slots=True)
class Placed:
    """A turn in its segment."""

    boundary: bool
    subgoal: str
    number: int
    """Of the segment, from 1."""
    drifted: bool


def placed(output: Turn, before: TurnRecord | None) -> Placed:
    """`before`: the record of the turn before. None: this is the first turn, which opens a segment whatever it says.

    Under KEEP the current subgoal stays, also where the turn's text is another one; that is recorded as drift.
    """
    said = output.subgoal.strip()
    if before is None or output.switch is Switch.SWITCH:
        return Placed(True, said, (before.subgoal_nr if before else 0) + 1, drifted=False)
    return Placed(False, before.subgoal, before.subgoal_nr, drifted=said != before.subgoal)
