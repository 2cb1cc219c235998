"""Filters on the metadata of a record, as authorization handlers of a LangGraph project return them."""

from collections.abc import Mapping
from typing import Any, cast

from offing.core.errors import InvalidInput

EQUALS, CONTAINS = "$eq", "$contains"


def matches_filter(conditions: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    """Return whether metadata match all conditions of a filter. An empty filter matches everything.

    A condition is a value, `{"$eq": value}`, `{"$contains": item}`, or `{"$contains": [items]}` for all of the items.
    Raises InvalidInput for another operator, because ignoring it would show records that the handler hides.
    """
    return all(_matches(condition, metadata.get(key)) for key, condition in conditions.items())


def _matches(condition: Any, value: Any) -> bool:
    if not isinstance(condition, Mapping):
        return value == condition
    operators = cast(Mapping[str, Any], condition)
    return all(_apply(operator, operand, value) for operator, operand in operators.items())


def _apply(operator: str, operand: Any, value: Any) -> bool:
    if operator == EQUALS:
        return value == operand
    if operator != CONTAINS:
        raise InvalidInput("auth", f"there is no operator {operator!r} in a filter", f"Use {EQUALS} or {CONTAINS}.")
    items = cast(list[Any], operand) if isinstance(operand, list) else [operand]
    return isinstance(value, list) and all(item in value for item in items)
