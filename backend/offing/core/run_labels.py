"""Titles and tags that people give runs."""

import unicodedata
from collections.abc import Sequence

from offing.core.errors import InvalidInput

MAX_TITLE_CHARS = 200

MAX_TAGS = 20
"""Maximum number of tags of one run."""

MAX_TAG_CHARS = 50


def normalize_title(text: str) -> str:
    """Return the title as one line without surrounding space. Empty means that the run has none.

    Raises InvalidInput for `title`.
    """
    title = _normalize_line("title", text)
    if len(title) > MAX_TITLE_CHARS:
        raise InvalidInput("title", f"it has more than {MAX_TITLE_CHARS} characters", "Use a shorter title.")
    return title


def normalize_tags(texts: Sequence[str]) -> tuple[str, ...]:
    """Return each tag once, as one line without surrounding space, in the given order.

    Raises InvalidInput for `tags`.
    """
    tags = tuple(dict.fromkeys(normalize_tag("tags", text) for text in texts))
    if len(tags) > MAX_TAGS:
        raise InvalidInput("tags", f"there are more than {MAX_TAGS}", "Remove some of them.")
    return tags


def normalize_tag(field: str, text: str) -> str:
    """Return a tag as it is stored. Raises InvalidInput for `field`."""
    tag = _normalize_line(field, text)
    if not tag:
        raise InvalidInput(field, "a tag is empty", "Write a word, or leave it out.")
    if len(tag) > MAX_TAG_CHARS:
        raise InvalidInput(field, f"a tag has more than {MAX_TAG_CHARS} characters", "Use a shorter one.")
    return tag


def _normalize_line(field: str, text: str) -> str:
    """Return text in Unicode's composed form with single spaces, so that equal words are equal characters."""
    line = " ".join(unicodedata.normalize("NFC", text).split())
    if any(unicodedata.category(char) in ("Cc", "Cs") for char in line):
        raise InvalidInput(field, "it contains a control character", "Remove it.")
    return line
