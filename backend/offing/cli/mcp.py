"""`offing mcp`: which servers there are, looking at their tools, and pinning what was looked at."""

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console

from offing.cli.terminal import safe
from offing.core.blocks import plain
from offing.core.errors import InvalidInput
from offing.core.step import shortened
from offing.mcp.catalogue import Catalogue
from offing.mcp.client import Asking
from offing.mcp.listed import Listed, changed
from offing.mcp.offered import LONGEST_TOLD, Offered, offered
from offing.mcp.pins import Pin, pinned, pins_path, read_pins, write_pins
from offing.mcp.servers import VARIABLE, Server, read_servers, servers_in, with_server
from offing.settings import load_settings
from offing.web.url import Refused

app = App(name="mcp", help="Other people's tools: MCP servers that runs may use.")

Flag = Annotated[bool, Parameter(negative="")]


@app.command(name="list")
def list_() -> int:
    """Say which servers there are, and which of their tools runs may use. Asks none of them."""
    for one in Catalogue(_path()).servers().values():
        _say(f"[bold]{one.name}[/] {safe(one.server.url)}{f' - {safe(one.problem)}' if one.problem else ''}")
        for tool in one.tools:
            _say(f"  {tool.spec.name} ({tool.allowed.effect})")
        for name, why in one.refused.items():
            _say(f"  {name} is not offered: {safe(why)}")
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
    """Write a server into the operator's file, and look at its tools.

    Parameters
    ----------
    name
        What it is called here: small letters and digits.
    url
        Where it is asked: https://… of its MCP endpoint.
    tool
        A tool that runs may use, or several. None: all that it lists are shown, and none is allowed yet.
    bearer
        The environment variable whose value it is sent as a bearer token, such as WIKI_TOKEN.
    private
        It may lie outside the public internet, or be asked without TLS.
    """
    path = _path()
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    fresh = with_server(text, name, url, tools=tool, bearer=bearer, private=private)
    _say_list(name, servers_in(fresh)[name])
    path.touch(mode=0o600)
    path.write_text(fresh, encoding="utf-8")
    _say(f"Written to {safe(str(path))}. Read what its tools say, then run `offing mcp pin {name}`.")
    return 0


@app.command
def pin(name: str, *, yes: Flag = False) -> int:
    """Show a server's tools as they are now, and let runs use them as long as they stay so.

    Parameters
    ----------
    yes
        They have been looked at; do not ask.
    """
    path = _path()
    server = _server(read_servers(path), name)
    tools = _say_list(name, server)
    if not yes and not _agreed():
        _say("Nothing is pinned.")
        return 1
    made = pinned(server.url, tools)
    write_pins(pins_path(path), {**read_pins(pins_path(path)), name: made})
    _say(f"Pinned: {len(tools)} tools, SHA-256 {made.sha256}.")
    return _say_refused(offered(name, server, made))


@app.command
def check(name: str | None = None) -> int:
    """Ask servers for their tools, and say which differ from what was pinned; 1 where one does.

    Parameters
    ----------
    name
        One server. None: all.
    """
    path = _path()
    servers = read_servers(path)
    wanted = servers if name is None else {name: _server(servers, name)}
    pins = read_pins(pins_path(path))
    problems = [_checked(one, server, pins) for one, server in wanted.items()]
    return 1 if any(problems) else 0


def _checked(name: str, server: Server, pins: Mapping[str, Pin]) -> bool:
    """Whether something is wrong, which is said."""
    pin = pins.get(name)
    if pin is None or pin.url != server.url:
        _say(f"{name}: not pinned; run `offing mcp pin {name}`")
        return True
    found = asyncio.run(_listed(server))
    if isinstance(found, Refused):
        _say(f"{name}: {safe(found.problem)}")
        return True
    if different := changed(pin.tools, found):
        _say(f"{name}: changed since it was pinned: {safe(', '.join(different))}")
        return True
    _say(f"{name}: as it was pinned")
    return False


def _say_list(name: str, server: Server) -> tuple[Listed, ...]:
    """Show a server's tools. Raises InvalidInput where it gives none."""
    found = asyncio.run(_listed(server))
    if isinstance(found, Refused):
        raise InvalidInput(name, found.problem.rstrip("."), f"Look at {server.url} and at the operator's file.")
    for tool in found:
        mark = "allowed" if tool.name in server.tools else "not allowed"
        arguments = tool.schema.get("properties")
        names = ", ".join(map(str, arguments)) if isinstance(arguments, dict) else ""  # pyright: ignore[reportUnknownArgumentType]
        _say(f"[bold]{safe(shortened(plain(tool.name), 80))}[/]({safe(shortened(plain(names), 200))}): {mark}")
        _say(f"  {safe(shortened(plain(tool.description), LONGEST_TOLD))}")
    return found


def _say_refused(one: Offered) -> int:
    for tool, why in one.refused.items():
        _say(f"{tool} is not offered: {safe(why)}.")
    if not one.tools:
        _say(f"No run can use {one.name} yet: {safe(one.problem)}.")
    return 0


async def _listed(server: Server) -> tuple[Listed, ...] | Refused:
    async with Asking(os.environ) as asking:
        return await asking.listed(server)


def _path() -> Path:
    path = load_settings().mcp
    if path is None:
        raise InvalidInput(VARIABLE, "is not set", "Set it to the file that names the servers, such as mcp.toml.")
    return path


def _server(servers: Mapping[str, Server], name: str) -> Server:
    if name not in servers:
        raise InvalidInput(
            "NAME", f"there is no server {name!r}", f"There are: {', '.join(sorted(servers)) or 'none'}."
        )
    return servers[name]


def _agreed() -> bool:
    if not sys.stdin.isatty():
        raise InvalidInput("--yes", "nobody can be asked here", "Look at the tools, then give --yes.")
    return input("May runs use the tools that are allowed, as long as they stay as they are? [y/N] ").lower() == "y"


def _say(text: str) -> None:
    Console(highlight=False, soft_wrap=True).print(text)
