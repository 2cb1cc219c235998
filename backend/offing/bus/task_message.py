"""The format of Offing's Celery messages on the Redis list.

Any other message is not passed on to Celery.
"""

import base64
from typing import Any, cast
from uuid import UUID

import orjson

MAX_MESSAGE_BYTES = 64 * 1024
"""Offing's messages have about half a kilobyte."""

_NO_ARGUMENTS = base64.b64encode(b"[[],{},{}]").decode()
"""The body of a message without arguments, named arguments and options."""

UNUSED_HEADERS = ("eta", "expires", "group", "compression", "stamps", "retries", "chord")
"""Celery features that Offing never uses. A message that is delayed or expires was written by
another application.
"""


def build_message(task: str, queue: str, message_id: str) -> bytes:
    """Return a message without arguments in the format of Celery's protocol 2 and kombu's Redis transport.

    It has the fields that Celery's workers read, and no others.
    """
    headers = {"lang": "py", "task": task, "id": message_id, "root_id": message_id, "retries": 0, "ignore_result": True}
    properties = {
        "correlation_id": message_id,
        "delivery_mode": 2,
        "delivery_info": {"exchange": "", "routing_key": queue},
        "priority": 0,
        "body_encoding": "base64",
        "delivery_tag": message_id,
    }
    envelope = {"content-type": "application/json", "content-encoding": "utf-8", "headers": headers}
    return orjson.dumps({"body": _NO_ARGUMENTS, **envelope, "properties": properties})


def find_defect(raw: bytes, task: str) -> str | None:
    """Return why a message cannot be a message of Offing for `task`. `None` means that it can."""
    if len(raw) > MAX_MESSAGE_BYTES:
        return f"longer than {MAX_MESSAGE_BYTES} bytes"
    try:
        message: object = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return "not JSON"
    if not isinstance(message, dict):
        return "not a JSON object"
    fields = cast(dict[str, Any], message)
    return _find_envelope_defect(fields, task) or _find_body_defect(fields)


def _find_envelope_defect(message: dict[str, Any], task: str) -> str | None:
    headers, properties = message.get("headers"), message.get("properties")
    if not isinstance(headers, dict) or not isinstance(properties, dict):
        return "no headers or properties"
    named, delivery = cast(dict[str, Any], headers), cast(dict[str, Any], properties)
    if named.get("task") != task:
        return "another task"
    if not isinstance(named.get("id"), str) or any(named.get(name) for name in UNUSED_HEADERS):
        return "headers that are never sent"
    where = delivery.get("delivery_info")
    if not isinstance(where, dict) or not isinstance(delivery.get("delivery_tag"), str):
        return "no delivery tag"
    if (message.get("content-type"), message.get("content-encoding")) != ("application/json", "utf-8"):
        return "another content type or encoding"
    return None if delivery.get("body_encoding") == "base64" else "another body encoding"


def _find_body_defect(message: dict[str, Any]) -> str | None:
    """Return what is wrong with the body.

    It must be [arguments, named arguments, options] with run ids as arguments.
    """
    try:
        body: object = orjson.loads(base64.b64decode(message["body"], validate=True))
    except (KeyError, TypeError, ValueError):
        return "a body that is not JSON in base64"
    if not isinstance(body, list) or len(parts := cast(list[Any], body)) != 3:
        return "a body with another structure"
    arguments, named, options = parts
    if not isinstance(arguments, list) or not isinstance(options, dict):
        return "a body with another structure"
    if named or not all(map(_is_id, cast(list[Any], arguments))):
        return "arguments that are not run ids"
    return None


def _is_id(value: object) -> bool:
    try:
        return isinstance(value, str) and str(UUID(value)) == value
    except ValueError:
        return False
