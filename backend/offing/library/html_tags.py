"""Start tags of an HTML page without more attributes than a page has use for.

The parser compares each attribute of a tag with all others of it, so a tag with 300,000 of them takes minutes. Tags are
found as the HTML standard's tokenizer finds them: a quote matters only behind an equals sign, and nothing inside of
comments and of elements such as `script` is a tag.
"""

import re
from itertools import islice

MAX_ATTRIBUTES = 100
"""Attributes of a tag that are kept, the first ones."""

SHORT_TAG = 2 * MAX_ATTRIBUTES
"""Characters of a tag that cannot have more."""

# Possessive quantifiers: what was read once is never read again in another way, nor from a later beginning.
_ATTRIBUTE = r"""[\s/]*+[^\s/>][^\s/>=]*+(?:\s*+=\s*+(?:"[^"]*+"?|'[^']*+'?|[^\s>]*+))?+"""
_START = rf"<([a-z][^\s/>]*+)(?:{_ATTRIBUTE})*+"
_RAW = "script|style|xmp|iframe|noembed|noframes|textarea|title"

_TOKEN = re.compile(
    rf"<!--.*?(?:-->|\Z)|(?P<raw><(?P<name>{_RAW})(?=[\s/>])(?:{_ATTRIBUTE})*+).*?(?=</(?P=name)|\Z)|(?P<tag>{_START})",
    re.IGNORECASE | re.DOTALL,
)
_ATTRIBUTES = re.compile(_ATTRIBUTE)
_NAME = re.compile(r"<[^\s/>]*+")


def with_few_attributes(source: str) -> str:
    """The page with at most `MAX_ATTRIBUTES` attributes in each tag."""
    return _TOKEN.sub(_shortened, source)


def _shortened(token: re.Match[str]) -> str:
    whole, tag = token.group(), token.group("raw") or token.group("tag") or ""
    if len(tag) <= SHORT_TAG:
        return whole
    name = _NAME.match(tag)
    assert name is not None
    kept = islice(_ATTRIBUTES.finditer(tag, name.end()), MAX_ATTRIBUTES)
    end = max((attribute.end() for attribute in kept), default=len(tag))
    return tag[:end] + whole[len(tag) :]
