"""Provenance of text that a run has read: its origin and how far it is trusted.

Every recorded tool result and every passage of evidence has a provenance label. Text without a
valid label has an unknown origin and is untrusted. The only tools known by name are those whose
results have a more specific origin than the tool.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from offing.core.tool import ToolSpec

MAX_NAME_CHARS = 253
"""Maximum number of code points of an origin's name."""
FETCH_PAGE_TOOL = "fetch_page"
"""Tool whose result is a web page. Its origin is the host of the page."""
MCP_PREFIX = "mcp_"
"""Prefix of the names of tools from third-party MCP servers: `mcp_SERVER_TOOL`."""

_NAME = re.compile(r"[^\w.:\[\]-]+")


class TrustLevel(StrEnum):
    """How far text is trusted."""

    TRUSTED = "trusted"
    """Written by the platform or the operator, or computed from arguments alone."""
    USER = "user"
    """Written by the user of the run. It is the task."""
    UNTRUSTED = "untrusted"
    """Written by anyone else. It is data to assess and quote, never an instruction to follow."""


class OriginKind(StrEnum):
    """Kind of an origin."""

    SYSTEM = "system"
    OPERATOR = "operator"
    USER = "user"
    TOOL = "tool"
    """A tool whose result has no more specific origin. The name is that of the tool."""
    WEB = "web"
    """A web page. The name is its host."""
    FILE = "file"
    """A source of the document library. The name is its id."""
    MEMORY = "memory"
    """Text that an earlier run saved."""
    MODEL = "model"
    MCP = "mcp"
    """A third-party MCP server. The name is the one that the operator gave it."""
    UNKNOWN = "unknown"


TRUSTED_KINDS = frozenset({OriginKind.SYSTEM, OriginKind.OPERATOR})


@dataclass(frozen=True, slots=True)
class Origin:
    kind: OriginKind
    name: str = ""
    """Empty for kinds with only one member."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}" if self.name else str(self.kind)

    @property
    def is_external(self) -> bool:
        """Whether the origin lies outside the people and documents of this installation."""
        return self.kind in (OriginKind.WEB, OriginKind.MCP)


UNKNOWN_ORIGIN = Origin(OriginKind.UNKNOWN)


@dataclass(frozen=True, slots=True)
class ProvenanceLabel:
    """Origin and trust level of one text."""

    origin: Origin = UNKNOWN_ORIGIN
    trust: TrustLevel = TrustLevel.UNTRUSTED

    def to_json(self) -> dict[str, str]:
        return {"origin": str(self.origin), "trust": str(self.trust)}


NO_PROVENANCE = ProvenanceLabel()
"""Label of text without a label: unknown origin, and therefore untrusted."""
PLATFORM_LABEL = ProvenanceLabel(Origin(OriginKind.SYSTEM), TrustLevel.TRUSTED)
"""Label of text that the platform wrote, such as the reason why a call was denied."""


def parse_origin(text: object) -> Origin:
    """Parse an origin from its text form. Invalid text gives the unknown origin."""
    kind, _, name = text.partition(":") if isinstance(text, str) else ("", "", "")
    return Origin(OriginKind(kind), _clean_name(name)) if kind in frozenset(OriginKind) else UNKNOWN_ORIGIN


def parse_label(payload: Mapping[str, Any]) -> ProvenanceLabel:
    """Return the label of a recorded tool result or passage. Only exact, valid values are accepted."""
    trust = payload.get("trust")
    origin = parse_origin(payload.get("origin"))
    if not isinstance(trust, str) or trust not in frozenset(TrustLevel) or origin == UNKNOWN_ORIGIN:
        return ProvenanceLabel(origin)
    return ProvenanceLabel(origin, TrustLevel(trust))


def label_tool_result(spec: ToolSpec | None, content: Mapping[str, Any]) -> ProvenanceLabel:
    """Return the provenance label of a tool result.

    If `spec` is `None`, the tool does not exist and the platform wrote the result.
    """
    if spec is None:
        return PLATFORM_LABEL
    trust = TrustLevel.UNTRUSTED if spec.untrusted else TrustLevel.TRUSTED
    return ProvenanceLabel(_origin_of_result(spec.name, content), trust)


def label_passage(content: Mapping[str, Any], result_label: ProvenanceLabel) -> ProvenanceLabel:
    """Return the label of one passage of a tool result.

    Its source is a more specific origin than the tool.
    """
    if result_label.origin.kind in (OriginKind.WEB, OriginKind.MCP):
        return result_label
    host = extract_host(content.get("name"))
    if host:
        return ProvenanceLabel(Origin(OriginKind.WEB, host), TrustLevel.UNTRUSTED)
    source = _clean_name(str(content.get("source", "")))
    return ProvenanceLabel(Origin(OriginKind.FILE, source) if source else result_label.origin, TrustLevel.UNTRUSTED)


def extract_host(url: object) -> str:
    """Return the host of a URL in lower case. An empty string means that it is not a URL."""
    if not isinstance(url, str) or not url.lower().startswith(("http://", "https://")):
        return ""
    try:
        return _clean_name((urlsplit(url).hostname or "").rstrip("."))
    except ValueError:
        return ""


def _origin_of_result(tool: str, content: Mapping[str, Any]) -> Origin:
    if tool.startswith(MCP_PREFIX):
        return Origin(OriginKind.MCP, _clean_name(tool.removeprefix(MCP_PREFIX).partition("_")[0]))
    if tool == FETCH_PAGE_TOOL and (host := extract_host(content.get("name"))):
        return Origin(OriginKind.WEB, host)
    if source := _clean_name(str(content.get("source", ""))):
        return Origin(OriginKind.FILE, source)
    return Origin(OriginKind.TOOL, _clean_name(tool))


def _clean_name(name: str) -> str:
    """Return a name as one word of bounded length."""
    return _NAME.sub("-", name)[:MAX_NAME_CHARS]
