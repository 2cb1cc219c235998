"""Tools as the roles see them. A tool's schema is made once and not in every round."""

from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from offing.sdk import ToolSpec
from offing_graphs.parts.shapes import Card


def card_of(spec: ToolSpec) -> Card:
    return Card(name=spec.name, description=spec.description, parameters=_schema(spec.args), foreign=spec.foreign)


@lru_cache(maxsize=256)
def _schema(args: type[BaseModel]) -> dict[str, Any]:
    """Shared by all that ask; nobody changes it."""
    return args.model_json_schema()
