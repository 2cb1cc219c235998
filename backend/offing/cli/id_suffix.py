"""Select what a person names by an id or by the last characters of an id."""

from collections.abc import Sequence
from typing import TypeVar

from offing.core.errors import InvalidInput, NotFound

Item = TypeVar("Item")


def select_match(noun: str, plural: str, text: str, matches: Sequence[Item]) -> Item:
    """Return the only match of `text`. Raises NotFound without a match, and InvalidInput if there are several."""
    if not matches:
        raise NotFound(noun, text)
    if len(matches) > 1:
        problem = f"{text!r} matches {len(matches)} {plural}"
        raise InvalidInput(noun.upper(), problem, "Use more of its last characters.")
    return matches[0]
