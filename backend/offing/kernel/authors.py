"""Who wrote a report: which role calls hold a draft of one, and whose they are. Pure."""

import re
from collections.abc import Mapping
from typing import Any, get_args

from pydantic import BaseModel

from offing.core.report import ReportDraft
from offing.core.step import Step
from offing.sdk import Role

NO_MODEL = "the graph's own writer, without a model"
"""Who wrote a report that no role call did."""


def mentioned(draft: ReportDraft) -> set[str]:
    """Ids of evidence that a draft names anywhere, in its citations or in its text."""
    return set(re.findall(r"E\d+", draft.model_dump_json()))


def author_of(step: Step) -> str:
    """Who answered a role call: the model's name, or the engine's where it has no model."""
    return step.payload["model"] or f"the {step.payload['engine']} engine"


def wrote(role: Role[Any, Any], step: Step) -> bool:
    """The step is a draft of a report, or an answer in a chat, whose last one is the report."""
    return "output" in step.payload and (role.native is not None or holds_draft(role.output, step.payload["output"]))


def holds_draft(output: type[BaseModel], said: Mapping[str, Any]) -> bool:
    """An answer of this type, as JSON, is a draft of a report or has one in a field, at whatever depth."""
    if issubclass(output, ReportDraft):
        return True
    named = {name: (f.annotation, *get_args(f.annotation)) for name, f in output.model_fields.items()}
    return any(_is_draft(kind, said.get(name)) for name, kinds in named.items() for kind in kinds)


def _is_draft(kind: Any, said: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel) and isinstance(said, dict) and holds_draft(kind, said)  # pyright: ignore[reportUnknownArgumentType]
