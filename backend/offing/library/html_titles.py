"""Find the title of a web page: the document's own, without the name of its site.

A page states its title for link previews (`og:title`), as headings and as the name of its window, each possibly
with the name of the site, a section or a kicker before or after the title. A heading that is a part of a stated
title is the title. Where no heading agrees, the name of the site is removed from the stated title.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from offing.library.html_markdown import NOISE_CHARS

MAX_HEADINGS = 8
"""Maximum number of first-level headings that are considered as the title."""
MAX_STATED_CHARS = 1_000
"""Maximum code points of a stated title that are considered."""
MIN_TITLE_WORDS = 2
"""Minimum number of words of a title from which an unknown last part is removed as the site's name."""
MAX_SITE_WORDS = 3
"""Maximum number of words of a last part of a title that is the site's name even if a heading repeats it."""

_TITLE_PROPERTIES = ("og:title", "twitter:title", "dc.title", "dcterms.title", "citation_title")
_SITE_PROPERTIES = ("og:site_name", "application-name")
_CJK = "\u3040-\u30ff\u3400-\u9fff"
_SEPARATOR = re.compile(
    r"\s+(?:[-\u2013\u2014:\u00b7\u2022/<~|\u00bb\u00ab\u2039\u203a\uff5c@_]|::)\s+"  # between spaces
    r"|\s?[|\u00bb\uff5c]\s?|\s_(?=\S)"
    rf"|[-_](?=[{_CJK}]{{2,12}}$)"  # before the name of a site in a script without spaces
)
_IGNORED = re.compile(r"[\W_]+")
_NOISE_CHARS = re.compile(NOISE_CHARS + r"|(?<=\S)\s[-|\u2013\u2014]$")
_HOST = re.compile(r"https?://(?:www\.)?([^/:?#]{1,255})", re.IGNORECASE)
_HOME = re.compile(r"(?:https?://[^/]+)?/?(?:index\.\w+)?", re.IGNORECASE)
_LONG_WORD = re.compile(r"[^\W\d_]{5,}")
_ARCHIVE = re.compile(r"(?:^|\W)blog\W?archive?s?$", re.IGNORECASE)
_SKIPPED = frozenset(("style", "script", "svg", "noscript", "template"))


@dataclass(frozen=True, slots=True)
class _Statements:
    """What a page says about its title and its site."""

    preview: str
    """Title for link previews. Empty if there is none."""
    window: str
    """Text of the `title` element. Empty if there is none."""
    headings: Sequence[str]
    """Texts of the first-level headings that are not links to the start page."""
    sites: frozenset[str]
    """Folded names of the site."""

    def is_site(self, part: str) -> bool:
        return not (key := _fold(part)) or key in self.sites


def find_title(tree: Any) -> str:
    """Return the title of a page. Empty if it has none."""
    page = _read_statements(tree)
    stated = [title for title in (page.preview, page.window) if title]
    for title in stated:
        for heading in page.headings:
            if shared := _find_shared(title, heading, page):
                return shared
    names = [name for title in stated if not page.is_site(name := _remove_site(title, page))]
    headings = [heading for heading in page.headings if not page.is_site(heading)]
    if len(headings) == 1 and any(_are_related(heading, name) for heading in headings for name in names):
        return headings[0]
    return next(iter((*names, *headings, *stated, *page.headings)), "")


def _read_statements(tree: Any) -> _Statements:
    tops: list[Any] = list(islice(tree.iter("h1"), MAX_HEADINGS))
    homes = [top for top in tops if _is_home_link(top)]
    properties = _read_properties(tree)
    names = [properties.get(name, "") for name in _SITE_PROPERTIES] + [_read_line(top) for top in homes]
    for address in (_find_canonical_address(tree), properties.get("og:url", "")):
        if host := _HOST.match(address):
            names += [host.group(1), host.group(1).rpartition(".")[0]]
    preview = next((properties[name] for name in _TITLE_PROPERTIES if name in properties), "")
    homes = [top for top in homes if not preview or _fold(_read_line(top)) != _fold(preview)]
    return _Statements(
        preview=preview,
        window=_read_line(next(tree.iter("title"), None)),
        headings=[text for top in tops if top not in homes and (text := _read_line(top))],
        sites=frozenset(key for name in names if (key := _fold(name))) - {_fold(preview)},
    )


def _read_properties(tree: Any) -> dict[str, str]:
    """Return the first value of each property of the page that is not empty."""
    values = dict[str, str]()
    for meta in tree.iter("meta"):
        if value := _join_line(meta.get("content") or ""):
            for name in f"{meta.get('property') or ''} {meta.get('name') or ''}"[:200].lower().split():
                values.setdefault(name, value)
    return values


def _find_canonical_address(tree: Any) -> str:
    return next((link.get("href") or "" for link in tree.iter("link") if link.get("rel") == "canonical"), "")


def _is_home_link(heading: Any) -> bool:
    above = heading.getparent()
    link = above if above is not None and above.tag == "a" else heading.find(".//a")
    target = "" if link is None else (link.get("href") or "").strip()
    return bool(target) and _HOME.fullmatch(target) is not None


def _read_line(element: Any) -> str:
    """Return the text of an element as one line. Empty for `None`."""
    return "" if element is None else _join_line(_gather_text(element))


def _gather_text(element: Any) -> str:
    parts = [element.text or ""]
    for child in element.iterdescendants():
        parts += [] if child.tag in _SKIPPED else [" " if child.tag == "br" else "", child.text or ""]
        parts.append(child.tail or "")
    return "".join(parts)


def _join_line(text: str) -> str:
    return _NOISE_CHARS.sub("", " ".join(text[:MAX_STATED_CHARS].split())).strip()


def _find_shared(title: str, heading: str, page: _Statements) -> str:
    """Return the title if a stated title and a heading agree. Empty if they differ or share the site's name only."""
    if page.is_site(heading):
        return ""
    key, name = _fold(title), _fold(heading)
    if key == name:
        return heading
    for before, after in _split_title(title):
        if _fold(before) == name or (_fold(after) == name and not _is_name_of_site(after, before)):
            return heading
    own = _remove_site(title, page)
    if len(own.split()) >= MIN_TITLE_WORDS and name.endswith(_fold(own)) and 2 * len(_fold(own)) > len(name):
        return own  # the heading begins with a kicker
    return ""


def _are_related(heading: str, name: str) -> bool:
    """Return whether a heading and a stated title have a long word in common."""
    return bool(set(_LONG_WORD.findall(heading.casefold())) & set(_LONG_WORD.findall(name.casefold())))


def _split_title(title: str) -> list[tuple[str, str]]:
    """Return what is before and what is after each separator of a title."""
    return [(title[: border.start()], title[border.end() :]) for border in _SEPARATOR.finditer(title)]


def _is_name_of_site(last: str, before: str) -> bool:
    """Return whether the last part of a title is probably the site's name: short, after a much longer part."""
    return len(last.split()) <= MAX_SITE_WORDS and 2 * len(_fold(last)) <= len(_fold(before))


def _remove_site(title: str, page: _Statements) -> str:
    """Return a stated title without the name of the site at its start or end."""
    parts = _split_title(title)
    for before, after in parts:
        if page.is_site(after):
            return before
    for before, after in reversed(parts):
        if page.is_site(before) or _ARCHIVE.search(before):
            return after
    key, window = _fold(title), _fold(page.window)
    if not parts or (title == page.preview and key != window and key in window):
        return title  # the window's title has the site's name in addition
    before, after = parts[-1]
    is_name = len(before.split()) >= MIN_TITLE_WORDS or re.search(f"[{_CJK}]", before)
    return before if is_name and len(_fold(after)) <= len(_fold(before)) else title


def _fold(text: str) -> str:
    """Return the letters and digits of a text without case, to compare titles by."""
    return _IGNORED.sub("", text).casefold()
