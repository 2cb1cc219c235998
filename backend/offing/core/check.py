"""Result of a check of the installation, which `offing doctor` and the web UI show."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum


class CheckCode(StrEnum):
    """What a check found. The web UI has a text in each language for each code, with the parameters that it names."""

    API_VERSION = "api_version"
    """`version`: that of the API."""
    POSTGRES_WORKS = "postgres_works"
    """`version`, and `origin`: `embedded` or `external`."""
    POSTGRES_DOWN = "postgres_down"
    REDIS_WORKS = "redis_works"
    """`origin`: `embedded` or `external`."""
    REDIS_DOWN = "redis_down"
    SCHEMA_WORKS = "schema_works"
    """`count` and `latest`: the number of migrations, and the last."""
    SCHEMA_EMPTY = "schema_empty"
    SCHEMA_UNREADABLE = "schema_unreadable"
    SCHEMA_OUTDATED = "schema_outdated"
    """`count` and `first`: the number of missing migrations, and the first."""
    SCHEMA_NEWER = "schema_newer"
    """`latest`: the last migration of the database."""
    WORKERS_UNREADABLE = "workers_unreadable"
    WORKERS_NONE = "workers_none"
    WORKERS_MIXED = "workers_mixed"
    """`versions` of the others, and `version` of the API."""
    WORKERS_ALIVE = "workers_alive"
    WORKERS_BUSY = "workers_busy"
    """`count` of processes, and `runs` of `slots`."""
    QUEUE_UNREADABLE = "queue_unreadable"
    QUEUE_EMPTY = "queue_empty"
    QUEUE_WAITING = "queue_waiting"
    """`count` of runs, and `seconds` of the oldest, in the next two also."""
    QUEUE_SLOW = "queue_slow"
    QUEUE_WITHOUT_WORKER = "queue_without_worker"
    DISK_FREE = "disk_free"
    """`gb` free for `folder`."""
    DISK_FULL = "disk_full"
    """`gb` free for `folder`, which needs `min_gb`."""
    SEARCH_WORKS = "search_works"
    """`engines`: their names."""
    SEARCH_PROBLEM = "search_problem"
    """The detail says which."""
    MCP_NONE = "mcp_none"
    MCP_WORKS = "mcp_works"
    """`servers`: their names."""
    MCP_INVALID = "mcp_invalid"
    """The detail says which field of the configuration."""
    MCP_UNUSABLE = "mcp_unusable"
    """The detail says which server, and why."""
    SANDBOX_RUNNING = "sandbox_running"
    """The test of the sandbox has not ended."""
    SANDBOX_FAILED = "sandbox_failed"
    """`error`: the kind of error with which the test ended."""
    SANDBOX_WORKS = "sandbox_works"
    """The detail names the driver, and why others were not chosen."""
    SANDBOX_OFF = "sandbox_off"
    SANDBOX_NONE = "sandbox_none"
    """The detail says why each driver was rejected."""


@dataclass(frozen=True, slots=True)
class Check:
    """Result of one check. `remedy` is `None` if there is nothing to do."""

    name: str
    ok: bool
    detail: str
    remedy: str | None = None
    code: CheckCode | None = None
    """`None` means that the web UI shows the English texts."""
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the text of the code names."""


def coded(code: CheckCode, check: Check, **parameters: object) -> Check:
    """Return the check with a code and what its text names."""
    return replace(check, code=code, parameters={name: str(value) for name, value in parameters.items()})
