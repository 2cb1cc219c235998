"""Calls of a graph's own tools in the journal, as `offing.langchain.tool_calls.ToolJournal`.

Rules of the tool policy that name these tools apply to them. Their results are untrusted, because
their origin is unknown to the platform.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from offing.core.provenance import PLATFORM_LABEL, Origin, OriginKind, ProvenanceLabel, TrustLevel
from offing.core.step import Step, StepDraft, StepKind, shorten_line
from offing.core.tool import SideEffect, ToolStatus
from offing.kernel.call_key import CallKeys, NodeCall
from offing.kernel.journal import Journal
from offing.kernel.recorded_calls import TOOL_RESULT_KINDS, render_call_key
from offing.kernel.run_store import JournalEntry
from offing.kernel.tool_executor import ToolExecutor
from offing.langchain.tool_calls import GraphToolCall, GraphToolResult
from offing.telemetry.redaction import redact_value, remove_secrets

current_tool_call: ContextVar[str] = ContextVar("offing_tool_call", default="")
"""Key of the tool call that makes the current call, as text.

Empty means that the node makes it itself.
"""


UNKNOWN_OUTCOME_MESSAGE = (
    "A worker was lost while {} ran; whether it had its effect is not known, and it is not repeated."
)


@dataclass(frozen=True, slots=True)
class BegunToolCall:
    """A tool call with its call key. `step` is its recorded step. `None` means that it is not recorded."""

    call: NodeCall
    step: Step | None
    rule: str = ""
    """The rule of the tool policy that decided. Empty means that no rule applies to the tool."""


class GraphToolJournal:
    """The calls of a graph's own tools in one epoch."""

    def __init__(self, keys: CallKeys, journal: Journal, tools: ToolExecutor) -> None:
        self._keys, self._journal, self._tools = keys, journal, tools

    def begin_tool(self, call: GraphToolCall) -> BegunToolCall:
        node_call = self._keys.next_call(*remove_secrets([call.tool, call.args]))
        return BegunToolCall(node_call, self._journal.take_recorded(node_call, TOOL_RESULT_KINDS))

    def find_recorded_tool(self, begun: BegunToolCall) -> GraphToolResult | None:
        if begun.step is None:
            return None
        content: dict[str, Any] = begun.step.payload["content"]
        return GraphToolResult(content.get("result"), "result" in content, error=begun.step.payload["message"])

    async def approve_tool(self, begun: BegunToolCall, call: GraphToolCall) -> tuple[BegunToolCall, str]:
        if begun.step is not None:
            repeatable = call.side_effect is not SideEffect.AT_MOST_ONCE
            return begun, "" if repeatable else f"{call.tool} was called, and what it gave could not be kept."
        decision = await self._tools.decide_graph_tool(call.tool, call.args, begun.call)
        begun = replace(begun, rule=decision.rule)
        if not decision.is_allowed:
            denied_result = GraphToolResult(
                error=f"{call.tool} is not allowed: {decision.reason}", status=ToolStatus.DENIED
            )
        elif not await self._may_start(begun, call):
            denied_result = GraphToolResult(
                error=UNKNOWN_OUTCOME_MESSAGE.format(call.tool), status=ToolStatus.UNKNOWN_OUTCOME
            )
        else:
            self._tools.count_graph_tool_call(call.tool)
            return begun, ""
        await self._append(begun, call, denied_result, PLATFORM_LABEL)
        return begun, denied_result.error

    async def _may_start(self, begun: BegunToolCall, call: GraphToolCall) -> bool:
        """Declare a side effect. Return `False` if it was declared before a crash and must not be repeated."""
        if call.side_effect is SideEffect.PURE:
            return True
        args = redact_value(call.args)
        fresh = await self._journal.declare_side_effect(begun.call, call.tool, args, call.side_effect)
        return fresh or call.side_effect is SideEffect.IDEMPOTENT

    async def record_tool(self, begun: BegunToolCall, call: GraphToolCall, result: GraphToolResult) -> None:
        if result.status is ToolStatus.FAILED and call.side_effect is SideEffect.PURE:
            self._keys.release_ordinal(begun.call)
        if begun.step is None:
            self._tools.count_graph_tool_bytes(call.tool, _build_content(result))
            await self._append(
                begun, call, result, ProvenanceLabel(Origin(OriginKind.TOOL, call.tool), TrustLevel.UNTRUSTED)
            )

    async def _append(
        self, begun: BegunToolCall, call: GraphToolCall, result: GraphToolResult, provenance: ProvenanceLabel
    ) -> None:
        draft = _draft_tool_result(begun, call, result, provenance)
        self._tools.add_external_result(call.tool, draft.payload, provenance)
        await self._journal.append(JournalEntry(self._journal.mark_reexecuted(begun.call, draft)))

    @contextmanager
    def open_tool_scope(self, begun: BegunToolCall) -> Generator[None]:
        token = current_tool_call.set(render_call_key(begun.call.key))
        try:
            yield
        finally:
            current_tool_call.reset(token)

    def skip_nested_calls(self, begun: BegunToolCall) -> None:
        self._journal.recorded_calls.drop_nested_calls(begun.call)

    def abandon_tool(self, begun: BegunToolCall) -> None:
        self._keys.release_ordinal(begun.call)


def _build_content(result: GraphToolResult) -> dict[str, Any]:
    return {"result": result.result} if result.is_stored and not result.error else {}


def _draft_tool_result(
    begun: BegunToolCall, call: GraphToolCall, result: GraphToolResult, provenance: ProvenanceLabel
) -> StepDraft:
    payload: dict[str, Any] = {
        "tool": call.tool,
        "args": redact_value(call.args),
        "status": result.status,
        "rule": begun.rule,
        "content": _build_content(result),
        "message": result.error,
        "spans": [],
        "own": True,
        **provenance.to_json(),
    }
    repeatable = result.status is ToolStatus.FAILED and call.side_effect is SideEffect.PURE
    return StepDraft(
        StepKind.TOOL_RESULT,
        shorten_line(f"{call.tool}: {', '.join(str(value) for _, value in sorted(call.args.items()))}"),
        payload,
        label="failed" if result.error else call.tool,
        detail=result.error or result.text,
        ok=not result.error,
        ms=int(result.seconds * 1000),
        call_key=None if repeatable else begun.call.key,
    )
