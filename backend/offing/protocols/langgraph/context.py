"""What the process that serves LangGraph's API provides: clients, graphs, and who sent a request."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends, Request

from offing.bus.live import LiveBus
from offing.bus.notifier import RunNotifier
from offing.bus.run_streams import RunStreams
from offing.core.header_patterns import HeaderPatterns
from offing.core.langgraph_config import ThreadTtl
from offing.core.model import EngineConfig
from offing.core.webhook_rules import WebhookRules
from offing.mcp.server_registry import McpServerRegistry
from offing.sdk import Graph
from offing.services.langgraph_auth import AuthenticatedUser, ProjectUser
from offing.services.langgraph_runs import MAX_TURNS, RunPlatform
from offing.storage.pool import Database
from offing.telemetry.redaction import may_be_secret
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
    user: AuthenticatedUser | None = None
    """The user of a project. `None` means a key or session of Offing."""
    run_user: Mapping[str, Any] | None = None
    """The fields of the user that are stored with a run, without secrets. `None` means that there is no user."""

    def show_user(self) -> Any:
        """Return the user as code of a project sees it: with attributes and items."""
        return ProjectUser({"identity": self.name}) if self.user is None else self.user.as_mapping()


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
    run_headers: HeaderPatterns | None = None
    """Headers of requests that their runs get under `configurable`. `None` means none."""
    read_webhook_rules: Callable[[], WebhookRules] = WebhookRules
    """Returns the rules of a project for webhooks. Raises InvalidInput if they cannot be read."""
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
    run_headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Headers of the request that its runs get under `configurable`."""

    @property
    def tenant_id(self) -> UUID:
        return self.principal.tenant_id

    @property
    def database(self) -> Database:
        return self.context.database


async def find_caller(request: Request, context: LangGraphContext) -> Caller:
    """Return who sent a request, looked up once."""
    if (caller := getattr(request.state, "langgraph_caller", None)) is None:
        caller = Caller(context, await context.authenticate(request), choose_headers(request, context))
        request.state.langgraph_caller = caller
    return caller


def choose_headers(request: Request, context: LangGraphContext) -> dict[str, str]:
    """Return the headers of a request that its runs get, without those that carry secrets."""
    patterns = context.run_headers
    if patterns is None:
        return {}
    chosen = {name: value for name, value in request.headers.items() if patterns.matches(name)}
    return {name: value for name, value in chosen.items() if not may_be_secret(name, value)}


async def identify_caller(request: Request) -> Caller:
    """Return who sent this request, looked up once."""
    return await find_caller(request, request.app.state.get_context())


CurrentCaller = Annotated[Caller, Depends(identify_caller)]
