"""What a tool is, what it is given, and how it says that it could not. Knows no particular tool."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from offing.core.tool import ToolOutput, ToolSpec
from offing.mcp.offered import OfferedTool
from offing.sdk.tool import ToolArgs, ToolFailed
from offing.web.search import Searched

__all__ = [
    "FoundPassage",
    "LibraryPort",
    "McpAnswer",
    "McpPort",
    "Tool",
    "ToolArgs",
    "ToolFailed",
    "ToolScope",
    "WebPort",
    "Window",
]


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """A passage of the library that answers a query."""

    artefact: UUID
    source: UUID
    title: str
    name: str
    heading: str
    """Path of headings that it stands under. Empty: none."""
    start: int
    end: int
    text: str
    score: float
    """Compares within one search only."""


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of a source's text."""

    source: UUID
    artefact: UUID
    title: str
    name: str
    start: int
    text: str
    total: int
    """Code points of the whole text."""


class LibraryPort(Protocol):
    """The library as one run may see it: its tenant's, and of that the run's collections and sources."""

    async def search(self, query: str, limit: int) -> tuple[FoundPassage, ...]:
        """The best passages, best first. Empty: nothing matches."""
        ...

    async def read(self, wanted: str, start: int, length: int) -> Window | None:
        """From code point `start` on, of the source with this id, name or title. None: there is none."""
        ...

    async def suggest(self, wanted: str, limit: int) -> tuple[str, ...]:
        """Names of sources that resemble `wanted`, or the latest where none does."""
        ...


class WebPort(Protocol):
    """The web as one run may see it."""

    async def read(self, url: str, start: int, length: int) -> Window | str:
        """From code point `start` on, of the page's text; or in a sentence why it cannot be read."""
        ...

    async def search(self, query: str, limit: int) -> Searched:
        """Pages that answer a query, best first."""
        ...


@dataclass(frozen=True, slots=True)
class McpAnswer:
    """What a server's tool answered."""

    window: Window | None
    """The beginning of its text, as it is kept. None: it has none."""
    left_out: tuple[str, ...] = ()
    """Kinds of content that were not taken, such as `image`."""


class McpPort(Protocol):
    """The MCP servers that one run was asked with."""

    async def ask(self, tool: OfferedTool, arguments: dict[str, Any], key: str) -> McpAnswer | str:
        """A call's answer; or in a sentence why there is none. `key`: of this call alone, the same on a repeat."""
        ...

    async def read(self, server: str, name: str, start: int, length: int) -> Window | str:
        """From code point `start` on, of an answer to this run; or in a sentence why it cannot be read."""
        ...


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file that code wrote, as it is kept."""

    name: str
    sha256: str
    """In hex."""
    size: int
    """Bytes."""
    media_type: str


@dataclass(frozen=True, slots=True)
class PutIn:
    """A file that code found in its folder."""

    name: str
    artefact: UUID | None
    """The text that it was made of. None: earlier code of the run wrote it."""


@dataclass(frozen=True, slots=True)
class CodeRan:
    """What came of a piece of code."""

    exit: int | None
    """None: it was stopped."""
    stdout: str
    stderr: str
    stopped: str
    """Why it was stopped, in a sentence. Empty: it ended by itself."""
    files: tuple[KeptFile, ...]
    left_out: tuple[str, ...]
    """Names of files that were not kept, each with why."""
    put_in: tuple[PutIn, ...]
    cut: bool
    """It printed more than is kept."""


class CodePort(Protocol):
    """A sandbox as one run may use it."""

    async def run(self, source: str, names: Sequence[str]) -> CodeRan | str:
        """Python with these sources and files in its folder; or in a sentence why it was not run."""
        ...


@dataclass(frozen=True, slots=True)
class ToolScope:
    """For whom a tool works, and what it may reach."""

    tenant: UUID
    run: UUID
    idempotency_key: str
    """The same on every repeat of the same call."""
    library: LibraryPort
    collections: tuple[str, ...] = ()
    """Empty: all. The port enforces it; here it is for a tool's own words."""
    sources: tuple[UUID, ...] = ()
    world: str = ""
    """The world that the run's task is set in, as `offing.world` names it. Empty: none."""
    web: WebPort | None = None
    """None: the run stays off the web."""
    mcp: McpPort | None = None
    """None: the run uses no MCP servers."""
    code: CodePort | None = None
    """None: the run may run no code."""


class Tool(Protocol):
    """A declared capability. Raises `ToolFailed` for what a caller can put right; anything else is a fault."""

    @property
    def spec(self) -> ToolSpec: ...

    async def __call__(self, args: Any, scope: ToolScope) -> ToolOutput:
        """Work on arguments that are an instance of `spec.args` already."""
        ...
