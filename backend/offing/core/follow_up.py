"""Follow-ups: how a run continues from the report of an earlier run of its thread."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from offing.core.report_changes import ReportChanges, changes_from_json


class FollowUpKind(StrEnum):
    """What a follow-up does with the earlier report."""

    AUTO = "auto"
    """The run decides between the other kinds: a model if one answers its writer's role, else rules."""
    QUESTION = "question"
    """A question on the report is answered from the report and its stored evidence, without new research."""
    EDIT = "edit"
    """The report is rewritten as a new version that states nothing new, such as a shorter one or a translation."""
    RESEARCH = "research"
    """New research is made, and its findings are merged into the report."""


class KindChooser(StrEnum):
    """Who chose the kind of a follow-up."""

    PERSON = "person"
    MODEL = "model"
    RULES = "rules"


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A follow-up as it was requested."""

    kind: FollowUpKind
    run_id: UUID
    """Run whose report the follow-up is about."""
    version: int
    """Version of that report."""


@dataclass(frozen=True, slots=True)
class FollowUpOutcome:
    """What a report has to do with the earlier report that it follows."""

    kind: FollowUpKind
    """The kind that was chosen, never `AUTO`."""
    chosen_by: KindChooser
    run_id: UUID
    """Run of the earlier report."""
    version: int
    changes: ReportChanges | None = None
    """Differences from the earlier report. `None` means that the report answers a question and replaces nothing."""
    deleted_sources: tuple[str, ...] = ()
    """Titles of documents that the earlier report cites and that were deleted since."""
    unchanged_because: str = ""
    """Why the earlier report could not be changed as requested. Empty means that it could."""


def follow_up_to_json(follow_up: FollowUp) -> dict[str, Any]:
    return {"kind": follow_up.kind.value, "run": str(follow_up.run_id), "version": follow_up.version}


def follow_up_from_json(stored: Mapping[str, Any]) -> FollowUp:
    """Return a follow-up from its stored form, the inverse of `follow_up_to_json`."""
    return FollowUp(FollowUpKind(stored["kind"]), UUID(stored["run"]), int(stored["version"]))


def outcome_to_json(outcome: FollowUpOutcome) -> dict[str, Any]:
    return asdict(outcome) | {"run_id": str(outcome.run_id)}


def outcome_from_json(stored: Mapping[str, Any]) -> FollowUpOutcome:
    """Return an outcome from its stored form, the inverse of `outcome_to_json`."""
    changes = stored["changes"]
    return FollowUpOutcome(
        FollowUpKind(stored["kind"]),
        KindChooser(stored["chosen_by"]),
        UUID(stored["run_id"]),
        int(stored["version"]),
        None if changes is None else changes_from_json(changes),
        tuple(stored["deleted_sources"]),
        stored["unchanged_because"],
    )
