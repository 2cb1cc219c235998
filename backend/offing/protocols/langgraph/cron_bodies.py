"""Bodies of requests about crons. A field that is not here is rejected by its name."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, Field

from offing.core.langgraph_run import Multitask
from offing.protocols.langgraph.bodies import (
    Body,
    ConfigIn,
    JsonObject,
    Limit,
    Metadata,
    Offset,
    StreamModes,
)


def _set_zone(at: datetime) -> datetime:
    """Return a time with a zone. One without a zone is in UTC."""
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


Time = Annotated[datetime, AfterValidator(_set_zone)]

Schedule = Annotated[str, Field(max_length=200)]

Breakpoints = Literal["*"] | list[str] | None


class CronIn(Body):
    assistant_id: UUID | str
    schedule: Schedule
    timezone: str | None = Field(None, max_length=100)
    end_time: Time | None = None
    enabled: bool = True
    input: Any = None
    config: ConfigIn = Field(default_factory=ConfigIn)
    context: JsonObject | None = None
    metadata: Metadata = Field(default_factory=dict)
    webhook: Annotated[str | None, Field(max_length=2048)] = None
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
    timezone: str | None = Field(None, max_length=100)
    end_time: Time | None = None
    enabled: bool | None = None
    input: Any = None
    config: ConfigIn | None = None
    context: JsonObject | None = None
    metadata: JsonObject | None = None
    webhook: Annotated[str | None, Field(max_length=2048)] = None
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
