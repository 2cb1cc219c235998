"""The operator's servers as this process knows them, read anew when a file has changed.

The only home of which servers a run may name. Asks none of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from offing.core.errors import InvalidInput
from offing.core.policy import Rule
from offing.mcp.offered import Offered, offered, rules_of
from offing.mcp.pins import pins_path, read_pins
from offing.mcp.servers import VARIABLE, read_servers

MOST_SERVERS = 20
"""Of one run."""

Stamp = tuple[tuple[int, ...] | None, ...]


@dataclass(slots=True)
class Catalogue:
    """`path` None: there are no servers."""

    path: Path | None = None
    _stamp: Stamp | None = field(default=None, init=False)
    _servers: Mapping[str, Offered] = field(default_factory=dict[str, Offered], init=False)

    def servers(self) -> Mapping[str, Offered]:
        """By name. Raises InvalidInput for files that cannot be used."""
        if self.path is None:
            return {}
        stamp = tuple(_stamp(one) for one in (self.path, pins_path(self.path)))
        if stamp != self._stamp:
            pins = read_pins(pins_path(self.path))
            self._servers = {name: offered(name, one, pins.get(name)) for name, one in read_servers(self.path).items()}
            self._stamp = stamp
        return self._servers

    def named(self, names: Iterable[str]) -> tuple[Offered, ...]:
        """Servers that a run may use. Raises InvalidInput for one that there is not, or that cannot be used."""
        wanted = tuple(dict.fromkeys(names))
        if len(wanted) > MOST_SERVERS:
            raise InvalidInput("scope.mcp", f"it names {len(wanted)} servers", f"Name {MOST_SERVERS} at most.")
        return tuple(_usable(self.servers(), name) for name in wanted)

    def rules(self, names: Iterable[str]) -> tuple[Rule, ...]:
        """What admits the tools of these servers to a run. Empty: there are none. Raises as `named`."""
        return tuple(rule for one in self.named(names) for rule in rules_of(one))


def _usable(known: Mapping[str, Offered], name: str) -> Offered:
    found = known.get(name)
    if found is None:
        remedy = f"Name one of {', '.join(sorted(known))}." if known else f"The operator sets them up with {VARIABLE}."
        raise InvalidInput("scope.mcp", f"there is no MCP server {name!r}", remedy)
    if found.problem:
        raise InvalidInput("scope.mcp", f"the MCP server {name} cannot be used: {found.problem}", "Ask the operator.")
    return found


def _stamp(path: Path) -> tuple[int, ...] | None:
    """What differs once a file was written, given away or opened to others. None: there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino
