"""A finished tool call, read back from its step."""

from uuid import UUID

from offing.core.step import Step
from offing.core.tool import SourceSpan, ToolResult, ToolStatus


def tool_result_from_step(step: Step) -> ToolResult:
    """Return the result that `RunContext.call_tool` returned when it recorded this step.

    Raises KeyError if the step records no tool call.
    """
    p = step.payload
    spans = tuple(SourceSpan(UUID(s["text_id"]), s["start"], s["end"]) for s in p["spans"])
    return ToolResult(step.seq, p["tool"], p["args"], ToolStatus(p["status"]), p["content"], p["message"], spans)
