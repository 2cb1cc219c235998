"""Calculations of a run: the tool results whose numbers a report may state."""

from collections.abc import Mapping
from typing import Any

from offing.core.tool import ToolStatus

CALCULATION_FIELDS = {"calculate": "text", "run_python": "stdout", "earlier_report": "calculations"}
"""The tools that calculate, and the field of their content that has the result.

The earlier report of a follow-up brings the results of its run.
"""


def find_calculation(payload: Mapping[str, Any]) -> str | None:
    """Return the result of a calculation from the payload of a tool result.

    `None` means that the tool does not calculate, or that the call failed.
    """
    field = CALCULATION_FIELDS.get(payload.get("tool", ""))
    if field is None or payload.get("status") != ToolStatus.OK:
        return None
    return str(payload["content"][field])
