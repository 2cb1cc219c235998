"""Bodies of requests. A field that is not here is rejected by its name."""

from collections.abc import Mapping
from math import isfinite
from typing import Annotated, Any, Literal, cast
from uuid import UUID

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from offing.core.langgraph_config import ThreadTtlStrategy
from offing.core.langgraph_run import Multitask

JsonObject = dict[str, Any]

Limit = Annotated[int, Field(ge=1, le=1000)]
Offset = Annotated[int, Field(ge=0, le=2**31 - 1)]

MAX_DEPTH = 100
"""Maximum number of levels of objects and lists in a body."""


def _check_json(value: Any, where: str = "", depth: int = 0) -> None:
    """Raise ValueError for what Postgres cannot store as it was sent, with the place where it is."""
    place = where or "the body"
    if depth > MAX_DEPTH:
        raise ValueError(f"{place[:100]} is nested more than {MAX_DEPTH} levels deep; send less")
    match value:
        case str():
            if "\0" in value or any("\ud800" <= c <= "\udfff" for c in value):
                raise ValueError(f"{place} has a NUL character or half a surrogate pair; remove it")
        case float() if not isfinite(value):
            raise ValueError(f"{place} is not a finite number; send null or a text")
        case int() if not -(2**63) <= value < 2**64:
            raise ValueError(f"{place} is an integer of more than 64 bits; send a text")
        case Mapping():
            for key, item in cast(Mapping[Any, Any], value).items():
                _check_json(key, f"a key of {place}", depth)
                _check_json(item, f"{where}.{key}".lstrip("."), depth + 1)
        case list():
            for number, item in enumerate(cast(list[Any], value)):
                _check_json(item, f"{where}.{number}".lstrip("."), depth + 1)
        case _:
            pass


def _empty_if_none(value: Any) -> Any:
    return {} if value is None else value


Metadata = Annotated[JsonObject, BeforeValidator(_empty_if_none)]


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _check_every_value(cls, body: Any) -> Any:
        _check_json(body)
        return body


class AssistantIn(Body):
    assistant_id: UUID | None = None
    graph_id: str
    config: Metadata = Field(default_factory=dict)
    context: Metadata = Field(default_factory=dict)
    metadata: Metadata = Field(default_factory=dict)
    if_exists: Literal["raise", "do_nothing"] = "raise"
    name: str | None = Field(None, max_length=300)
    description: str | None = Field(None, max_length=5000)


class AssistantChange(Body):
    graph_id: str | None = None
    config: JsonObject | None = None
    context: JsonObject | None = None
    metadata: JsonObject | None = None
    name: str | None = Field(None, max_length=300)
    description: str | None = Field(None, max_length=5000)


class AssistantFilter(Body):
    graph_id: str | None = None
    name: str | None = None
    metadata: Metadata = Field(default_factory=dict)


class AssistantSearch(AssistantFilter):
    limit: Limit = 10
    offset: Offset = 0
    sort_by: Literal["assistant_id", "graph_id", "name", "created_at", "updated_at"] | None = None
    sort_order: Literal["asc", "desc"] | None = None
    select: list[str] | None = None


class VersionSearch(Body):
    metadata: Metadata = Field(default_factory=dict)
    limit: Limit = 10
    offset: Offset = 0


class VersionChoice(Body):
    version: Annotated[int, Field(ge=1, le=2**31 - 1)]


class StateUpdateIn(Body):
    values: Any = None
    command: JsonObject | None = None
    as_node: str | None = None
    task_id: str | None = None


class SuperstepIn(Body):
    updates: Annotated[list[StateUpdateIn], Field(max_length=1000)]


class ThreadTtlIn(Body):
    ttl: Annotated[float, Field(gt=0, le=1e8)]
    strategy: ThreadTtlStrategy = ThreadTtlStrategy.DELETE


Ttl = ThreadTtlIn | Annotated[float, Field(gt=0, le=1e8)] | None
"""When a thread expires, in minutes."""


class ThreadIn(Body):
    thread_id: UUID | None = None
    ttl: Ttl = None
    metadata: Metadata = Field(default_factory=dict)
    if_exists: Literal["raise", "do_nothing"] = "raise"
    supersteps: Annotated[list[SuperstepIn], Field(max_length=1000)] | None = None


class ThreadChange(Body):
    metadata: Metadata = Field(default_factory=dict)
    ttl: Ttl = None


class ThreadPruning(Body):
    thread_ids: Annotated[list[UUID], Field(max_length=1000)]
    strategy: ThreadTtlStrategy = ThreadTtlStrategy.DELETE


class ThreadFilterIn(Body):
    metadata: Metadata = Field(default_factory=dict)
    values: JsonObject | None = None
    status: Literal["idle", "busy", "interrupted", "error"] | None = None


ThreadField = Literal[
    "thread_id",
    "created_at",
    "updated_at",
    "metadata",
    "config",
    "context",
    "status",
    "values",
    "interrupts",
    "error",
]


class ThreadSearch(ThreadFilterIn):
    ids: Annotated[list[UUID], Field(max_length=1000)] | None = None
    limit: Limit = 10
    offset: Offset = 0
    sort_by: Literal["thread_id", "status", "created_at", "updated_at", "state_updated_at"] | None = None
    sort_order: Literal["asc", "desc"] | None = None
    select: list[ThreadField] | None = None
    extract: dict[str, str] | None = None


class CheckpointIn(Body):
    thread_id: UUID | None = None
    checkpoint_ns: str | None = ""
    checkpoint_id: str | None = None
    checkpoint_map: JsonObject | None = None


class CheckpointRead(Body):
    checkpoint: CheckpointIn
    subgraphs: bool = False


class StateChange(Body):
    values: Any = None
    as_node: str | None = None
    checkpoint: CheckpointIn | None = None
    checkpoint_id: str | None = None


class HistorySearch(Body):
    limit: Limit = 10
    before: CheckpointIn | JsonObject | str | None = None
    metadata: JsonObject | None = None
    checkpoint: CheckpointIn | None = None


class SendIn(Body):
    node: str
    input: Any = None


class CommandIn(Body):
    resume: Any = None
    update: Any = None
    goto: SendIn | str | list[SendIn | str] | None = None


class ConfigIn(Body):
    tags: list[str] | None = None
    recursion_limit: Annotated[int, Field(ge=1, le=100_000)] | None = None
    configurable: JsonObject | None = None
    metadata: JsonObject | None = None


STREAM_MODES = (
    "values",
    "messages",
    "messages-tuple",
    "updates",
    "events",
    "tools",
    "tasks",
    "checkpoints",
    "debug",
    "custom",
    "lifecycle",
)


def _check_modes(modes: str | list[str]) -> list[str]:
    """Return the stream modes as a list. Raises ValueError for one that does not exist here."""
    listed = list(dict.fromkeys([modes] if isinstance(modes, str) else modes))
    for mode in listed:
        if mode not in STREAM_MODES:
            raise ValueError(f"{mode!r} is not supported; use any of {', '.join(STREAM_MODES)}")
    return listed or ["values"]


StreamModes = Annotated[str | list[str], AfterValidator(_check_modes)]


class RunIn(Body):
    """A run. Fields with only one allowed value are those of which Offing supports only this one."""

    assistant_id: UUID | str
    input: Any = None
    command: CommandIn | None = None
    checkpoint: CheckpointIn | None = None
    checkpoint_id: str | None = None
    config: ConfigIn = Field(default_factory=ConfigIn)
    context: JsonObject | None = None
    metadata: Metadata = Field(default_factory=dict)
    interrupt_before: Literal["*"] | list[str] | None = None
    interrupt_after: Literal["*"] | list[str] | None = None
    stream_mode: StreamModes = Field(default_factory=lambda: ["values"])
    stream_subgraphs: bool = False
    stream_resumable: bool = False
    on_disconnect: Literal["cancel", "continue"] | None = None
    multitask_strategy: Multitask = Multitask.ENQUEUE
    if_not_exists: Literal["create", "reject"] = "reject"
    on_completion: Literal["delete", "keep"] | None = None
    after_seconds: Annotated[float, Field(ge=0, le=31_536_000)] | None = None
    durability: Literal["sync", "async", "exit"] = "async"
    checkpoint_during: bool | None = None
    webhook: Annotated[str | None, Field(max_length=2048)] = None


class CancelMany(Body):
    thread_id: UUID | None = None
    run_ids: Annotated[list[UUID], Field(max_length=1000)] | None = None
    status: Literal["pending", "running", "all"] | None = None


class ItemIn(Body):
    namespace: list[str]
    key: str
    value: JsonObject
    index: Literal[False] | list[str] | None = None
    ttl: Annotated[float | None, Field(gt=0, le=1e8)] = None


class ItemKey(Body):
    namespace: list[str] = Field(default_factory=list)
    key: str


class ItemSearch(Body):
    namespace_prefix: list[str] = Field(default_factory=list)
    filter: JsonObject | None = None
    limit: Limit = 10
    offset: Offset = 0
    query: str | None = Field(None, max_length=10_000)
    refresh_ttl: bool | None = None


class NamespaceSearch(Body):
    prefix: list[str] | None = None
    suffix: list[str] | None = None
    max_depth: Annotated[int, Field(ge=1, le=1000)] | None = None
    limit: Limit = 100
    offset: Offset = 0
