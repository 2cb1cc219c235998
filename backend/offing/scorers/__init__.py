"""Scorers of rollouts, each with a name and a version.

Rule-based scorers use `core.scoring`, `core.ranking_metrics` and `core.number_agreement`; judges use an engine.
"""

from offing.registry import Group, Registry, has_attributes
from offing.scorers.scorer import Scorer, ScorerResult, ScoringFailure, ScoringInput

__all__ = ["SCORERS", "Scorer", "ScorerResult", "ScoringFailure", "ScoringInput"]

_ATTRIBUTES = (
    *("name", "version", "needs_engine", "reads_report", "reads_tool_results"),
    *("find_missing", "check_options", "score"),
)

SCORERS: Registry[Scorer] = Registry(
    Group.SCORERS,
    "a scorer",
    accepts=has_attributes(*_ATTRIBUTES),
    remedy=f"Register an instance with the attributes {', '.join(_ATTRIBUTES)}.",
    name_of=lambda scorer: scorer.name,
)
"""The scorers that a rollout may be scored with, by name."""
