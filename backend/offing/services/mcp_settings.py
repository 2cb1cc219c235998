"""MCP servers for people who set them up: their pinned tools, what has changed since, and adding and pinning them.

A server gives third-party code a way into runs. Whoever adds or pins one sends the hash of the tool list that was
reviewed. The list is fetched again, and nothing is stored if it differs.
"""

import asyncio
import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from offing.core.errors import Conflict, InvalidInput, NotFound
from offing.mcp.allowed_tools import McpServerTools
from offing.mcp.client import McpClient
from offing.mcp.pins import pin_tools, pins_path, read_pins, write_pins
from offing.mcp.server_registry import McpServerRegistry
from offing.mcp.servers import (
    CONFIG_VARIABLE,
    McpServerConfig,
    add_server,
    list_secret_names,
    parse_servers,
    read_servers,
    read_trusted_file,
)
from offing.mcp.tool_changes import ToolChange, clean_value, list_tool_changes
from offing.mcp.tool_listing import McpToolListing, hash_tools
from offing.web.url import InvalidUrl

SECRET_NAME = re.compile(r"MCP_[A-Z0-9_]{0,90}(KEY|TOKEN|SECRET)")
"""Variables whose values a server that is added here may receive. Those of other programs, such as provider keys, are
not among them.
"""

SERVER_NAME = re.compile(r"[a-z][a-z0-9]{0,23}")

MAX_CONCURRENT_LISTINGS = 4
"""Maximum number of servers that a process asks for their tools at the same time."""


@dataclass(frozen=True, slots=True)
class ToolDescription:
    """A tool of a server. Name, description and arguments are third-party text, shortened."""

    name: str
    description: str
    arguments: tuple[str, ...]
    is_allowed: bool
    """Whether the configuration allows it."""
    problem: str = ""
    """Why runs cannot use it although it is allowed. Empty if they can, or if it is not allowed."""


@dataclass(frozen=True, slots=True)
class SecretVariable:
    name: str
    sent_as: str
    """Such as `bearer token` or `header X-Api-Key`."""
    is_set: bool


@dataclass(frozen=True, slots=True)
class ServerState:
    """A configured server, as far as it is known without contacting it."""

    name: str
    host: str
    is_private: bool
    pinned_sha256: str | None
    """Hash of the pinned tool list. `None` means that it is not pinned at its present address."""
    secrets: tuple[SecretVariable, ...]
    tools: tuple[ToolDescription, ...]
    """Pinned tools. Of a server that is not pinned, the tools that the configuration allows."""
    problem: str
    """Why no run can use it. Empty if runs can."""


@dataclass(frozen=True, slots=True)
class McpSetup:
    """The MCP servers of this installation."""

    is_configured: bool
    """Whether OFFING_MCP_CONFIG names a file."""
    servers: tuple[ServerState, ...] = ()
    problem: str = ""
    """Why the files cannot be used. Empty if they can."""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class ServerListing:
    """What a server lists now."""

    tools: tuple[ToolDescription, ...]
    sha256: str
    """Hash of the tool list. Empty if the server did not list its tools."""
    changes: tuple[ToolChange, ...]
    """Differences from the pinned tools. Empty if nothing is pinned."""
    problem: str = ""
    """Why the server did not list its tools. Empty if it did."""


@dataclass(frozen=True, slots=True)
class NewServer:
    """A server to add. It must be on the public internet."""

    name: str
    url: str
    bearer: str | None
    """Environment variable with the bearer token. `None` means that none is sent."""
    tools: Sequence[str] = ()
    """Tools that runs may use."""


def describe_servers(registry: McpServerRegistry, env: Mapping[str, str]) -> McpSetup:
    """Describe the configured servers. None is contacted."""
    if registry.path is None:
        return McpSetup(is_configured=False)
    try:
        servers = registry.list_servers() if registry.path.exists() else dict[str, McpServerTools]()
    except InvalidInput as error:
        return McpSetup(True, (), error.problem, error.remedy)
    return McpSetup(True, tuple(_describe_server(one, env) for one in servers.values()))


class McpReview:
    """Reviews of MCP servers in one process, of which few run at the same time."""

    def __init__(self, client: McpClient, registry: McpServerRegistry) -> None:
        self._client, self._registry = client, registry
        self._slots = asyncio.Semaphore(MAX_CONCURRENT_LISTINGS)
        self._file_lock = asyncio.Lock()
        """Held while this process changes the files."""

    async def check_server(self, name: str) -> ServerListing:
        """List the present tools of a configured server and compare them with the pinned ones. Raises NotFound."""
        server = _get_server(self._registry, name)
        listing = await self._list_tools(server.config)
        if isinstance(listing, InvalidUrl):
            return ServerListing((), "", (), listing.problem)
        changes = list_tool_changes(server.pin.tools, listing) if server.pin else ()
        return ServerListing(_describe_tools(listing, server.config, server.rejected), hash_tools(listing), changes)

    async def pin_server(self, name: str, reviewed_sha256: str) -> ServerListing:
        """Pin the present tools of a configured server, if they are those that were reviewed.

        Raises NotFound, and Conflict if they differ or cannot be listed.
        """
        path, server = _get_path(self._registry), _get_server(self._registry, name)
        listing = await self._list_reviewed(server.config, reviewed_sha256)
        async with self._file_lock:
            await asyncio.to_thread(_write_pin, path, name, server.config, listing)
        return ServerListing(_describe_tools(listing, server.config, {}), reviewed_sha256, ())

    async def unpin_server(self, name: str) -> None:
        """Remove the pin of a server, so that runs cannot use it. Raises NotFound."""
        path = _get_path(self._registry)
        _get_server(self._registry, name)
        async with self._file_lock:
            await asyncio.to_thread(_remove_pin, path, name)

    async def preview_server(self, new: NewServer) -> ServerListing:
        """List the tools of a server that is not configured yet. Nothing is stored. Raises InvalidInput."""
        config = await asyncio.to_thread(_parse_new, _get_path(self._registry), new)
        listing = await self._list_tools(config)
        if isinstance(listing, InvalidUrl):
            return ServerListing((), "", (), listing.problem)
        return ServerListing(_describe_tools(listing, config, {}), hash_tools(listing), ())

    async def add_server(self, new: NewServer, reviewed_sha256: str) -> ServerListing:
        """Write a server to the configuration file and pin its tools, if they are those that were reviewed.

        Raises InvalidInput, and Conflict if the tools differ or the file cannot be written.
        """
        path = _get_path(self._registry)
        config = await asyncio.to_thread(_parse_new, path, new)
        listing = await self._list_reviewed(config, reviewed_sha256)
        if unknown := sorted(set(new.tools) - {tool.name for tool in listing}):
            problem = f"the server has no tool {unknown[0]!r}"
            raise InvalidInput("tools", problem, "Choose among the tools that it lists.")
        async with self._file_lock:
            await asyncio.to_thread(_write_server, path, new, config, listing)
        return ServerListing(_describe_tools(listing, config, {}), reviewed_sha256, ())

    async def _list_tools(self, config: McpServerConfig) -> tuple[McpToolListing, ...] | InvalidUrl:
        async with self._slots:
            return await self._client.list_tools(config)

    async def _list_reviewed(self, config: McpServerConfig, sha256: str) -> tuple[McpToolListing, ...]:
        listing = await self._list_tools(config)
        if isinstance(listing, InvalidUrl):
            raise Conflict(f"The server did not list its tools. {listing.problem}", "Check it again.")
        if hash_tools(listing) != sha256:
            problem = "The tools of the server are not those that were shown."
            raise Conflict(problem, "Check it again, and review them.")
        return listing


def _parse_new(path: Path, new: NewServer) -> McpServerConfig:
    """Return the configuration of a new server. Raises InvalidInput if it exists or is invalid."""
    if not SERVER_NAME.fullmatch(new.name):  # it becomes part of the file's text
        remedy = "Use a letter and up to 23 further lower-case letters and digits."
        raise InvalidInput("name", f"{new.name[:80]!r} cannot be the name of a server", remedy)
    if new.bearer is not None and not SECRET_NAME.fullmatch(new.bearer):
        remedy = "Use a variable such as MCP_WIKI_TOKEN. For another variable, use `offing mcp add` on the machine."
        problem = "must begin with MCP_ and end in _KEY, _TOKEN or _SECRET"
        raise InvalidInput("bearer", problem, remedy)
    servers = parse_servers(_add_to(path, new))
    config = servers.pop(new.name)
    _check_secret_is_free(new, config, servers)
    if config.private or config.headers or config.query:
        raise InvalidInput("url", "is not that of a public server", "Use `offing mcp add` on the machine.")
    return config


def _check_secret_is_free(new: NewServer, config: McpServerConfig, others: Mapping[str, McpServerConfig]) -> None:
    """Raise InvalidInput if the variable of the token already belongs to a server with another address."""
    for name, other in others.items():
        if new.bearer in list_secret_names(other) and other.parsed_url.authority != config.parsed_url.authority:
            problem = f"{new.bearer} is sent to the server {name}"
            raise InvalidInput("bearer", problem, "Use another variable, so that each server gets its own token.")


def _add_to(path: Path, new: NewServer) -> str:
    """Return the text of the configuration file with one more server."""
    text = read_trusted_file(path) if path.exists() else ""
    try:
        return add_server(text, new.name, new.url, tools=new.tools, bearer=new.bearer)
    except InvalidInput as error:
        if error.field == "NAME":
            raise InvalidInput("name", error.problem, "Use another name.") from None
        raise InvalidInput("url", error.problem, "Correct the name, the address or the tools.") from None


def _write_server(path: Path, new: NewServer, config: McpServerConfig, listing: Sequence[McpToolListing]) -> None:
    try:
        _replace_file(path, _add_to(path, new))
    except OSError as error:
        raise _cannot_write(path, error) from None
    _write_pin(path, new.name, config, listing)


def _write_pin(path: Path, name: str, config: McpServerConfig, listing: Sequence[McpToolListing]) -> None:
    """Pin the tools of a server, if its configuration has not been changed meanwhile. Raises Conflict."""
    if read_servers(path).get(name) != config:
        raise Conflict(f"The configuration of {name} was changed meanwhile.", "Check it again, and review its tools.")
    pins = read_pins(pins_path(path))
    try:
        write_pins(pins_path(path), {**pins, name: pin_tools(config.url, listing)})
    except OSError as error:
        raise _cannot_write(pins_path(path), error) from None


def _remove_pin(path: Path, name: str) -> None:
    pins = read_pins(pins_path(path))
    if pins.pop(name, None) is None:
        return
    try:
        write_pins(pins_path(path), pins)
    except OSError as error:
        raise _cannot_write(pins_path(path), error) from None


def _replace_file(path: Path, text: str) -> None:
    """Write a file atomically. It keeps its permissions; a new one is readable by its owner alone."""
    path = path.resolve()
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o600
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.fchmod(descriptor, mode)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(fresh, path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _cannot_write(path: Path, error: OSError) -> Conflict:
    remedy = "Use `offing mcp add` and `offing mcp pin` as the user who owns the files."
    return Conflict(f"The API cannot write {path.name} ({error.strerror}).", remedy)


def _get_path(registry: McpServerRegistry) -> Path:
    if registry.path is None:
        remedy = f"Set {CONFIG_VARIABLE}=mcp.toml in the environment of the API and the workers, and restart them."
        raise Conflict(f"{CONFIG_VARIABLE} is not set, so there is no file for MCP servers.", remedy)
    return registry.path


def _get_server(registry: McpServerRegistry, name: str) -> McpServerTools:
    server = registry.list_servers().get(name) if registry.path and registry.path.exists() else None
    if server is None:
        raise NotFound("MCP server", name)
    return server


def _describe_server(server: McpServerTools, env: Mapping[str, str]) -> ServerState:
    secrets = tuple(
        SecretVariable(name, sent_as, bool(env.get(name))) for name, sent_as in list_secret_names(server.config).items()
    )
    missing = [one.name for one in secrets if not one.is_set]
    problem = server.problem or (f"{missing[0]} is not set" if missing else "")
    return ServerState(
        server.name,
        server.config.parsed_url.authority,
        server.config.private,
        server.pin.sha256 if server.pin else None,
        secrets,
        _list_known_tools(server),
        problem,
    )


def _list_known_tools(server: McpServerTools) -> tuple[ToolDescription, ...]:
    if server.pin is None:
        return tuple(ToolDescription(name, "", (), is_allowed=True) for name in server.config.tools)
    missing = [name for name in server.rejected if name not in {tool.name for tool in server.pin.tools}]
    absent = tuple(ToolDescription(name, "", (), True, server.rejected[name]) for name in missing)
    return (*_describe_tools(server.pin.tools, server.config, server.rejected), *absent)


def _describe_tools(
    listing: Sequence[McpToolListing], config: McpServerConfig, rejected: Mapping[str, str]
) -> tuple[ToolDescription, ...]:
    return tuple(
        ToolDescription(
            clean_value(tool.name),
            clean_value(tool.description),
            tuple(clean_value(name) for name in _list_properties(tool)),
            tool.name in config.tools,
            rejected.get(tool.name, ""),
        )
        for tool in sorted(listing, key=lambda tool: tool.name)
    )


def _list_properties(tool: McpToolListing) -> list[str]:
    properties = tool.schema.get("properties")
    return list(cast(dict[str, Any], properties))[:50] if isinstance(properties, dict) else []
