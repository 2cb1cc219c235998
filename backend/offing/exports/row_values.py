"""Training rows and trajectory metadata as plain values, and back.

All formats use these column names.
"""

from collections.abc import Mapping
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any, get_type_hints
from uuid import UUID

from offing.core.trajectory import BoundaryReason
from offing.core.trajectory_records import Reference, RewardScore, RunCost, SegmentInfo, TrajectoryMetadata

ID_FIELDS = frozenset(
    name for name, annotation in get_type_hints(TrajectoryMetadata).items() if annotation in (UUID, UUID | None)
)
"""Fields of the trajectory metadata that are ids."""

TIME_FIELDS = frozenset(
    name for name, annotation in get_type_hints(TrajectoryMetadata).items() if annotation in (datetime, datetime | None)
)

METADATA_COLUMNS = tuple(f.name for f in fields(TrajectoryMetadata) if f.name != "cost")
"""Columns of the trajectory metadata, named as their fields."""

COST_COLUMNS = {f.name: f"run_{f.name}" for f in fields(RunCost)}
"""Column name of each field of the run's cost. All columns are null if the cost is not known."""

SEGMENT_COLUMNS = {
    "idx": "segment_idx",
    "role": "role",
    "boundary_reason": "boundary_reason",
    "parent_idx": "parent_idx",
    "shared_tokens": "parent_tokens",
}
"""Column name of each field of the segment."""

ACCEPTED_COLUMN = "is_accepted"
"""Whether the role accepted the completion. A rejected completion is a separate segment."""


def trajectory_metadata_columns(metadata: TrajectoryMetadata) -> dict[str, Any]:
    """Return the metadata by column.

    Times stay `datetime` objects; structured values become dictionaries.
    """
    plain = {name: getattr(metadata, name) for name in METADATA_COLUMNS}
    for name in ID_FIELDS:
        plain[name] = None if plain[name] is None else str(plain[name])
    plain["tags"] = list(metadata.tags)
    plain["scores"] = [asdict(score) for score in metadata.scores]
    plain["reference"] = _reference_to_json(metadata.reference)
    return plain | {column: getattr(metadata.cost, name, None) for name, column in COST_COLUMNS.items()}


def trajectory_metadata_from_columns(columns: Mapping[str, Any]) -> TrajectoryMetadata:
    """Build the metadata from columns, the inverse of `trajectory_metadata_columns`.

    Times may be ISO strings.
    """
    plain = {name: columns[name] for name in METADATA_COLUMNS}
    for name in ID_FIELDS:
        plain[name] = None if plain[name] is None else UUID(plain[name])
    for name in TIME_FIELDS:
        if isinstance(plain[name], str):
            plain[name] = datetime.fromisoformat(plain[name])
    plain["tags"] = tuple(plain["tags"])
    plain["scores"] = tuple(RewardScore(**score) for score in plain["scores"])
    plain["reference"] = _reference_from_json(plain["reference"])
    return TrajectoryMetadata(**plain, cost=_cost_from_columns(columns))


def _reference_to_json(reference: Reference | None) -> dict[str, Any] | None:
    """Return a reference as an export contains it. An empty rubric is left out."""
    if reference is None:
        return None
    return {name: value for name, value in asdict(reference).items() if name != "rubric" or value}


def _reference_from_json(values: Mapping[str, Any] | None) -> Reference | None:
    if values is None:
        return None
    answers = values["answers"]
    return Reference(
        None if answers is None else tuple(answers), tuple(values["evidence"]), tuple(values.get("rubric", ()))
    )


def _cost_from_columns(columns: Mapping[str, Any]) -> RunCost | None:
    values: dict[str, Any] = {name: columns.get(column) for name, column in COST_COLUMNS.items()}
    return None if values["turns"] is None else RunCost(**values)


def segment_info_columns(segment: SegmentInfo) -> dict[str, Any]:
    plain = {column: getattr(segment, name) for name, column in SEGMENT_COLUMNS.items()}
    return plain | {ACCEPTED_COLUMN: segment.boundary_reason != BoundaryReason.REJECTED}


def segment_info_from_columns(columns: Mapping[str, Any]) -> SegmentInfo:
    return SegmentInfo(**{name: columns[column] for name, column in SEGMENT_COLUMNS.items()})
