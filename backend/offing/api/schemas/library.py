"""Schemas of sources, and of searches in them."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from offing.api.schemas.base import ApiModel, Page
from offing.api.schemas.runs import MarkOut


class SourceOut(ApiModel):
    id: UUID
    collection: str
    name: str
    title: str
    media_type: str
    size_bytes: int
    char_count: int = Field(description="Code points of the extracted text.")
    text_id: UUID
    snapshot: str = Field(description="SHA-256 of the stored bytes, in hex.")
    added_at: datetime


class SourcePage(Page):
    items: list[SourceOut]
    total: int


class UploadedFileOut(ApiModel):
    """The outcome of one uploaded file."""

    name: str
    outcome: Literal["added", "unchanged", "replaced", "rejected", "failed"] = Field(
        description="`failed`: the file was not stored, but sending it again can succeed."
    )
    source: SourceOut | None
    problem: str = Field(default="", description="Why the file was rejected or failed, and what to do.")


class UploadResultOut(ApiModel):
    files: list[UploadedFileOut]


class SearchHitOut(ApiModel):
    text_id: UUID
    source_id: UUID
    title: str
    heading: str
    start: int
    end: int
    text: str
    marks: list[MarkOut] = Field(description="The searched words in the text, in order. Empty: only its meaning fits.")
    score: float


class SearchHitPage(ApiModel):
    items: list[SearchHitOut]
    notices: list[str] = Field(
        default_factory=list[str], description="What the search could not do. Empty if it did everything."
    )


class VectorCoverageOut(ApiModel):
    """How many texts have vectors of the embedding model. The others are found by their words alone."""

    model: str = Field(description="The model with everything that makes vectors comparable.")
    dimensions: int | None = Field(description="Null: there are no vectors yet.")
    filled_count: int = Field(description="Number of texts with vectors.")
    rejected_count: int = Field(description="Number of texts with passages that the model rejects.")


class LibraryStatusOut(ApiModel):
    text_count: int = Field(description="Number of texts that a search can find.")
    embedding: VectorCoverageOut | None = Field(description="Null: no embedding model is set up.")
    reranks: bool = Field(description="Whether a reranker is set up.")


class PassageOut(ApiModel):
    """A span of a text with the text around it."""

    text_id: UUID
    source_id: UUID
    title: str
    name: str
    start: int
    end: int
    before: str
    text: str
    after: str
    snapshot: str
    char_count: int = Field(description="Code points of the whole text.")


class ErasureOut(ApiModel):
    sources: int
    snapshots: int
    passages: int
    steps: int = Field(description="Steps of runs from which copies of the text were removed.")
