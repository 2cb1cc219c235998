"""Load the secrets of a server from the environment and keep them out of everything else.

They go into requests to that server, and into nothing that is stored or shown.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import quote

from offing.mcp.servers import McpServerConfig, list_secret_names
from offing.telemetry.redaction import find_secrets, redact_with
from offing.web.url import InvalidUrl


@dataclass(frozen=True, slots=True)
class ServerSecrets:
    """The secrets that are sent to one server."""

    headers: tuple[tuple[bytes, bytes], ...] = field(default=(), repr=False)
    query: str = field(default="", repr=False)
    values: frozenset[str] = field(default=frozenset(), repr=False)

    def render_query(self, has_query: bool) -> str:
        """Return the query to append to an address. `has_query` means that the address already has one."""
        return f"{'&' if has_query else '?'}{self.query}" if self.query else ""

    def redact(self, value: Any) -> Any:
        """Return a server's JSON value without its secrets, which the server may repeat."""
        match value:
            case str():
                return redact_with(value, self.values)
            case dict():
                mapping = cast(dict[str, Any], value)
                return {redact_with(key, self.values): self.redact(inner) for key, inner in mapping.items()}
            case list():
                return [self.redact(inner) for inner in cast(list[Any], value)]
            case _:
                return value


def load_secrets(server: McpServerConfig, env: Mapping[str, str]) -> ServerSecrets | InvalidUrl:
    """Return the secrets, or why a variable is missing or cannot be used as a secret."""
    names = list_secret_names(server)
    for name, owner in names.items():
        value = env.get(name, "")
        if not value:
            return InvalidUrl(f"{name} is not set, but the {owner} needs it.")
        if not value.isascii() or not value.isprintable() or value not in find_secrets({name: value}):
            return InvalidUrl(f"{name} cannot be used: a secret must have at least 8 printable ASCII characters.")
    headers = [(header.encode(), env[name].encode()) for header, name in server.headers.items()]
    if server.bearer:
        headers.append((b"Authorization", b"Bearer " + env[server.bearer].encode()))
    query = "&".join(f"{part}={quote(env[name], safe='')}" for part, name in server.query.items())
    return ServerSecrets(tuple(headers), query, frozenset(env[name] for name in names))
