"""Schemas of changes and deletions of several runs at once."""

from uuid import UUID

from pydantic import Field

from offing.api.schemas.base import ApiModel, Problem
from offing.api.schemas.runs import RunChangeIn, RunDeletionOut, RunOut

MAX_CHANGED_RUNS = 200
"""Maximum number of runs of one request."""


class RunChangeOfIn(RunChangeIn):
    """What to change of one of several runs."""

    run_id: UUID


class RunChangesIn(ApiModel):
    changes: list[RunChangeOfIn] = Field(min_length=1, max_length=MAX_CHANGED_RUNS, description="One per run.")


class RunChangeResultOut(ApiModel):
    """What became of one of several changes: it was made completely, or not at all."""

    run_id: UUID
    run: RunOut | None = Field(description="The run after its change. null: it stays as it was.")
    problem: Problem | None = Field(description="Why it stays as it was. null: it was changed.")


class RunChangesOut(ApiModel):
    items: list[RunChangeResultOut] = Field(description="In the order of the request.")


class RunDeletionsIn(ApiModel):
    run_ids: list[UUID] = Field(min_length=1, max_length=MAX_CHANGED_RUNS)
    later_runs: bool = Field(
        default=False, description="true: also delete the later runs of their threads, which build on them."
    )


class RunDeletionResultOut(ApiModel):
    """What became of one of several deletions: the run was deleted completely, or not at all."""

    run_id: UUID
    deletion: RunDeletionOut | None = Field(
        description="What was deleted and kept; nothing if the run was deleted with an earlier one. null: it stays."
    )
    problem: Problem | None = Field(description="Why it stays. null: it was deleted.")


class RunDeletionsOut(ApiModel):
    items: list[RunDeletionResultOut] = Field(description="In the order of the request.")
