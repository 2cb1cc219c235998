"""A tool call in a rehearsal: schema, policy, effect and time-out as on the platform. Never raises for what it did."""

from dataclasses import asdict
from typing import Any

from pydantic import ValidationError

from offing.core.errors import InvalidInput, NotFound
from offing.core.policy import PolicyContext, Verdict, decide
from offing.core.step import CallKey, StepDraft, StepKind
from offing.core.tool import Effect, ToolOutput, ToolStatus
from offing.sdk import ToolCall
from offing.sdk.tool import ToolFailed
from offing.storage.migrate import LOCAL_TENANT
from offing.testing.stage import Stage
from offing.tools import Tool
from offing.tools.tool import ToolScope


async def used(stage: Stage, call: ToolCall, key: CallKey, seconds: float) -> StepDraft:
    """The step of a tool call. `seconds`: how long it took on the virtual clock."""
    tool = stage.tools.get(call.tool)
    if tool is None:
        message = f"There is no tool {call.tool!r}. Use one of: {', '.join(sorted(stage.tools))}."
        return _step(call, ToolStatus.INVALID, message)
    try:
        args = tool.spec.args.model_validate(call.args)
    except ValidationError as error:
        return _step(call, ToolStatus.INVALID, "; ".join(f"{e['loc']}: {e['msg']}" for e in error.errors()[:5]))
    decision = decide(stage.policy, tool.spec, args.model_dump(mode="json"), PolicyContext(used=stage.used()))
    if not decision.allowed and not (decision.verdict is Verdict.ASK and stage.scene.approves):
        return _step(call, ToolStatus.DENIED, f"{call.tool} is not allowed: {decision.reason}")
    if tool.spec.effect is Effect.AT_MOST_ONCE and key in stage.intents:
        return _step(call, ToolStatus.UNKNOWN_OUTCOME, f"A worker was lost while {call.tool} ran; it is not repeated.")
    stage.intents.add(key)
    if seconds > tool.spec.timeout_seconds:
        limit = f"{tool.spec.timeout_seconds:g}"
        return _step(call, ToolStatus.TIMEOUT, f"{call.tool} did not finish within {limit} seconds.")
    return await _executed(stage, tool, args, call, key)


async def _executed(stage: Stage, tool: Tool, args: Any, call: ToolCall, key: CallKey) -> StepDraft:
    if words := stage.scene.failing_tools.get(call.tool):
        return _step(call, ToolStatus.FAILED, words)
    name = f"{stage.run.id}:{key.superstep}:{key.path}:{key.ordinal}"
    try:
        output = await tool(args, ToolScope(LOCAL_TENANT, stage.run.id, name, stage.documents))
    except (ToolFailed, InvalidInput, NotFound) as error:
        return _step(call, ToolStatus.FAILED, str(error))
    return _step(call, ToolStatus.OK, "", output, tool.spec.verb)


def _step(
    call: ToolCall, status: ToolStatus, message: str, output: ToolOutput | None = None, verb: str = "failed"
) -> StepDraft:
    spans = [asdict(span) | {"artefact": str(span.artefact)} for span in output.spans] if output else []
    payload: dict[str, Any] = {
        "tool": call.tool,
        "args": call.args,
        "status": status,
        "content": output.content if output else {},
        "message": message,
        "spans": spans,
    }
    title, detail = (output.title, output.detail) if output else (message, "")
    return StepDraft(StepKind.TOOL, title, payload, verb, detail, ok=not message)
