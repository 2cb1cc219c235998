"""Scopes of tasks: check that everything they name can be used by the tenant, and pin what the names stand for.

A scope is checked when its task is stored and again when a batch is created. The batch keeps the pins, so that all of
its rollouts have the same tools, tool policies and recorded pages, also those that are created after an interruption.
"""

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from offing.core.errors import Conflict, InvalidInput, NotFound
from offing.core.tool_policy import ToolPolicy, parse_stored_policy
from offing.mcp.server_registry import McpServerRegistry
from offing.storage import library, named_tool_policies, web_pages
from offing.storage.pool import Connection

TOOL_FIELDS = ("web", "code", "mcp", "mcp_pins", "pages", "tool_policy")
"""Fields of a scope that decide which tools a run has and what they may do."""

ENVIRONMENT_EXCLUDES = ("web", "code", "mcp", "pages")


@dataclass(frozen=True, slots=True)
class ScopePins:
    """What the names in the scopes of a batch stand for."""

    mcp: Mapping[str, str] = field(default_factory=dict[str, str])
    """Hash of the approved tool list, by MCP server."""
    pages: Mapping[str, str] = field(default_factory=dict[str, str])
    """Id of the recorded text, by URL."""
    tool_policies: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """Tool policies by name."""

    def to_json(self) -> dict[str, Any]:
        """Return the pins as a batch stores them. Empty if nothing is pinned."""
        parts = {"mcp": self.mcp, "pages": self.pages, "tool_policies": self.tool_policies}
        return {name: dict(part) for name, part in parts.items() if part}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "ScopePins":
        return cls(values.get("mcp", {}), values.get("pages", {}), values.get("tool_policies", {}))

    def apply(self, scope: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a run's scope that its pins replace."""
        fields: dict[str, Any] = {}
        if scope.get("mcp"):
            fields["mcp_pins"] = {name: self.mcp[name] for name in scope["mcp"]}
        if scope.get("pages"):
            fields["pages"] = {url: self.pages[url] for url in scope["pages"]}
        return fields

    def find_policy(self, scope: Mapping[str, Any]) -> ToolPolicy | None:
        """Return the tool policy that a scope names. `None` means the default one."""
        name = scope.get("tool_policy")
        return parse_stored_policy(self.tool_policies[name]) if name else None


@dataclass(frozen=True, slots=True)
class NamedScope:
    """The scope of a task, with the words that name the task in errors."""

    task: str
    scope: Mapping[str, Any]


@contextmanager
def naming_task(task: str, scope_field: str) -> Generator[None]:
    """Turn an error about one field of a scope into one that also names the task."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(f"tasks.{task}.scope.{scope_field}", error.problem, error.remedy) from None


async def pin_scopes(
    connection: Connection, tenant_id: UUID, scopes: Iterable[NamedScope], servers: McpServerRegistry | None
) -> ScopePins:
    """Check scopes and return their pins. `servers` are the operator's MCP servers; `None` means that there are none.

    Raises InvalidInput that names the task, the field and the remedy, also for what belongs to another tenant.
    """
    named_scopes = [one for one in scopes if one.scope]
    await _check_collections(connection, tenant_id, named_scopes)
    await _check_sources(connection, tenant_id, named_scopes)
    for one in named_scopes:
        _check_environment(one)
    return ScopePins(
        _pin_servers(named_scopes, servers or McpServerRegistry()),
        await _pin_pages(connection, tenant_id, named_scopes),
        await _pin_policies(connection, named_scopes),
    )


def check_pinned_servers(pins: ScopePins, servers: McpServerRegistry | None) -> None:
    """Raise Conflict if the tools of a pinned MCP server are not those of the batch any more."""
    registry = servers or McpServerRegistry()
    for name, pin in pins.mcp.items():
        if _get_pin(registry, name) != pin:
            raise Conflict(
                f"The approved tools of the MCP server {name} have changed since the batch was created.",
                "Collect the rollouts again as a new batch.",
            )


async def _check_collections(connection: Connection, tenant_id: UUID, scopes: Iterable[NamedScope]) -> None:
    tasks_by_name = {name: one.task for one in scopes for name in one.scope.get("collections", ())}
    present = await library.list_present_collections(connection, tenant_id, list(tasks_by_name))
    for name in tasks_by_name.keys() - present:
        raise InvalidInput(
            f"tasks.{tasks_by_name[name]}.scope.collections",
            f"there is no collection {name!r} in the library",
            "Ingest its documents first, or name another collection.",
        )


async def _check_sources(connection: Connection, tenant_id: UUID, scopes: Iterable[NamedScope]) -> None:
    tasks_by_name = {UUID(str(id)): one.task for one in scopes for id in one.scope.get("sources", ())}
    present = await library.list_present_sources(connection, tenant_id, list(tasks_by_name))
    for id in tasks_by_name.keys() - present:
        raise InvalidInput(
            f"tasks.{tasks_by_name[id]}.scope.sources",
            f"there is no source {id} in the library",
            "Name the id of a source as `offing documents list` shows it.",
        )


def _check_environment(one: NamedScope) -> None:
    excluded = next((name for name in ENVIRONMENT_EXCLUDES if one.scope.get(name)), None)
    if one.scope.get("environment") and excluded:
        raise InvalidInput(
            f"tasks.{one.task}.scope.{excluded}",
            "the task has an environment, whose tools replace all others",
            f"Remove `environment` or `{excluded}`.",
        )


def _pin_servers(scopes: Iterable[NamedScope], servers: McpServerRegistry) -> dict[str, str]:
    pins: dict[str, str] = {}
    for one in scopes:
        for name in one.scope.get("mcp", ()):
            with naming_task(one.task, "mcp"):
                pins[name] = pins.get(name) or _require_pin(servers, name)
            if one.scope.get("mcp_pins", {}).get(name, pins[name]) != pins[name]:
                raise InvalidInput(
                    f"tasks.{one.task}.scope.mcp_pins",
                    f"the approved tools of the MCP server {name} are not those with this hash",
                    f"Use {pins[name]}, or leave out the pin.",
                )
    return pins


def _require_pin(servers: McpServerRegistry, name: str) -> str:
    (server,) = servers.require_servers((name,))
    assert server.pin is not None
    return server.pin.sha256


def _get_pin(servers: McpServerRegistry, name: str) -> str:
    """Return the hash of the tools that are approved at present. Empty if the server cannot be used."""
    server = servers.list_servers().get(name)
    return "" if server is None or server.pin is None or server.problem else server.pin.sha256


async def _pin_pages(connection: Connection, tenant_id: UUID, scopes: Iterable[NamedScope]) -> dict[str, str]:
    tasks_by_name = {url: one.task for one in scopes for url in one.scope.get("pages", ())}
    recorded = await web_pages.find_recorded_texts(connection, tenant_id, list(tasks_by_name))
    for url in tasks_by_name.keys() - recorded.keys():
        raise InvalidInput(
            f"tasks.{tasks_by_name[url]}.scope.pages",
            f"the page {url} is not recorded",
            "Let a run with access to the web read it first, or use `web` to read live pages.",
        )
    return {url: str(text) for url, text in recorded.items()}


async def _pin_policies(connection: Connection, scopes: Iterable[NamedScope]) -> dict[str, Mapping[str, Any]]:
    tasks_by_name = {str(one.scope["tool_policy"]): one.task for one in scopes if one.scope.get("tool_policy")}
    pinned: dict[str, Mapping[str, Any]] = {}
    for name, task in tasks_by_name.items():
        try:
            stored = await named_tool_policies.get_policy(connection, name)
        except NotFound:
            stored = None
        if stored is None or stored.policy is None:
            cause = "there is no" if stored is None else "this version of Offing cannot read the"
            problem = f"{cause} tool policy {name!r}"
            remedy = "Keep one under this name with `offing tool-policy save`, or name another."
            raise InvalidInput(f"tasks.{task}.scope.tool_policy", problem, remedy)
        pinned[name] = stored.policy.to_json()
    return pinned
