"""Operator's files of MCP servers, as tests write them."""

from pathlib import Path

import redis

from offing.mcp.client import McpClient
from offing.mcp.pins import pin_tools, pins_path, read_pins, write_pins
from offing.mcp.servers import read_servers
from offing.web.url import InvalidUrl


def written(folder: Path, text: str, name: str = "mcp.toml") -> Path:
    path = folder / name
    path.write_text(text)
    path.chmod(0o600)
    return path


def entry(url: str, name: str = "own", tools: str = "echo = {}", more: str = "") -> str:
    return f'[servers.{name}]\nurl = "{url}"\nprivate = true\n{more}\n[servers.{name}.tools]\n{tools}\n'


async def pin_all(path: Path, env: dict[str, str] | None = None) -> None:
    """Look at the tools of every server in the file, and pin them unchanged."""
    pins = read_pins(pins_path(path))
    async with McpClient(env or {}) as client:
        for name, server in read_servers(path).items():
            tools = await client.list_tools(server)
            assert not isinstance(tools, InvalidUrl), tools
            pins[name] = pin_tools(server.url, tools)
    write_pins(pins_path(path), pins)


def everything_in(redis_url: str) -> str:
    """All keys and values of a Valkey, as they are kept."""
    with redis.Redis.from_url(redis_url) as client:  # pyright: ignore[reportUnknownMemberType]
        return repr([(key, client.dump(key)) for key in client.scan_iter()])  # pyright: ignore
