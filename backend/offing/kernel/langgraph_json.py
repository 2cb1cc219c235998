"""JSON of what a LangGraph graph streams and stores, as its clients expect it."""

import base64
import dataclasses
import json
from collections.abc import Mapping
from typing import Any, cast

import orjson
from langchain_core.messages import BaseMessage
from langgraph.types import Interrupt
from pydantic import BaseModel

OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS


def dump_json(value: Any) -> bytes:
    """Return a value as JSON. What JSON cannot express becomes text."""
    try:
        return orjson.dumps(value, default=_to_plain, option=OPTIONS)
    except TypeError:  # numbers of more than 64 bits, and text that is not Unicode
        return json.dumps(value, default=_to_plain, skipkeys=True).encode("utf-8", "replace")


def to_json(value: Any) -> Any:
    """Return a value as plain data."""
    return orjson.loads(dump_json(value))


def interrupt_to_json(interrupt: Interrupt[Any]) -> dict[str, Any]:
    return {"value": interrupt.value, "id": interrupt.id}


def _to_plain(value: Any) -> Any:
    match value:
        case BaseMessage():
            return value.model_dump()
        case Interrupt():
            return interrupt_to_json(cast("Interrupt[Any]", value))
        case BaseModel():
            return value.model_dump(mode="json")
        case bytes() | bytearray():
            return base64.b64encode(value).decode()
        case Mapping():
            return dict(cast(Mapping[Any, Any], value))
        case tuple() | set() | frozenset():
            return list(cast("tuple[Any, ...]", value))
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {one.name: getattr(value, one.name) for one in dataclasses.fields(value) if one.init}
        case _:
            return str(value)
