"""API schemas of the collections of the document library."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from offing.api.schemas.base import ApiModel
from offing.api.schemas.library import ErasureOut
from offing.services.collections import MAX_MOVED_SOURCES, Collection, CollectionDeletion


class CollectionOut(ApiModel):
    name: str = Field(description="Empty: single files.")
    count: int = Field(description="Number of its documents that can be searched.")
    removed_count: int = Field(
        default=0, description="Number of its documents that were missing when their folder was read again."
    )
    latest_added_at: datetime | None = Field(default=None, description="When a document was added to it last.")
    active_runs: int = Field(
        default=0,
        description="Number of runs that have not ended and are limited to it. Until they end, it is not renamed or "
        "deleted.",
    )


class CollectionRenameIn(ApiModel):
    """Another name for a collection."""

    name: Annotated[str, Field(max_length=500)]
    new_name: Annotated[str, Field(max_length=500)] = Field(description="At most 200 characters, without slashes.")


class SourceMoveIn(ApiModel):
    """Documents and where they go."""

    source_ids: list[UUID] = Field(min_length=1, max_length=MAX_MOVED_SOURCES)
    collection: Annotated[str, Field(max_length=500)] = Field(
        description="A collection that exists or a new one. Empty: single files."
    )


class SourceMoveOut(ApiModel):
    moved: int = Field(description="Number of documents that were in another collection before.")


class CollectionDeletionOut(ApiModel):
    """What a deletion has done so far."""

    kept_count: int = Field(description="Number of documents that are single files now.")
    erased: ErasureOut
    remaining: int = Field(
        description="Number of documents that are still to be erased. Send the request again until it is 0."
    )


def serialize_collection(collection: Collection) -> CollectionOut:
    row = collection.row
    return CollectionOut(
        name=row.name,
        count=row.count,
        removed_count=row.removed_count,
        latest_added_at=row.latest_added_at,
        active_runs=collection.active_run_count,
    )


def serialize_collection_deletion(deletion: CollectionDeletion) -> CollectionDeletionOut:
    erased = deletion.erased
    counts = ErasureOut(
        sources=erased.sources, snapshots=erased.snapshots, passages=erased.passages, steps=erased.steps
    )
    return CollectionDeletionOut(kept_count=deletion.kept_count, erased=counts, remaining=deletion.remaining_count)
