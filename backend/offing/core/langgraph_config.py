"""The configuration file `langgraph.json` of a LangGraph project, as values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from offing.core.header_patterns import HeaderPatterns
from offing.core.webhook_rules import WebhookRules

CONFIG_FILE = "langgraph.json"
"""Usual name of the file."""


class ThreadTtlStrategy(StrEnum):
    """What happens to a thread after its time."""

    DELETE = "delete"
    """The thread is deleted."""
    KEEP_LATEST = "keep_latest"
    """Its latest checkpoint is kept."""


class MiddlewareOrder(StrEnum):
    """Whether a request is authenticated before or after the middleware of the project's application."""

    MIDDLEWARE_FIRST = "middleware_first"
    AUTH_FIRST = "auth_first"


@dataclass(frozen=True, slots=True)
class ConfigNotice:
    """A key of the file that has another effect than in LangGraph's server, or none."""

    key: str
    """Key with its parents, such as `checkpointer.path`."""
    effect: str
    """What happens instead, as a sentence."""

    def __str__(self) -> str:
        return f"{self.key}: {self.effect}"


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """Where an object is defined: `location:variable`."""

    location: str
    """A path to a Python file, relative to the folder of the configuration, or the name of a module."""
    variable: str

    @property
    def is_file(self) -> bool:
        return self.location.endswith(".py") or "/" in self.location

    def __str__(self) -> str:
        return f"{self.location}:{self.variable}"


@dataclass(frozen=True, slots=True)
class GraphDefinition:
    """A graph of the project."""

    name: str
    """Name by which clients know the graph."""
    reference: ObjectReference
    description: str = ""
    """Empty means that the project gives none."""


@dataclass(frozen=True, slots=True)
class StoreIndex:
    """Semantic index of the store."""

    dims: int
    embed: str
    """`provider:model`, or the reference of a function."""
    fields: tuple[str, ...] = ()
    """Fields of an item that are embedded. Empty means the whole item."""


@dataclass(frozen=True, slots=True)
class StoreTtl:
    """Expiry of items in the store. Times are minutes; `None` means never, or no sweep."""

    default_ttl: float | None = None
    refresh_on_read: bool = True
    sweep_interval_minutes: int | None = None


@dataclass(frozen=True, slots=True)
class ThreadTtl:
    """Expiry of threads and of their checkpoints."""

    default_ttl: float | None = None
    """Time in minutes. `None` means never."""
    strategy: ThreadTtlStrategy = ThreadTtlStrategy.DELETE


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Settings of the HTTP server."""

    app: ObjectReference | None = None
    """The project's own ASGI application. `None` means that it has none."""
    cors: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Cross-origin rules as in the file. Empty means the server's own."""
    disabled_routes: frozenset[str] = frozenset()
    """Groups of routes that the project turns off, such as `store`."""
    mount_prefix: str = ""
    """Prefix of all routes. Empty means none."""
    authenticates_app: bool = False
    """Whether the project's own routes need authentication, too."""
    middleware_order: MiddlewareOrder = MiddlewareOrder.MIDDLEWARE_FIRST
    configurable_headers: HeaderPatterns | None = None
    """Headers of requests that are passed to runs under `configurable`. `None` means that the file names none."""
    logging_headers: HeaderPatterns | None = None
    """Headers that the log of requests contains. `None` means that requests are not logged."""


@dataclass(frozen=True, slots=True)
class LangGraphConfig:
    """A parsed configuration file. Paths are relative to its folder."""

    graphs: tuple[GraphDefinition, ...]
    local_dependencies: tuple[str, ...] = ()
    """Folders whose packages the graphs may import."""
    package_dependencies: tuple[str, ...] = ()
    """Requirements that must be installed. Offing installs nothing."""
    env_file: str = ""
    """File with environment variables. Empty means none."""
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Environment variables in the file itself. They may be secrets and are never shown or stored."""
    auth: ObjectReference | None = None
    """The project's `Auth` object. `None` means that Offing's API keys are used."""
    store_index: StoreIndex | None = None
    store_ttl: StoreTtl | None = None
    thread_ttl: ThreadTtl | None = None
    http: HttpSettings = HttpSettings()
    webhooks: WebhookRules = field(default_factory=WebhookRules)
    python_version: str = ""
    """`major.minor` that the project asks for. Empty means any."""
    notices: tuple[ConfigNotice, ...] = ()


def compare_python(config: LangGraphConfig, running: Sequence[int]) -> ConfigNotice | None:
    """Return a notice if the project asks for another Python than the running one."""
    actual = ".".join(map(str, running[:2]))
    if not config.python_version or config.python_version == actual:
        return None
    return ConfigNotice("python_version", f"The project asks for {config.python_version}; Offing runs {actual}.")
