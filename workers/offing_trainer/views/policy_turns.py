"""Rows as they are stored: one a segment, as long as its context only grew.

That is Flow-GRPO's planner turns, IterResearch's rounds, DCPO's segments between edits and SUPO's spans between
summaries; which of them depends on the flow alone. What no role could use stands in segments of its own.
"""

from collections.abc import Sequence
from dataclasses import replace

from offing.core.rows import TrainRow
from offing.core.trajectory import Fracture
from offing_trainer.batch import Group, Sample
from offing_trainer.seam import Options, Plugin, Seam


class Shown(Options):
    roles: tuple[str, ...] = ()
    """Whose rows. Empty: all."""
    rejected: bool = False
    """Also completions that no role could use. They are no turns of the flow, so rewards by turn count them too."""


def policy_turns(options: Shown, groups: Sequence[Group]) -> Sequence[Group]:
    return [replace(group, samples=tuple(_viewed(options, sample) for sample in group.samples)) for group in groups]


def _viewed(options: Shown, sample: Sample) -> Sample:
    return replace(sample, rows=tuple(row for row in sample.rows if _wanted(options, row)))


def _wanted(options: Shown, row: TrainRow) -> bool:
    known = not options.roles or row.head.role in options.roles
    return known and (options.rejected or row.head.fracture != Fracture.REJECTED)


PLUGIN = Plugin("policy-turns", Seam.VIEW, "Offing: a row a stored segment", policy_turns, Shown)
