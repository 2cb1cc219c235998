"""Read who wrote a text file and when: from the front matter of Markdown, or the fields that begin reStructuredText."""

import re
from collections.abc import Iterator

from offing.library.passages import FRONT_MATTER
from offing.library.publication import UNKNOWN_PUBLICATION, Publication, build_publication

MAX_HEAD_CHARS = 5_000
"""Number of code points at the beginning of a text in which fields are looked for."""

_AUTHOR_KEYS = frozenset(("author", "authors", "by"))
_DATE_KEYS = ("published", "publishdate", "publish_date", "published_at", "datepublished", "pubdate", "date", "created")
"""Keys of the date of publication, the most reliable first."""
_FIELD = re.compile(r"([A-Za-z_]{1,40}):(?:[ \t]+(.{0,1000}))?$")
_ITEM = re.compile(r"\s*-\s+(?:name:\s+)?(.{1,300})$")
_NAME = re.compile(r"\s+name:\s+(.{1,300})$")
_RST_FIELD = re.compile(r":(authors?|date):[ \t]+(.{1,1000})$", re.IGNORECASE | re.MULTILINE)


def read_front_matter(text: str) -> Publication:
    """Return what the front matter of a Markdown text states. Empty values if it has none."""
    front = FRONT_MATTER.match(text[:MAX_HEAD_CHARS].replace("\r\n", "\n"))
    return _build(dict(_iter_fields(front.group(1).split("\n")))) if front else UNKNOWN_PUBLICATION


def read_docinfo(text: str) -> Publication:
    """Return what the fields at the beginning of a reStructuredText state, such as `:Date: 2024-03-01`."""
    head = text[:MAX_HEAD_CHARS].replace("\r\n", "\n")
    return _build({key.lower(): [value] for key, value in reversed(_RST_FIELD.findall(head))})


def _build(fields: dict[str, list[str]]) -> Publication:
    authors = [name for key, names in fields.items() if key in _AUTHOR_KEYS for name in names]
    return build_publication(authors, [date for key in _DATE_KEYS for date in fields.get(key, ())])


def _iter_fields(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the fields of the first level with their value, the items of their list or the names in it."""
    key, values = "", list[str]()
    for line in lines:
        if field := _FIELD.match(line):
            yield key, values
            key, values = field.group(1).lower(), _split_value(field.group(2) or "")
        elif item := _ITEM.match(line) or _NAME.match(line):
            values.append(_unquote(item.group(1)))
    yield key, values


def _split_value(value: str) -> list[str]:
    """Return the items of a list such as `[Ann Lee, Bo Chen]`, or the value itself. Empty for an empty value."""
    bare = value.strip()
    items = bare[1:-1].split(",") if bare.startswith("[") and bare.endswith("]") else [bare]
    return [text for item in items if (text := _unquote(item))]


def _unquote(value: str) -> str:
    bare = value.strip()
    return bare[1:-1] if len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "\"'" else bare
