"""The classes that the annotations of a graph's state name."""

import typing
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

from langchain_core.messages import BaseMessage
from pydantic import BaseModel
from typing_extensions import is_typeddict


def iter_state_classes(schema: Any) -> Iterator[tuple[str, type]]:
    """Yield key and class of everything that a state's annotations name.

    Nothing is yielded for a pydantic state, which is validated again when it is restored.
    """
    if not isinstance(schema, type) or issubclass(schema, BaseModel):
        return
    owner = cast(Any, schema)
    for key, annotation in _get_type_hints(owner).items():
        for kind in _iter_named_types(annotation, (owner,)):
            yield key, kind


def list_data_classes(schemas: Iterable[Any]) -> tuple[type, ...]:
    """List the classes of plain values in states: data classes, pydantic models and enumerations, also nested ones."""
    classes: dict[type, None] = {}
    waiting = [kind for schema in schemas for _, kind in iter_state_classes(schema)]
    while waiting:
        kind = waiting.pop()
        if kind in classes or not _is_data_class(kind):
            continue
        classes[kind] = None
        waiting += [inner for note in _list_annotations(kind) for inner in _iter_named_types(note, (kind,))]
    return tuple(sorted(classes, key=lambda kind: (kind.__module__, kind.__qualname__)))


def _is_data_class(kind: type[Any]) -> bool:
    if issubclass(kind, BaseMessage) or kind in (BaseModel, Enum):
        return False
    return is_dataclass(kind) or issubclass(kind, (BaseModel, Enum))


def _list_annotations(kind: type[Any]) -> list[Any]:
    if issubclass(kind, BaseModel):
        return [field.annotation for field in kind.model_fields.values()]
    if is_dataclass(kind):
        annotations = _get_type_hints(kind)
        return [annotations[field.name] for field in fields(kind) if field.name in annotations]
    return []


def _get_type_hints(schema: type) -> dict[str, Any]:
    try:
        return get_type_hints(schema, include_extras=True)
    except (NameError, TypeError):
        return {}  # a name that exists only for type checkers


def _iter_named_types(annotation: Any, context: tuple[Any, ...]) -> Iterator[type]:
    if get_origin(annotation) is Annotated:
        yield from _iter_named_types(get_args(annotation)[0], context)
    elif get_origin(annotation) is typing.Literal or any(annotation is one for one in context):
        return
    elif arguments := get_args(annotation):
        for argument in arguments:
            yield from _iter_named_types(argument, context)
    elif is_typeddict(annotation):
        for inner in _get_type_hints(annotation).values():
            yield from _iter_named_types(inner, (*context, annotation))
    elif isinstance(annotation, type):
        yield annotation
