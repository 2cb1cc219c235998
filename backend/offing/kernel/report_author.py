"""Find out who wrote a report: which role calls hold a draft of it, and which model answered them.

The functions of this module are pure.
"""

import re
from collections.abc import Mapping
from typing import Any, get_args

from pydantic import BaseModel

from offing.core.report import DraftSection, ReportDraft
from offing.core.step import Step
from offing.sdk import Role


def extract_evidence_ids(draft: BaseModel) -> set[str]:
    """Return the evidence ids that a draft names in its citations or in its text."""
    return set(re.findall(r"E\d+", draft.model_dump_json()))


def author_from_step(step: Step) -> str:
    """Return the name of the model that answered a role call, or of the engine if it has no model."""
    return step.payload["model"] or f"the {step.payload['engine']} engine"


def is_report_draft(role: Role[Any, Any], step: Step) -> bool:
    """Return whether a step holds a draft of a report.

    The last answer of a native chat role counts as a draft, because it becomes the report.
    """
    return "output" in step.payload and (role.native_chat is not None or has_draft(role.output, step.payload["output"]))


def has_draft(output: type[BaseModel], value: Mapping[str, Any]) -> bool:
    """Return whether a role output (as JSON) is a report draft or a section of one, or contains one at any depth."""
    if issubclass(output, (ReportDraft, DraftSection)):
        return True
    named = {name: (f.annotation, *get_args(f.annotation)) for name, f in output.model_fields.items()}
    return any(_value_has_draft(kind, value.get(name)) for name, kinds in named.items() for kind in kinds)


def _value_has_draft(kind: Any, value: Any) -> bool:
    if isinstance(value, list):
        return any(_value_has_draft(one, item) for item in value for one in get_args(kind))  # pyright: ignore[reportUnknownVariableType]
    return isinstance(kind, type) and issubclass(kind, BaseModel) and isinstance(value, dict) and has_draft(kind, value)  # pyright: ignore[reportUnknownArgumentType]
