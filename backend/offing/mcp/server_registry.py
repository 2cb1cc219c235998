"""The registry of the operator's MCP servers.

Files are read again when they have changed. No server is called.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from offing.core.errors import InvalidInput
from offing.core.tool_policy import ToolRule
from offing.mcp.allowed_tools import McpServerTools, build_rules, match_tools
from offing.mcp.pins import pins_path, read_pins
from offing.mcp.servers import CONFIG_VARIABLE, read_servers

MAX_SERVERS_PER_RUN = 20
"""Maximum number of MCP servers of one run."""

FilesVersion = tuple[tuple[int, ...] | None, ...]


@dataclass(slots=True)
class McpServerRegistry:
    """MCP servers by name. If `path` is `None`, there are none."""

    path: Path | None = None
    _files_version: FilesVersion | None = field(default=None, init=False)
    _servers: Mapping[str, McpServerTools] = field(default_factory=dict[str, McpServerTools], init=False)

    def list_servers(self) -> Mapping[str, McpServerTools]:
        """Return the servers by name. Raises InvalidInput for files that cannot be used."""
        if self.path is None:
            return {}
        stamp = tuple(_file_version(one) for one in (self.path, pins_path(self.path)))
        if stamp != self._files_version:
            pins = read_pins(pins_path(self.path))
            self._servers = {
                name: match_tools(name, one, pins.get(name)) for name, one in read_servers(self.path).items()
            }
            self._files_version = stamp
        return self._servers

    def require_servers(self, names: Iterable[str]) -> tuple[McpServerTools, ...]:
        """Return servers that a run may use. Raises InvalidInput for one that is unknown or cannot be used."""
        unique_names = tuple(dict.fromkeys(names))
        if len(unique_names) > MAX_SERVERS_PER_RUN:
            raise InvalidInput(
                "scope.mcp", f"it has {len(unique_names)} servers", f"Use at most {MAX_SERVERS_PER_RUN}."
            )
        return tuple(_require_usable(self.list_servers(), name) for name in unique_names)

    def build_rules(self, names: Iterable[str]) -> tuple[ToolRule, ...]:
        """Return the rules that admit the tools of these servers to a run. Raises the errors of `require_servers`."""
        return tuple(rule for one in self.require_servers(names) for rule in build_rules(one))


def _require_usable(servers: Mapping[str, McpServerTools], name: str) -> McpServerTools:
    server = servers.get(name)
    if server is None:
        remedy = (
            f"Use one of {', '.join(sorted(servers))}."
            if servers
            else f"The operator configures servers with {CONFIG_VARIABLE}."
        )
        raise InvalidInput("scope.mcp", f"there is no MCP server {name!r}", remedy)
    if server.problem:
        raise InvalidInput("scope.mcp", f"the MCP server {name} cannot be used: {server.problem}", "Ask the operator.")
    return server


def _file_version(path: Path) -> tuple[int, ...] | None:
    """Return values that change when a file is written or its owner or permissions change.

    `None` if there is no file.
    """
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
