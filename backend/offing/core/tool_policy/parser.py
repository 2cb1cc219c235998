"""Parser of the text of a tool policy.

JSON does not define which of two equal keys counts, and implementations differ. Duplicate keys are
therefore rejected, as are values such as NaN.
"""

import json
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from offing.core.errors import InvalidInput
from offing.core.tool_policy.checks import ToolPolicyIssue
from offing.core.tool_policy.rules import ToolPolicy

FORMAT_REMEDY = 'Use a form such as {"rules": [{"tool": "calculate", "allow_other_args": true}]}.'

MAX_ISSUES = 100
"""Maximum number of errors of the form that are reported."""


def parse_tool_policy(text: str) -> ToolPolicy:
    """Parse the JSON text of a tool policy.

    Raises InvalidInput, which names the first error and its position.
    """
    parsed = read_tool_policy(text)
    if isinstance(parsed, ToolPolicy):
        return parsed
    raise InvalidInput(parsed[0].field, parsed[0].problem, parsed[0].remedy)


def read_tool_policy(text: str) -> ToolPolicy | tuple[ToolPolicyIssue, ...]:
    """Parse the JSON text of a tool policy, or return what is wrong with its form, at least one issue."""
    try:
        document = json.loads(
            text, object_pairs_hook=_reject_duplicate_keys, parse_constant=_reject_number, parse_float=_parse_finite
        )
    except (ValueError, RecursionError) as error:
        return (ToolPolicyIssue("", "policy", f"it is not valid JSON: {error}", FORMAT_REMEDY),)
    try:
        return ToolPolicy.model_validate(document)
    except ValidationError as error:
        return tuple(
            _issue_from_error(one) for one in error.errors(include_input=False, include_url=False)[:MAX_ISSUES]
        )


def _issue_from_error(error: ErrorDetails) -> ToolPolicyIssue:
    field = ".".join(map(str, error["loc"])) or "policy"
    return ToolPolicyIssue("", field, error["msg"].removeprefix("Value error, "), "Correct the field.")


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
