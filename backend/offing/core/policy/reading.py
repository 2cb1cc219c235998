"""The text of a tool policy as a policy: the only home of what a file must be beyond its shape.

JSON says nothing of a key that stands twice, and readers differ on which one holds; here it is refused, as are numbers
that are none.
"""

import json
from typing import Any

from pydantic import ValidationError

from offing.core.errors import InvalidInput
from offing.core.policy.rules import Policy

FORM = 'Write {"rules": [{"tool": "calculate", "others": true}]} and so on.'


def read_policy(text: str) -> Policy:
    """Raises InvalidInput that names the first thing wrong and where it stands."""
    try:
        document = json.loads(text, object_pairs_hook=_single, parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("policy", f"it is no JSON that can be used: {error}", FORM) from None
    try:
        return Policy.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "policy"
        raise InvalidInput(field, first["msg"].removeprefix("Value error, "), "Correct it there.") from None


def _single(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key[:100]!r} stands twice in one object")
        found[key] = value
    return found


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{text} is too large a number")
    return number
