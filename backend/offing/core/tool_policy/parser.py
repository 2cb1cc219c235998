"""Parser of the text of a tool policy.

JSON does not define which of two equal keys counts, and implementations differ. Duplicate keys are
therefore rejected, as are values such as NaN.
"""

import json
from typing import Any

from pydantic import ValidationError

from offing.core.errors import InvalidInput
from offing.core.tool_policy.rules import ToolPolicy

FORMAT_REMEDY = 'Use a form such as {"rules": [{"tool": "calculate", "allow_other_args": true}]}.'


def parse_tool_policy(text: str) -> ToolPolicy:
    """Parse the JSON text of a tool policy.

    Raises InvalidInput, which names the first error and its position.
    """
    try:
        document = json.loads(
            text, object_pairs_hook=_reject_duplicate_keys, parse_constant=_reject_number, parse_float=_parse_finite
        )
    except (ValueError, RecursionError) as error:
        raise InvalidInput("policy", f"it is not valid JSON: {error}", FORMAT_REMEDY) from None
    try:
        return ToolPolicy.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "policy"
        raise InvalidInput(field, first["msg"].removeprefix("Value error, "), "Correct the field.") from None


def _reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"the key {key[:100]!r} occurs twice in one object")
        values[key] = value
    return values


def _reject_number(text: str) -> Any:
    raise ValueError(f"{text} is not a valid number")


def _parse_finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text} is too large")
    return number
