"""Limit the number of attributes in the start tags of an HTML page.

The parser compares each attribute of a tag with all others, so a tag with 300,000 of them takes minutes.
Tags are found like in the tokenizer of the HTML standard: a quote matters only after an equals sign, and
there are no tags inside comments and elements such as `script`.
"""

import re
from itertools import islice

MAX_ATTRIBUTES = 100
"""Maximum number of attributes of a tag. The first ones are kept."""

MAX_SHORT_TAG_CHARS = 2 * MAX_ATTRIBUTES
"""Number of characters up to which a tag cannot have more attributes than that."""

# Possessive quantifiers: what was matched once is never matched again in another way or from a later start.
_ATTRIBUTE = r"""[\s/]*+[^\s/>][^\s/>=]*+(?:\s*+=\s*+(?:"[^"]*+"?|'[^']*+'?|[^\s>]*+))?+"""
_START_TAG = rf"<([a-z][^\s/>]*+)(?:{_ATTRIBUTE})*+"
_RAW_TEXT_TAGS = "script|style|xmp|iframe|noembed|noframes|textarea|title"

_TOKEN = re.compile(
    rf"<!--.*?(?:-->|\Z)|(?P<raw><(?P<name>{_RAW_TEXT_TAGS})(?=[\s/>])(?:{_ATTRIBUTE})*+).*?(?=</(?P=name)|\Z)|(?P<tag>{_START_TAG})",
    re.IGNORECASE | re.DOTALL,
)
_ATTRIBUTES = re.compile(_ATTRIBUTE)
_NAME = re.compile(r"<[^\s/>]*+")


def limit_attributes(source: str) -> str:
    """Return the page with at most `MAX_ATTRIBUTES` attributes in each tag."""
    return _TOKEN.sub(_limit_tag, source)


def _limit_tag(token: re.Match[str]) -> str:
    whole, tag = token.group(), token.group("raw") or token.group("tag") or ""
    if len(tag) <= MAX_SHORT_TAG_CHARS:
        return whole
    name = _NAME.match(tag)
    assert name is not None
    attributes = islice(_ATTRIBUTES.finditer(tag, name.end()), MAX_ATTRIBUTES)
    end = max((attribute.end() for attribute in attributes), default=len(tag))
    return tag[:end] + whole[len(tag) :]
