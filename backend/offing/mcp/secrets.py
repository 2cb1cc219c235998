"""A server's secrets, from the environment: where they are sent, and how they are kept out of everything else.

The only home of how they are read. They go into requests to that server, and into nothing that is stored or shown.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import quote

from offing.mcp.servers import Server, secret_names
from offing.telemetry.redaction import redact_with, secret_values
from offing.web.url import Refused


@dataclass(frozen=True, slots=True)
class Secrets:
    """What one server is sent."""

    headers: tuple[tuple[bytes, bytes], ...] = field(default=(), repr=False)
    query: str = field(default="", repr=False)
    values: frozenset[str] = field(default=frozenset(), repr=False)

    def query_after(self, begun: bool) -> str:
        """To be put behind an address. `begun`: it has a query already."""
        return f"{'&' if begun else '?'}{self.query}" if self.query else ""

    def without(self, value: Any) -> Any:
        """What a server said, with no secret of its own left in it, whatever it echoes. Of JSON."""
        match value:
            case str():
                return redact_with(value, self.values)
            case dict():
                found = cast(dict[str, Any], value)
                return {redact_with(key, self.values): self.without(inner) for key, inner in found.items()}
            case list():
                return [self.without(inner) for inner in cast(list[Any], value)]
            case _:
                return value


def secrets_of(server: Server, env: Mapping[str, str]) -> Secrets | Refused:
    """Refused: a variable is not set, or holds what cannot be sent or could not be kept out of logs."""
    names = secret_names(server)
    for name, place in names.items():
        value = env.get(name, "")
        if not value:
            return Refused(f"{name} is not set, and its {place} needs it.")
        if not value.isascii() or not value.isprintable() or value not in secret_values({name: value}):
            return Refused(f"{name} cannot be used: a secret has 8 or more printable ASCII characters.")
    headers = [(header.encode(), env[name].encode()) for header, name in server.headers.items()]
    if server.bearer:
        headers.append((b"Authorization", b"Bearer " + env[server.bearer].encode()))
    query = "&".join(f"{part}={quote(env[name], safe='')}" for part, name in server.query.items())
    return Secrets(tuple(headers), query, frozenset(env[name] for name in names))
