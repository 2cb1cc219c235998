"""A finished tool call, read back from the step that records it."""

from uuid import UUID

from offing.core.step import Step
from offing.core.tool import Span, ToolResult, ToolStatus


def result_of(step: Step) -> ToolResult:
    """What `RunContext.use` returned when it recorded this step. `KeyError`: the step is no tool's."""
    p = step.payload
    spans = tuple(Span(UUID(s["artefact"]), s["start"], s["end"]) for s in p["spans"])
    return ToolResult(step.seq, p["tool"], p["args"], ToolStatus(p["status"]), p["content"], p["message"], spans)
