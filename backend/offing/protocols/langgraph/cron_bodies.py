"""Bodies of requests about crons. A field that is not here is rejected by its name."""

from datetime import UTC, datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, Field

from offing.core.langgraph_run import Multitask
from offing.protocols.langgraph.bodies import (
    Body,
    ConfigIn,
    Json,
    Limit,
    Metadata,
    Object,
    Offset,
    Storable,
    StreamModes,
)


def _set_zone(at: datetime) -> datetime:
    """Return a time with a zone. One without a zone is in UTC."""
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


Time = Annotated[datetime, AfterValidator(_set_zone)]

Schedule = Annotated[str, Storable, Field(max_length=200)]

Breakpoints = Annotated[Literal["*"] | list[str] | None, Storable]


class CronIn(Body):
    assistant_id: UUID | str
    schedule: Schedule
    timezone: Annotated[str | None, Storable] = Field(None, max_length=100)
    end_time: Time | None = None
    enabled: bool = True
    input: Json = None
    config: ConfigIn = Field(default_factory=ConfigIn)
    context: Object | None = None
    metadata: Metadata = Field(default_factory=dict)
    webhook: Annotated[str | None, Storable, Field(max_length=2048)] = None
    interrupt_before: Breakpoints = None
    interrupt_after: Breakpoints = None
    multitask_strategy: Multitask = Multitask.ENQUEUE
    stream_mode: StreamModes = Field(default_factory=lambda: ["values"])
    stream_subgraphs: bool = False
    stream_resumable: bool = False
    durability: Literal["sync", "async", "exit"] = "async"
    on_run_completed: Literal["delete", "keep"] | None = None


class CronChange(Body):
    schedule: Schedule | None = None
    timezone: Annotated[str | None, Storable] = Field(None, max_length=100)
    end_time: Time | None = None
    enabled: bool | None = None
    input: Json = None
    config: ConfigIn | None = None
    context: Object | None = None
    metadata: Object | None = None
    webhook: Annotated[str | None, Storable, Field(max_length=2048)] = None
    interrupt_before: Breakpoints = None
    interrupt_after: Breakpoints = None
    multitask_strategy: Multitask | None = None
    stream_mode: StreamModes | None = None
    stream_subgraphs: bool | None = None
    stream_resumable: bool | None = None
    durability: Literal["sync", "async", "exit"] | None = None
    on_run_completed: Literal["delete", "keep"] | None = None


class CronFilterIn(Body):
    assistant_id: UUID | str | None = None
    thread_id: UUID | None = None
    metadata: Metadata = Field(default_factory=dict)


CronField = Literal[
    "cron_id",
    "assistant_id",
    "thread_id",
    "end_time",
    "schedule",
    "timezone",
    "created_at",
    "updated_at",
    "user_id",
    "payload",
    "next_run_date",
    "metadata",
    "now",
    "on_run_completed",
    "enabled",
]


class CronSearch(CronFilterIn):
    enabled: bool | None = None
    limit: Limit = 10
    offset: Offset = 0
    sort_by: (
        Literal["cron_id", "assistant_id", "thread_id", "created_at", "updated_at", "next_run_date", "end_time"] | None
    ) = None
    sort_order: Literal["asc", "desc"] | None = None
    select: list[CronField] | None = None
