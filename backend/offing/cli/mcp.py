"""`offing mcp`: list MCP servers, check their tools, and pin the tools that were reviewed."""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path

from cyclopts import App
from rich.console import Console

from offing import environment
from offing.cli.options import Flag
from offing.cli.terminal import strip_control
from offing.core.errors import InvalidInput
from offing.core.step import shorten_line
from offing.core.untrusted_block import sanitize_text
from offing.mcp.allowed_tools import MAX_DESCRIPTION_CHARS, McpServerTools, match_tools
from offing.mcp.client import McpClient
from offing.mcp.pins import PinnedTools, pin_tools, pins_path, read_pins, write_pins
from offing.mcp.server_registry import McpServerRegistry
from offing.mcp.servers import CONFIG_VARIABLE, McpServerConfig, add_server, parse_servers, read_servers
from offing.mcp.tool_listing import McpToolListing, find_changed_tools
from offing.settings import load_settings
from offing.web.url import InvalidUrl

app = App(name="mcp", help="MCP servers, whose third-party tools runs may use.")


@app.command(name="list")
def list_servers() -> int:
    """List the configured MCP servers and the tools that runs may use. No server is contacted."""
    for server in McpServerRegistry(_config_path()).list_servers().values():
        _print_safe(
            f"[bold]{server.name}[/] "
            f"{strip_control(server.config.url)}{f' - {strip_control(server.problem)}' if server.problem else ''}"
        )
        for tool in server.tools:
            _print_safe(f"  {tool.spec.name} ({tool.config.effect})")
        for name, reason in server.rejected.items():
            _print_safe(f"  {name} is not available: {strip_control(reason)}")
    return 0


@app.command
def add(
    name: str,
    url: str,
    *,
    tool: tuple[str, ...] = (),
    bearer: str | None = None,
    private: Flag = False,
) -> int:
    """Add an MCP server to the configuration file and list its tools.

    Parameters
    ----------
    name
        Name of the server in Offing: lower case letters and digits.
    url
        URL of its MCP endpoint: https://…
    tool
        A tool that runs may use. Repeat the option for several. Default: list all tools and allow none.
    bearer
        Name of the environment variable with the bearer token to send, such as WIKI_TOKEN.
    private
        Allow an address outside the public internet, or without TLS.
    """
    path = _config_path()
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    fresh = add_server(text, name, url, tools=tool, bearer=bearer, private=private)
    _print_tools(name, parse_servers(fresh)[name])
    path.touch(mode=0o600)
    path.write_text(fresh, encoding="utf-8")
    _print_safe(f"Written to {strip_control(str(path))}. Review the tools, then run `offing mcp pin {name}`.")
    return 0


@app.command
def pin(name: str, *, yes: Flag = False) -> int:
    """Show the present tools of a server, and allow runs to use them until they change.

    Parameters
    ----------
    yes
        The tools have been reviewed. Do not ask for confirmation.
    """
    path = _config_path()
    server = _get_server(read_servers(path), name)
    tools = _print_tools(name, server)
    if not yes and not _confirm():
        _print_safe("Nothing is pinned.")
        return 1
    new_pin = pin_tools(server.url, tools)
    write_pins(pins_path(path), {**read_pins(pins_path(path)), name: new_pin})
    _print_safe(f"Pinned: {len(tools)} tools, SHA-256 {new_pin.sha256}.")
    return _print_rejected_tools(match_tools(name, server, new_pin))


@app.command
def check(name: str | None = None) -> int:
    """List the tools of MCP servers and show which differ from their pins. Exits with 1 if one differs.

    Parameters
    ----------
    name
        Name of one server. Default: all servers.
    """
    path = _config_path()
    servers = read_servers(path)
    selected = servers if name is None else {name: _get_server(servers, name)}
    pins = read_pins(pins_path(path))
    problems = [_has_problem(server_name, server, pins) for server_name, server in selected.items()]
    return 1 if any(problems) else 0


def _has_problem(name: str, server: McpServerConfig, pins: Mapping[str, PinnedTools]) -> bool:
    """Check one server, print its problems and return whether there are any."""
    pin = pins.get(name)
    if pin is None or pin.url != server.url:
        _print_safe(f"{name}: not pinned; run `offing mcp pin {name}`")
        return True
    listing = asyncio.run(_list_tools(server))
    if isinstance(listing, InvalidUrl):
        _print_safe(f"{name}: {strip_control(listing.problem)}")
        return True
    if different := find_changed_tools(pin.tools, listing):
        _print_safe(f"{name}: changed since it was pinned: {strip_control(', '.join(different))}")
        return True
    _print_safe(f"{name}: unchanged since it was pinned")
    return False


def _print_tools(name: str, server: McpServerConfig) -> tuple[McpToolListing, ...]:
    """Print and return the tools of a server. Raises InvalidInput if it has none."""
    listing = asyncio.run(_list_tools(server))
    if isinstance(listing, InvalidUrl):
        raise InvalidInput(name, listing.problem.rstrip("."), f"Check {server.url} and the MCP configuration file.")
    for tool in listing:
        mark = "allowed" if tool.name in server.tools else "not allowed"
        arguments = tool.schema.get("properties")
        names = ", ".join(map(str, arguments)) if isinstance(arguments, dict) else ""  # pyright: ignore[reportUnknownArgumentType]
        title, listed_names = _shorten(tool.name, 80), _shorten(names, 200)
        _print_safe(f"[bold]{title}[/]({listed_names}): {mark}")
        _print_safe(f"  {_shorten(tool.description, MAX_DESCRIPTION_CHARS)}")
    return listing


def _shorten(text: str, max_chars: int) -> str:
    return strip_control(shorten_line(sanitize_text(text), max_chars))


def _print_rejected_tools(tools: McpServerTools) -> int:
    for tool, reason in tools.rejected.items():
        _print_safe(f"{tool} is not available: {strip_control(reason)}.")
    if not tools.tools:
        _print_safe(f"No run can use {tools.name} yet: {strip_control(tools.problem)}.")
    return 0


async def _list_tools(server: McpServerConfig) -> tuple[McpToolListing, ...] | InvalidUrl:
    async with McpClient(environment.VARIABLES) as client:
        return await client.list_tools(server)


def _config_path() -> Path:
    path = load_settings().mcp_config
    if path is None:
        raise InvalidInput(
            CONFIG_VARIABLE, "is not set", "Set it to the path of the MCP configuration file, such as mcp.toml."
        )
    return path


def _get_server(servers: Mapping[str, McpServerConfig], name: str) -> McpServerConfig:
    if name not in servers:
        raise InvalidInput(
            "NAME", f"there is no server {name!r}", f"Configured servers: {', '.join(sorted(servers)) or 'none'}."
        )
    return servers[name]


def _confirm() -> bool:
    if not sys.stdin.isatty():
        raise InvalidInput("--yes", "standard input is not a terminal", "Review the tools, then use --yes.")
    return input("Allow runs to use the allowed tools while they stay unchanged? [y/N] ").lower() == "y"


def _print_safe(text: str) -> None:
    Console(highlight=False, soft_wrap=True).print(text)
