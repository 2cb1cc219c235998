"""What the process that serves LangGraph's API provides: clients, graphs, and who sent a request."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends, Request

from offing.bus.live import LiveBus
from offing.bus.notifier import RunNotifier
from offing.bus.run_streams import RunStreams
from offing.core.langgraph_config import ThreadTtl
from offing.core.model import EngineConfig
from offing.mcp.server_registry import McpServerRegistry
from offing.sdk import Graph
from offing.services.langgraph_runs import MAX_TURNS, RunPlatform
from offing.storage.pool import Database
from offing.web.guard import AddressGuard, resolve_host


@dataclass(frozen=True, slots=True)
class Principal:
    """Who sent a request."""

    tenant_id: UUID
    name: str
    """Identifies the key or session, as in `key:<id>`."""
    reauthenticate: Callable[[], Awaitable[object]]
    """Checks that the key or session is still valid. Raises Unauthorized."""
    authorize: Callable[[str, str, dict[str, Any]], Awaitable[Mapping[str, Any]]] | None = None
    """Asks the handlers of a project whether its user may do something: resource, action and value. It may change the
    value, and returns the filter that records must match. `None` means that the caller sees everything of the tenant.
    """


@dataclass(frozen=True, slots=True)
class LangGraphContext:
    """The clients and settings of the process."""

    database: Database
    notifier: RunNotifier
    bus: LiveBus
    run_streams: RunStreams
    graphs: Mapping[str, Graph]
    default_engine: EngineConfig
    authenticate: Callable[[Request], Awaitable[Principal]]
    """Returns who sent a request. Raises Unauthorized, or any HTTPException."""
    role_engines: Mapping[str, EngineConfig] = field(default_factory=dict[str, EngineConfig])
    """Engines that the operator configured for roles, by role name."""
    mcp_servers: McpServerRegistry = field(default_factory=McpServerRegistry)
    render_metrics: Callable[[UUID], Awaitable[bytes | str]] | None = None
    """Returns the metrics of a tenant in Prometheus text format. `None` means that the process has none."""
    thread_ttl: ThreadTtl | None = None
    """When threads expire that name no time. `None` means never."""
    address_guard: AddressGuard = field(default_factory=lambda: AddressGuard(resolve_host))
    """Decides which addresses webhooks of runs may have."""
    max_turns: int = MAX_TURNS
    """Maximum number of model calls of a run, because LangGraph's clients name none."""

    @property
    def platform(self) -> RunPlatform:
        """Return what making a run needs."""
        return RunPlatform(
            self.database,
            self.notifier,
            self.bus,
            self.graphs,
            self.default_engine,
            self.role_engines,
            self.mcp_servers,
            self.thread_ttl,
            self.max_turns,
        )


@dataclass(frozen=True, slots=True)
class Caller:
    """A request's context and who sent it."""

    context: LangGraphContext
    principal: Principal

    @property
    def tenant_id(self) -> UUID:
        return self.principal.tenant_id

    @property
    def database(self) -> Database:
        return self.context.database


async def identify_caller(request: Request) -> Caller:
    """Return who sent this request, looked up once."""
    if (caller := getattr(request.state, "langgraph_caller", None)) is None:
        context: LangGraphContext = request.app.state.get_context()
        caller = request.state.langgraph_caller = Caller(context, await context.authenticate(request))
    return caller


CurrentCaller = Annotated[Caller, Depends(identify_caller)]
