"""Bodies of requests. A field that is not here is rejected by its name."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from offing.core.langgraph_config import ThreadTtlStrategy
from offing.core.langgraph_run import Multitask

JsonObject = dict[str, Any]

Limit = Annotated[int, Field(ge=1, le=1000)]
Offset = Annotated[int, Field(ge=0, le=2**31 - 1)]


def _reject_nul(value: Any) -> Any:
    """Reject text that Postgres cannot store."""
    if isinstance(value, str) and ("\0" in value or any("\ud800" <= c <= "\udfff" for c in value)):
        raise ValueError("the text has a NUL character or half a surrogate pair; remove it")
    if isinstance(value, Mapping):
        for key, item in value.items():  # pyright: ignore[reportUnknownVariableType]
            _reject_nul(key)
            _reject_nul(item)
    elif isinstance(value, list):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            _reject_nul(item)
    return value  # pyright: ignore[reportUnknownVariableType]


Storable = BeforeValidator(_reject_nul)

Json = Annotated[Any, Storable]
Object = Annotated[JsonObject, Storable]


def _empty_if_none(value: Any) -> Any:
    return {} if value is None else value


Metadata = Annotated[JsonObject, BeforeValidator(_empty_if_none), Storable]


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class AssistantIn(Body):
    assistant_id: UUID | None = None
    graph_id: str
    config: Metadata = Field(default_factory=dict)
    context: Metadata = Field(default_factory=dict)
    metadata: Metadata = Field(default_factory=dict)
    if_exists: Literal["raise", "do_nothing"] = "raise"
    name: Annotated[str | None, Storable] = Field(None, max_length=300)
    description: Annotated[str | None, Storable] = Field(None, max_length=5000)


class AssistantChange(Body):
    graph_id: str | None = None
    config: Object | None = None
    context: Object | None = None
    metadata: Object | None = None
    name: Annotated[str | None, Storable] = Field(None, max_length=300)
    description: Annotated[str | None, Storable] = Field(None, max_length=5000)


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
    values: Json = None
    command: Object | None = None
    as_node: Annotated[str | None, Storable] = None
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
    values: Object | None = None
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
    checkpoint_id: Annotated[str | None, Storable] = None
    checkpoint_map: JsonObject | None = None


class CheckpointRead(Body):
    checkpoint: CheckpointIn
    subgraphs: bool = False


class StateChange(Body):
    values: Json = None
    as_node: Annotated[str | None, Storable] = None
    checkpoint: CheckpointIn | None = None
    checkpoint_id: Annotated[str | None, Storable] = None


class HistorySearch(Body):
    limit: Limit = 10
    before: CheckpointIn | JsonObject | str | None = None
    metadata: Object | None = None
    checkpoint: CheckpointIn | None = None


class SendIn(Body):
    node: Annotated[str, Storable]
    input: Json = None


class CommandIn(Body):
    resume: Json = None
    update: Json = None
    goto: SendIn | str | list[SendIn | str] | None = None


class ConfigIn(Body):
    tags: Annotated[list[str], Storable] | None = None
    recursion_limit: Annotated[int, Field(ge=1, le=100_000)] | None = None
    configurable: Object | None = None
    metadata: Object | None = None


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
    input: Json = None
    command: CommandIn | None = None
    checkpoint: CheckpointIn | None = None
    checkpoint_id: Annotated[str | None, Storable] = None
    config: ConfigIn = Field(default_factory=ConfigIn)
    context: Object | None = None
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
    webhook: Annotated[str | None, Storable, Field(max_length=2048)] = None


class CancelMany(Body):
    thread_id: UUID | None = None
    run_ids: Annotated[list[UUID], Field(max_length=1000)] | None = None
    status: Literal["pending", "running", "all"] | None = None


class ItemIn(Body):
    namespace: Annotated[list[str], Storable]
    key: Annotated[str, Storable]
    value: Object
    index: Literal[False] | list[str] | None = None
    ttl: Annotated[float | None, Field(gt=0, le=1e8)] = None


class ItemKey(Body):
    namespace: Annotated[list[str], Storable] = Field(default_factory=list)
    key: Annotated[str, Storable]


class ItemSearch(Body):
    namespace_prefix: Annotated[list[str], Storable] = Field(default_factory=list)
    filter: Object | None = None
    limit: Limit = 10
    offset: Offset = 0
    query: Annotated[str | None, Storable] = Field(None, max_length=10_000)
    refresh_ttl: bool | None = None


class NamespaceSearch(Body):
    prefix: Annotated[list[str], Storable] | None = None
    suffix: Annotated[list[str], Storable] | None = None
    max_depth: Annotated[int, Field(ge=1, le=1000)] | None = None
    limit: Limit = 100
    offset: Offset = 0
