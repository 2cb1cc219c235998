"""Rows as stored, one per segment, in which the context only grew.

These are Flow-GRPO's planner turns, IterResearch's turns, DCPO's segments between edits and SUPO's
spans between summaries, depending only on the graph. Rejected completions are in separate
segments.
"""

from collections.abc import Sequence
from dataclasses import replace

from offing.core.training_rows import TrainingRow
from offing.core.trajectory import BoundaryReason
from offing_trainer.batch import RolloutGroup, TrainingRollout
from offing_trainer.plugin import Plugin, PluginKind, PluginOptions


class ViewOptions(PluginOptions):
    roles: tuple[str, ...] = ()
    """Roles whose rows are used. Empty means all roles."""
    include_rejected: bool = False
    """Also include completions that no role could parse.
    They are not turns of the graph, but turn rewards count them too.
    """


def policy_turns(options: ViewOptions, groups: Sequence[RolloutGroup]) -> Sequence[RolloutGroup]:
    return [
        replace(group, rollouts=tuple(_filter_rows(options, sample) for sample in group.rollouts)) for group in groups
    ]


def _filter_rows(options: ViewOptions, rollout: TrainingRollout) -> TrainingRollout:
    return replace(rollout, rows=tuple(row for row in rollout.rows if _is_included(options, row)))


def _is_included(options: ViewOptions, row: TrainingRow) -> bool:
    has_role = not options.roles or row.segment_info.role in options.roles
    return has_role and (options.include_rejected or not is_rejected(row))


def is_rejected(row: TrainingRow) -> bool:
    """Return whether the row is a completion that no role could use."""
    return row.segment_info.boundary_reason == BoundaryReason.REJECTED


PLUGIN = Plugin("policy-turns", PluginKind.VIEW, "Offing: one row per stored segment", policy_turns, ViewOptions)
