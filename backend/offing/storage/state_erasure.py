"""Erasure in stored states.

The bytes are cleaned in place, because the classes of a graph's state are not known. A
checkpoint, a value and a pending write are msgpack. An object is an extension that names its
class and contains its fields as msgpack; the fields are cleaned and the class is not changed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, LiteralString, cast
from uuid import UUID

import ormsgpack

from offing.storage.pool import Connection
from offing.storage.state_values import DICT, LIST, SNAPSHOT_PREFIX, build_list, get_list_items

TextCleaner = Callable[[str], str]

ORMSGPACK_OPTIONS = ormsgpack.OPT_NON_STR_KEYS

PASSTHROUGH_OPTIONS = ORMSGPACK_OPTIONS | ormsgpack.OPT_PASSTHROUGH_DATACLASS

SNAPSHOT_EXTENSION_CODE = 7
"""LangGraph's extension for a value without a class."""

GET_THREAD = "select thread_id from run where id = %s"

BODY_STATEMENTS: tuple[tuple[LiteralString, LiteralString], ...] = (
    (
        "select ctid::text, 'msgpack', body from checkpoint where thread_id = %s",
        "update checkpoint set body = %s where ctid = %s::tid",
    ),
    (
        "select ctid::text, type, item_count, body from checkpoint_value where thread_id = %s",
        "update checkpoint_value set body = %s where ctid = %s::tid",
    ),
    (
        "select ctid::text, type, body from checkpoint_write where thread_id = %s",
        "update checkpoint_write set body = %s where ctid = %s::tid",
    ),
)


@dataclass(frozen=True, slots=True)
class _MsgpackExtension:
    code: int
    data: bytes


async def clean_thread_states(connection: Connection, run_id: UUID, clean: TextCleaner) -> None:
    """Clean the states of a run's thread."""
    row = await (await connection.execute(GET_THREAD, (run_id,))).fetchone()
    for query, update in BODY_STATEMENTS if row else ():
        for at, kind, *items, body in await (await connection.execute(query, row)).fetchall():
            if (new := _clean_value(kind, items[0] if items else 0, body, clean)) != body:
                await connection.execute(update, (new, at))


def _clean_value(kind: str, items: int, body: bytes, clean: TextCleaner) -> bytes:
    kind = kind.removeprefix(SNAPSHOT_PREFIX)
    if kind == LIST:
        return get_list_items(_clean_bytes(build_list(items, body), clean))
    return _clean_bytes(body, clean) if kind in (DICT, "msgpack") else body


def _clean_bytes(body: bytes, clean: TextCleaner) -> bytes:
    """Clean msgpack data. Return the same bytes if there is nothing to clean."""
    value = ormsgpack.unpackb(body, ext_hook=_MsgpackExtension, option=ORMSGPACK_OPTIONS)
    return ormsgpack.packb(_clean_nested(value, clean), default=_pack_extension, option=PASSTHROUGH_OPTIONS)


def _clean_nested(value: Any, clean: TextCleaner) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {key: _clean_nested(item, clean) for key, item in cast(dict[Any, Any], value).items()}
    if isinstance(value, list):
        return [_clean_nested(item, clean) for item in cast(list[Any], value)]
    return _MsgpackExtension(value.code, _clean_object(value, clean)) if isinstance(value, _MsgpackExtension) else value


def _clean_object(extension: _MsgpackExtension, clean: TextCleaner) -> bytes:
    """Clean the data of an extension.

    It consists of an object's module, class and fields; only the fields are cleaned.
    """
    data = ormsgpack.unpackb(extension.data, ext_hook=_MsgpackExtension, option=ORMSGPACK_OPTIONS)
    if extension.code == SNAPSHOT_EXTENSION_CODE:
        data = _clean_nested(data, clean)
    elif isinstance(data, list) and len(fields := cast(list[Any], data)) > 2:
        data = [*fields[:2], _clean_nested(fields[2], clean), *fields[3:]]
    return ormsgpack.packb(data, default=_pack_extension, option=PASSTHROUGH_OPTIONS)


def _pack_extension(value: Any) -> ormsgpack.Ext:
    if isinstance(value, _MsgpackExtension):
        return ormsgpack.Ext(value.code, value.data)
    raise TypeError(type(value).__name__)
