"""Interactions: when a run asks a person before it researches. The person chooses them with the question."""

from enum import StrEnum


class Interaction(StrEnum):
    CLARIFY = "clarify"
    """The run may ask what is unclear in the question before it makes a plan."""
    PLAN_REVIEW = "plan_review"
    """A person approves, edits or comments on the plan before the run follows it."""
