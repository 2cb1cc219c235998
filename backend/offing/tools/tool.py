"""The interface of tools: what a tool receives, what it returns, and how it reports a failure."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from offing.core.report import Evidence
from offing.core.tool import ToolOutput, ToolSpec
from offing.mcp.allowed_tools import AllowedMcpTool
from offing.sdk.tool import ToolArgs, ToolFailedError

if TYPE_CHECKING:
    from offing.web.search import SearchResults

__all__ = [
    "FoundPassage",
    "FoundPassages",
    "LibraryAccess",
    "McpAccess",
    "McpToolOutput",
    "TextWindow",
    "Tool",
    "ToolArgs",
    "ToolFailedError",
    "ToolScope",
    "WebAccess",
]


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """A passage of the library that matches a query."""

    text_id: UUID
    source: UUID
    title: str
    name: str
    heading: str
    """Path of the headings above it, and the header row of a table that it continues. Empty if there are none."""
    start: int
    end: int
    text: str
    score: float
    """Score, comparable only within one search."""
    published: str = ""
    """Date of the document as YYYY, YYYY-MM or YYYY-MM-DD. Empty means unknown."""


@dataclass(frozen=True, slots=True)
class FoundPassages:
    """The result of a search of the library."""

    passages: tuple[FoundPassage, ...]
    """The passages, best first. Empty if nothing matches."""
    notices: tuple[str, ...] = ()
    """What the search could not do, as sentences, such as that the embedding model did not answer."""


@dataclass(frozen=True, slots=True)
class TextWindow:
    """A range of a source's text."""

    source_id: UUID
    text_id: UUID
    title: str
    name: str
    start: int
    text: str
    total_chars: int
    """Code points of the complete text."""
    published: str = ""
    """Date of the document as YYYY, YYYY-MM or YYYY-MM-DD. Empty means unknown."""


class LibraryAccess(Protocol):
    """The library as one run may see it: the run's collections and sources of its tenant."""

    async def search(self, query: str, limit: int) -> FoundPassages:
        """Return the best passages."""
        ...

    async def read(self, reference: str, start: int, length: int) -> TextWindow | None:
        """Return the text from code point `start` of the source with this id, name or title, or `None`."""
        ...

    async def suggest(self, reference: str, limit: int) -> tuple[str, ...]:
        """Return names of sources that resemble `reference`, or the latest sources if none does."""
        ...


class WebAccess(Protocol):
    """The web as one run may see it."""

    async def read(self, url: str, start: int, length: int) -> TextWindow | str:
        """Return the text of a page from code point `start`, or a sentence that says why it cannot be read."""
        ...

    async def search(self, query: str, limit: int) -> "SearchResults":
        """Return pages that match a query, best first."""
        ...


@dataclass(frozen=True, slots=True)
class McpToolOutput:
    """The output of an MCP tool."""

    window: TextWindow | None
    """The beginning of its text as stored. `None` if it has no text."""
    skipped: tuple[str, ...] = ()
    """Kinds of content that were skipped, such as `image`."""


class McpAccess(Protocol):
    """The MCP servers in the scope of one run."""

    async def call(self, tool: AllowedMcpTool, arguments: dict[str, Any], key: str) -> McpToolOutput | str:
        """Call a tool. Returns its output, or a sentence that says why there is none.

        `key` identifies this call and is the same when it is repeated.
        """
        ...

    async def read(self, server: str, name: str, start: int, length: int) -> TextWindow | str:
        """Return an earlier output of this run from code point `start`, or a sentence that says why it cannot
        be read.
        """
        ...


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A stored file that code has written."""

    name: str
    sha256: str
    """Hash in hex."""
    size_bytes: int
    """Size in bytes."""
    media_type: str


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that code found in its workspace."""

    name: str
    text_id: UUID | None
    """The extracted text that the file was made from. `None` if earlier code of the run wrote it."""


@dataclass(frozen=True, slots=True)
class CodeOutput:
    """The result of running code."""

    exit_status: int | None
    """The exit status. `None` if the code was stopped."""
    stdout: str
    stderr: str
    stop_message: str
    """Why the code was stopped, in a sentence. Empty if it ended normally."""
    files: tuple[OutputFile, ...]
    skipped: tuple[str, ...]
    """Names of files that were not stored, each with the reason."""
    inputs: tuple[InputFile, ...]
    truncated: bool
    """Whether it printed more than is kept."""


class CodeAccess(Protocol):
    """A sandbox as one run may use it."""

    async def run(self, source: str, input_names: Sequence[str]) -> CodeOutput | str:
        """Run Python with these sources and files in its workspace. Returns a sentence if it was not run."""
        ...


EvidenceLookup = Callable[[str], Awaitable[Evidence | None]]
"""Returns the passage with an id such as E3, or `None`."""


SourceLookup = Callable[[str], Awaitable[UUID | None]]
"""Returns the id of a source that the run has retrieved, by its short id such as S2, or `None`."""

_SOURCE_LABEL = re.compile(r"\W*[Ss]([1-9]\d{0,5})\W*")


@dataclass(frozen=True, slots=True)
class ToolScope:
    """What a tool call works for and may access."""

    tenant_id: UUID
    run_id: UUID
    idempotency_key: str
    """The same for every repetition of the same call."""
    library: LibraryAccess
    collections: tuple[str, ...] = ()
    """Collections that the run may see. Empty means all. `library` enforces it; tools use it in messages."""
    source_ids: tuple[UUID, ...] = ()
    environment: str = ""
    """The spec of the run's environment. Empty means that the run uses the library."""
    web: WebAccess | None = None
    """Web access. `None` means that the run may not use the web."""
    mcp: McpAccess | None = None
    """MCP servers. `None` means that the run uses none."""
    code: CodeAccess | None = None
    """Code execution. `None` means that the run may not run code."""
    find_evidence: EvidenceLookup | None = None
    """Finds a passage that the run has retrieved. `None` means that a tool accepts no id of a passage in place
    of a source.
    """
    find_source: SourceLookup | None = None
    """Finds a source by its short id. `None` means that the run numbers no sources."""

    async def resolve_source(self, reference: str) -> str:
        """Return the id of the source with a short id such as S2. Any other reference is returned unchanged."""
        if self.find_source is None or (match := _SOURCE_LABEL.fullmatch(reference)) is None:
            return reference
        source_id = await self.find_source(f"S{match.group(1)}")
        return reference if source_id is None else str(source_id)


class Tool(Protocol):
    """A tool. Raises `ToolFailedError` for problems that the caller can fix; any other exception is a bug."""

    @property
    def spec(self) -> ToolSpec: ...

    async def __call__(self, args: Any, scope: ToolScope) -> ToolOutput:
        """Work on arguments, which are already an instance of `spec.args`."""
        ...
