"""Where something that a run has seen came from, and how far it is trusted: the only home of both labels.

A label belongs to a recorded observation and to each piece of evidence. What carries none, or one that cannot be read,
came from nobody knows where and is untrusted. Knows no tool by name but those whose observations have a
narrower origin than the tool.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from offing.core.tool import ToolSpec

LONGEST = 253
"""Code points of an origin's name."""
PAGES = "fetch_page"
"""The tool whose observation is a page, named by the address that it was read at."""
MCP_PREFIX = "mcp_"
"""How the names of tools begin that a server of somebody else's offers: `mcp_SERVER_TOOL`."""

_NAME = re.compile(r"[^\w.:\[\]-]+")


class Trust(StrEnum):
    """How far text is followed."""

    TRUSTED = "trusted"
    """Ours, the operator's, or computed from arguments alone."""
    USER = "user"
    """The person's who asked. It is the task."""
    UNTRUSTED = "untrusted"
    """Anybody's. It is data: judged, quoted, never obeyed."""


class Kind(StrEnum):
    """Who or what said it."""

    SYSTEM = "system"
    OPERATOR = "operator"
    USER = "user"
    TOOL = "tool"
    """A tool whose result has no narrower origin; the name is the tool's."""
    WEB = "web"
    """A page; the name is its host."""
    FILE = "file"
    """A source of the library; the name is its id."""
    MEMORY = "memory"
    """What an earlier run left."""
    MODEL = "model"
    MCP = "mcp"
    """A server of somebody else's; the name is the operator's name for it."""
    UNKNOWN = "unknown"


OURS = frozenset({Kind.SYSTEM, Kind.OPERATOR})


@dataclass(frozen=True, slots=True)
class Origin:
    kind: Kind
    name: str = ""
    """Empty for the kinds that are one of a kind."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}" if self.name else str(self.kind)

    @property
    def outside(self) -> bool:
        """It lies beyond the people and documents of this installation."""
        return self.kind in (Kind.WEB, Kind.MCP)


UNKNOWN = Origin(Kind.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Label:
    """Origin and trust of one observation."""

    origin: Origin = UNKNOWN
    trust: Trust = Trust.UNTRUSTED

    def as_json(self) -> dict[str, str]:
        return {"origin": str(self.origin), "trust": str(self.trust)}


NOBODY = Label()
"""Of what carries no label: unknown, and therefore untrusted."""
PLATFORM = Label(Origin(Kind.SYSTEM), Trust.TRUSTED)
"""Of what the platform itself said, such as why a call was refused."""


def parsed(text: object) -> Origin:
    """An origin as it was written. What cannot be read is unknown."""
    kind, _, name = text.partition(":") if isinstance(text, str) else ("", "", "")
    return Origin(Kind(kind), _clean(name)) if kind in frozenset(Kind) else UNKNOWN


def label_in(payload: Mapping[str, Any]) -> Label:
    """The label of a recorded observation or passage. Nothing of it is believed that is not said exactly."""
    trust = payload.get("trust")
    origin = parsed(payload.get("origin"))
    if not isinstance(trust, str) or trust not in frozenset(Trust) or origin == UNKNOWN:
        return Label(origin)
    return Label(origin, Trust(trust))


def observation(spec: ToolSpec | None, content: Mapping[str, Any]) -> Label:
    """The label of what a tool gave back. `spec` None: there is no such tool, and the platform said so."""
    if spec is None:
        return PLATFORM
    trust = Trust.UNTRUSTED if spec.untrusted else Trust.TRUSTED
    return Label(_origin(spec.name, content), trust)


def passage(content: Mapping[str, Any], within: Label) -> Label:
    """The label of one passage of an observation: its own source is a narrower origin than the tool that found it."""
    if within.origin.kind in (Kind.WEB, Kind.MCP):
        return within
    host = host_of(content.get("name"))
    if host:
        return Label(Origin(Kind.WEB, host), Trust.UNTRUSTED)
    source = _clean(str(content.get("source", "")))
    return Label(Origin(Kind.FILE, source) if source else within.origin, Trust.UNTRUSTED)


def host_of(address: object) -> str:
    """The host of a web address, in lower case. Empty: it is none."""
    if not isinstance(address, str) or not address.lower().startswith(("http://", "https://")):
        return ""
    try:
        return _clean((urlsplit(address).hostname or "").rstrip("."))
    except ValueError:
        return ""


def _origin(tool: str, content: Mapping[str, Any]) -> Origin:
    if tool.startswith(MCP_PREFIX):
        return Origin(Kind.MCP, _clean(tool.removeprefix(MCP_PREFIX).partition("_")[0]))
    if tool == PAGES and (host := host_of(content.get("name"))):
        return Origin(Kind.WEB, host)
    if source := _clean(str(content.get("source", ""))):
        return Origin(Kind.FILE, source)
    return Origin(Kind.TOOL, _clean(tool))


def _clean(name: str) -> str:
    """A name of one word and of bounded length, whoever chose it."""
    return _NAME.sub("-", name)[:LONGEST]
