"""What a search engine of the web is asked and what it finds. Pure; knows no engine in particular."""

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

LONGEST_SNIPPET = 600
LONGEST_TITLE = 300

_TAG = re.compile(r"<[^<>]{0,200}>")


@dataclass(frozen=True, slots=True)
class Hit:
    """A page that one engine found."""

    url: str
    title: str
    snippet: str = ""
    """Plain text out of the page, as the engine cut it; it may be cut anywhere and is no quotation."""
    published: str = ""
    """As the engine says it. Empty: it does not."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request to an engine."""

    url: str
    params: Mapping[str, str | int] = field(default_factory=dict[str, str | int])
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """With the key, where one is needed; no repr shows it."""
    json: Mapping[str, Any] | None = None
    """Sent by POST. None: the request is a GET."""


class Provider(Protocol):
    """A search engine."""

    @property
    def name(self) -> str: ...

    def ask(self, query: str, limit: int) -> Asked: ...

    def read(self, body: bytes) -> Sequence[Hit]:
        """Best first. Raises ValueError, KeyError or TypeError for what is no answer of this engine."""
        ...


def plain(text: object, longest: int) -> str:
    """One line of text without markup; empty for what is no text."""
    if not isinstance(text, str):
        return ""
    bare = " ".join(html.unescape(_TAG.sub("", text)).split())
    return bare if len(bare) <= longest else bare[: longest - 1].rstrip() + "…"


def hit(url: object, title: object, snippet: object = "", published: object = "") -> Hit:
    """From an engine's own fields. Raises TypeError for an address that is no text."""
    if not isinstance(url, str):
        raise TypeError("url")
    return Hit(url, plain(title, LONGEST_TITLE), plain(snippet, LONGEST_SNIPPET), plain(published, 40))
