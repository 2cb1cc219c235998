"""Clean texts in stored states: in the bytes as they lie there, because the classes of a graph's state are not known.

A checkpoint, a value and a pending write are msgpack. An object is an extension that names its class and holds its
fields as msgpack; they are cleaned, and the class is left alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, LiteralString, cast
from uuid import UUID

import ormsgpack

from offing.storage.pool import Connection
from offing.storage.state_values import DICT, LIST, SNAPSHOT, list_body, list_items

Clean = Callable[[str], str]

OPTION = ormsgpack.OPT_NON_STR_KEYS

PACKED = OPTION | ormsgpack.OPT_PASSTHROUGH_DATACLASS

SNAPSHOT_CODE = 7
"""Extension of LangGraph's that holds a value and names no class."""

THREAD = "select thread_id from run where id = %s"

BODIES: tuple[tuple[LiteralString, LiteralString], ...] = (
    (
        "select ctid::text, 'msgpack', body from checkpoint where thread_id = %s",
        "update checkpoint set body = %s where ctid = %s::tid",
    ),
    (
        "select ctid::text, type, items, body from checkpoint_value where thread_id = %s",
        "update checkpoint_value set body = %s where ctid = %s::tid",
    ),
    (
        "select ctid::text, type, body from checkpoint_write where thread_id = %s",
        "update checkpoint_write set body = %s where ctid = %s::tid",
    ),
)


@dataclass(frozen=True, slots=True)
class _Extension:
    code: int
    data: bytes


async def clean_states(connection: Connection, run: UUID, clean: Clean) -> None:
    """Clean the states of a run's thread."""
    found = await (await connection.execute(THREAD, (run,))).fetchone()
    for query, update in BODIES if found else ():
        for at, kind, *items, body in await (await connection.execute(query, found)).fetchall():
            if (new := _cleaned_value(kind, items[0] if items else 0, body, clean)) != body:
                await connection.execute(update, (new, at))


def _cleaned_value(kind: str, items: int, body: bytes, clean: Clean) -> bytes:
    kind = kind.removeprefix(SNAPSHOT)
    if kind == LIST:
        return list_items(_cleaned(list_body(items, body), clean))
    return _cleaned(body, clean) if kind in (DICT, "msgpack") else body


def _cleaned(body: bytes, clean: Clean) -> bytes:
    """The same bytes where nothing is to be cleaned."""
    found = ormsgpack.unpackb(body, ext_hook=_Extension, option=OPTION)
    return ormsgpack.packb(_walked(found, clean), default=_packed, option=PACKED)


def _walked(value: Any, clean: Clean) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {key: _walked(item, clean) for key, item in cast(dict[Any, Any], value).items()}
    if isinstance(value, list):
        return [_walked(item, clean) for item in cast(list[Any], value)]
    return _Extension(value.code, _object(value, clean)) if isinstance(value, _Extension) else value


def _object(extension: _Extension, clean: Clean) -> bytes:
    """The data of an extension: of an object's module, class and fields, the fields alone are cleaned."""
    data = ormsgpack.unpackb(extension.data, ext_hook=_Extension, option=OPTION)
    if extension.code == SNAPSHOT_CODE:
        data = _walked(data, clean)
    elif isinstance(data, list) and len(fields := cast(list[Any], data)) > 2:
        data = [*fields[:2], _walked(fields[2], clean), *fields[3:]]
    return ormsgpack.packb(data, default=_packed, option=PACKED)


def _packed(value: Any) -> ormsgpack.Ext:
    if isinstance(value, _Extension):
        return ormsgpack.Ext(value.code, value.data)
    raise TypeError(type(value).__name__)
