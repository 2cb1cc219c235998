"""Validation of store operations: plain data within limits."""

from collections.abc import Mapping
from typing import Any, cast

import orjson
from langgraph.store.base import ListNamespacesOp, Op, PutOp, SearchOp, validate_op_namespace

from offing.core.errors import InvalidInput
from offing.core.store_item import FILTER_OPERATORS
from offing.core.tool_policy.copy_detection import iter_strings

MAX_ITEM_BYTES = 200_000
"""Maximum size of the value of an item as JSON, in bytes."""

MAX_NAME_BYTES = 1_000
"""Maximum size of a key, and of a namespace with its labels joined by periods, in bytes."""

MAX_PAGE_ITEMS = 10_000
"""Maximum number of items per search, and of namespaces per listing."""


def validate_op(op: Op) -> Op:
    """Return the operation with plain data.

    Raises InvalidInput, and LangGraph's own error for an invalid namespace.
    """
    validate_op_namespace(op)
    match op:
        case PutOp():
            _check_name("namespace", ".".join(op.namespace))
            _check_name("key", op.key)
            return op._replace(value=None if op.value is None else _to_json_object(op.value))
        case SearchOp():
            _check_page(op)
            return op._replace(filter=_parse_filter(op.filter or {}))
        case ListNamespacesOp():
            _check_page(op)
        case _:
            pass
    return op


def _to_json_object(value: Mapping[str, Any]) -> dict[str, Any]:
    body = _serialize_json("value", dict(value))
    if len(body) > MAX_ITEM_BYTES:
        problem = f"the item has {len(body)} bytes; the maximum is {MAX_ITEM_BYTES}"
        raise InvalidInput("value", problem, "Store less data in it, or use several items.")
    return orjson.loads(body)


def _parse_filter(conditions: Mapping[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = orjson.loads(_serialize_json("filter", dict(conditions)))
    waiting: list[Any] = list(plain.values())
    while waiting:
        one = waiting.pop()
        if isinstance(one, list):
            waiting += one
        elif isinstance(one, dict):
            names = cast(dict[str, Any], one)
            operators = any(name.startswith("$") for name in names)
            if operators and (unknown := set(names) - FILTER_OPERATORS):
                raise ValueError(f"Unsupported operator: {', '.join(sorted(unknown))}")
            waiting += [] if operators else names.values()
    return plain


def _serialize_json(field: str, value: Any) -> bytes:
    try:
        body = orjson.dumps(value)
    except TypeError as error:
        raise InvalidInput(field, f"it is not JSON: {error}", "Use plain data with strings as keys.") from None
    if b"\\u0000" in body and any("\0" in text for text in iter_strings(orjson.loads(body))):
        raise InvalidInput(field, "it contains a NUL character", "Remove the character.")
    return body


def _check_name(field: str, text: str) -> None:
    if "\0" in text or len(text.encode()) > MAX_NAME_BYTES:
        raise InvalidInput(field, f"it contains a NUL character or has more than {MAX_NAME_BYTES} bytes", "Shorten it.")


def _check_page(op: SearchOp | ListNamespacesOp) -> None:
    if not (0 <= op.limit <= MAX_PAGE_ITEMS and op.offset >= 0):
        raise InvalidInput(
            "limit", f"it is not from 0 to {MAX_PAGE_ITEMS}, or the offset is negative", "Read the items in pages."
        )
