"""API schemas of prompt libraries and distillation, and their serializers."""

from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from offing.api.schemas.base import ApiModel
from offing.core.model import EngineConfig
from offing.core.prompt_library import Case, Experience
from offing.services.prompt_distillation import (
    MAX_GROUPS,
    MAX_ROLLOUTS_PER_TASK,
    MAX_TASKS,
    DistillationPreview,
    ExperienceChange,
    GateConfig,
    PromptLibraryContents,
)


class GateConfigIn(ApiModel):
    """How the candidate is measured against the active version."""

    dataset: str = Field(
        min_length=1,
        max_length=200,
        description="Dataset of stored tasks. Use other tasks than the library was distilled from.",
    )
    engine: EngineConfig | None = Field(
        default=None,
        description="Engine that reads the library and answers every role. null: the default of the installation.",
    )
    graph: str = Field(default="agentflow", max_length=100)
    role: str = Field(default="planner", max_length=100, description="Role whose prompt contains the library.")
    max_tasks: int = Field(default=50, ge=1, le=MAX_TASKS, description="Maximum number of tasks.")
    rollouts_per_task: int = Field(default=1, ge=1, le=MAX_ROLLOUTS_PER_TASK, description="Number of runs per task.")
    max_turns: int = Field(default=12, ge=0, le=2048)
    max_run_cost_usd: float | None = Field(
        default=None,
        ge=0,
        le=100_000,
        description="Maximum cost of one run in USD. null: only the daily spending limit applies.",
    )


class DistillIn(ApiModel):
    """What to distill from, and which engine compares runs."""

    engine: EngineConfig | None = Field(
        default=None,
        description="Engine that compares runs. null: the default of the installation. The extractive engine copies "
        "corrections.",
    )
    graph: str | None = Field(default=None, max_length=100, description="Use only runs of this graph. null: any graph.")
    tag: str | None = Field(
        default=None, max_length=100, description="Use only rollouts of batches with this tag. null: any rollouts."
    )
    max_groups: int = Field(default=50, ge=1, le=MAX_GROUPS, description="Maximum number of comparisons.")
    include_cases: bool = Field(default=True, description="Also store runs as cases.")
    max_cost_usd: float | None = Field(
        default=None,
        ge=0,
        le=100_000,
        description="Maximum cost of all comparisons in USD. null: only the tenant's daily spending limit applies.",
    )
    gate: GateConfigIn | None = Field(
        default=None, description="null: the candidate is registered without measuring it."
    )


class DistillationPreviewOut(ApiModel):
    """What a distillation job that is created now would use."""

    name: str
    start_version: str = Field(description="Version that the job starts from. Empty: the name is new.")
    job_id: UUID | None = Field(description="Current distillation job of this library. null: there is none.")
    runs: int = Field(description="Rated runs and scored rollouts together.")
    rated_runs: int = Field(description="Of `runs`, the interactive runs that a person has rated or corrected.")
    new_runs: int = Field(description="Of `runs`, those whose current ratings `start_version` was not distilled from.")
    new_rated_runs: int = Field(description="Of `new_runs`, the interactive runs that a person has rated or corrected.")
    new_groups: int = Field(description="Groups of comparable runs among `new_runs`.")
    comparisons: int = Field(description="Groups whose comparison is informative. Each takes one call of the engine.")
    withheld_runs: int = Field(description="Rated interactive runs that are excluded because `training_opt_in` is off.")
    waiting_candidate: str = Field(
        description="Candidate that was distilled from `start_version` and is not active yet. Empty: there is none."
    )


class ExperienceOut(ApiModel):
    id: str
    text: str = Field(description="Untrusted, because a model wrote it.")
    run_ids: list[UUID] = Field(
        description="The latest runs that the experience was distilled from. Empty: a person wrote it."
    )
    groups: int = Field(description="Number of comparisons that created or changed it.")


class ExperienceChangeOut(ApiModel):
    """How an experience differs from the previous version."""

    kind: Literal["added", "changed", "removed"]
    id: str
    before: str = Field(description="Text in the previous version. Empty: the experience is new.")
    after: str = Field(description="Text in this version. Empty: the experience was removed.")
    run_ids: list[UUID]


class CaseOut(ApiModel):
    question: str
    plan: list[str]
    outcome: str
    reward: float
    run_id: UUID | None
    is_new: bool = Field(description="Whether the previous version does not contain the case.")


class PromptLibraryOut(ApiModel):
    """The text of a version of a prompt library, and how it differs from the version it was derived from."""

    policy: str = Field(description="NAME@VERSION.")
    previous_version: str = Field(description="NAME@VERSION. Empty: this is the first version of the name.")
    changes: list[ExperienceChangeOut]
    experiences: list[ExperienceOut]
    cases: list[CaseOut] = Field(description="Newest first.")
    new_cases: int
    removed_cases: int = Field(
        description="Number of cases of the previous version that this version does not contain."
    )


def build_gate_config(body: GateConfigIn, default: EngineConfig) -> GateConfig:
    """Return the gate configuration of the service.

    `default` is the engine that reads the library if the request names none.
    """
    w = body
    return GateConfig(
        w.dataset,
        w.engine or default,
        w.graph,
        w.role,
        max_tasks=w.max_tasks,
        rollouts_per_task=w.rollouts_per_task,
        max_turns=w.max_turns,
        max_run_cost_usd=w.max_run_cost_usd,
    )


def serialize_distillation_preview(name: str, preview: DistillationPreview) -> DistillationPreviewOut:
    return DistillationPreviewOut(
        name=name,
        start_version=preview.start.label if preview.start else "",
        job_id=preview.job.id if preview.job else None,
        runs=preview.run_count,
        rated_runs=preview.rated_count,
        new_runs=sum(len(group.runs) for group in preview.new_groups),
        new_rated_runs=sum(len(group.runs) for group in preview.new_groups if group.is_interactive),
        new_groups=len(preview.new_groups),
        comparisons=sum(group.is_informative for group in preview.new_groups),
        withheld_runs=preview.withheld_count,
        waiting_candidate=preview.waiting_candidate.label if preview.waiting_candidate else "",
    )


def serialize_prompt_library(contents: PromptLibraryContents) -> PromptLibraryOut:
    library = contents.stored.library
    new = set(contents.new_cases)
    return PromptLibraryOut(
        policy=contents.stored.version.label,
        previous_version=contents.previous_version.label if contents.previous_version else "",
        changes=[_serialize_change(one) for one in contents.changes],
        experiences=[_serialize_experience(one) for one in library.experiences],
        cases=[_serialize_case(one, one in new) for one in reversed(library.cases)],
        new_cases=len(new),
        removed_cases=contents.removed_case_count,
    )


def _serialize_experience(experience: Experience) -> ExperienceOut:
    return ExperienceOut(
        id=experience.id, text=experience.text, run_ids=_parse_ids(experience.run_ids), groups=experience.groups
    )


def _serialize_change(change: ExperienceChange) -> ExperienceChangeOut:
    there = change.after or change.before
    assert there is not None
    before, after = (side.text if side else "" for side in (change.before, change.after))
    return ExperienceChangeOut.model_validate(
        {"kind": change.kind, "id": there.id, "before": before, "after": after, "run_ids": _parse_ids(there.run_ids)}
    )


def _serialize_case(case: Case, new: bool) -> CaseOut:
    run = next(iter(_parse_ids((case.run_id,))), None)
    return CaseOut(
        question=case.question, plan=list(case.plan), outcome=case.outcome, reward=case.reward, run_id=run, is_new=new
    )


def _parse_ids(texts: tuple[str, ...]) -> list[UUID]:
    """Return the texts that are UUIDs. A library that a person edited by hand may contain any text there."""
    ids: list[UUID] = []
    for text in texts:
        try:
            ids.append(UUID(text))
        except ValueError:
            continue
    return ids


_EXAMPLE_RUN_ID = "01980000-0000-7000-8000-000000000001"

DISTILLATION_PREVIEW_EXAMPLE: dict[str, Any] = {
    "name": "lessons",
    "start_version": "lessons@1",
    "job_id": None,
    "runs": 48,
    "rated_runs": 9,
    "new_runs": 12,
    "new_rated_runs": 4,
    "new_groups": 5,
    "comparisons": 3,
    "withheld_runs": 0,
    "waiting_candidate": "",
}
"""Example of DistillationPreviewOut for the OpenAPI document."""

PROMPT_LIBRARY_EXAMPLE: dict[str, Any] = {
    "policy": "lessons@2",
    "previous_version": "lessons@1",
    "changes": [
        {
            "kind": "added",
            "id": "x1",
            "before": "",
            "after": "Search the library before computing.",
            "run_ids": [_EXAMPLE_RUN_ID],
        }
    ],
    "experiences": [
        {"id": "x1", "text": "Search the library before computing.", "run_ids": [_EXAMPLE_RUN_ID], "groups": 1}
    ],
    "cases": [
        {
            "question": "Who built the third tower?",
            "plan": ["search: third tower"],
            "outcome": "John Smeaton",
            "reward": 1.0,
            "run_id": _EXAMPLE_RUN_ID,
            "is_new": True,
        }
    ],
    "new_cases": 1,
    "removed_cases": 0,
}
"""Example of PromptLibraryOut."""
