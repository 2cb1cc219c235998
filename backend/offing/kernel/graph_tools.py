"""Calls of a graph's own tools in the journal: `offing.langchain.tool_calls.ToolJournal` over it.

Rules of the tool policy that name them hold. What they gave is untrusted, since the platform knows nothing of where it
came from.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from offing.core.provenance import PLATFORM, Kind, Label, Origin, Trust
from offing.core.step import Step, StepDraft, StepKind, shortened
from offing.core.tool import Effect, ToolStatus
from offing.kernel.call_key import Call, CallKeys
from offing.kernel.journal import Journal
from offing.kernel.recorded_calls import OBSERVATIONS, key_text
from offing.kernel.store import Entry
from offing.kernel.tool_executor import ToolExecutor
from offing.langchain.tool_calls import Asked, Given
from offing.telemetry.redaction import redact_value, without_secrets

tool_call: ContextVar[str] = ContextVar("offing_tool_call", default="")
"""The key of the tool call whose work makes the current call, as text. Empty: the node makes it itself."""


LOST = "A worker was lost while {} ran; whether it had its effect is not known, and it is not repeated."


@dataclass(frozen=True, slots=True)
class Begun:
    """A call that has its place. `step` is what is on record for it; None: nothing."""

    call: Call
    step: Step | None
    rule: str = ""
    """The rule of the tool policy that decided. Empty: none is about the tool."""


class GraphTools:
    """One epoch's."""

    def __init__(self, keys: CallKeys, journal: Journal, tools: ToolExecutor) -> None:
        self._keys, self._journal, self._tools = keys, journal, tools

    def begin_tool(self, asked: Asked) -> Begun:
        call = self._keys.next(*without_secrets([asked.tool, asked.args]))
        return Begun(call, self._journal.take(call, OBSERVATIONS))

    def recorded_tool(self, begun: Begun) -> Given | None:
        if begun.step is None:
            return None
        content: dict[str, Any] = begun.step.payload["content"]
        return Given(content.get("result"), "result" in content, error=begun.step.payload["message"])

    async def start_tool(self, begun: Begun, asked: Asked) -> tuple[Begun, str]:
        if begun.step is not None:
            repeatable = asked.effect is not Effect.AT_MOST_ONCE
            return begun, "" if repeatable else f"{asked.tool} was called, and what it gave could not be kept."
        decision = await self._tools.decide_graph_tool(asked.tool, asked.args, begun.call)
        begun = replace(begun, rule=decision.rule)
        if not decision.allowed:
            refusal = Given(error=f"{asked.tool} is not allowed: {decision.reason}", status=ToolStatus.DENIED)
        elif not await self._may_start(begun, asked):
            refusal = Given(error=LOST.format(asked.tool), status=ToolStatus.UNKNOWN_OUTCOME)
        else:
            self._tools.begin_graph_tool(asked.tool)
            return begun, ""
        await self._append(begun, asked, refusal, PLATFORM)
        return begun, refusal.error

    async def _may_start(self, begun: Begun, asked: Asked) -> bool:
        """Declare a side effect. `False`: it was declared before a loss and must not happen twice."""
        if asked.effect is Effect.PURE:
            return True
        args = redact_value(asked.args)
        fresh = await self._journal.declare_effect(begun.call, asked.tool, args, asked.effect)
        return fresh or asked.effect is Effect.IDEMPOTENT

    async def end_tool(self, begun: Begun, asked: Asked, given: Given) -> None:
        if given.status is ToolStatus.FAILED and asked.effect is Effect.PURE:
            self._keys.give_back(begun.call)
        if begun.step is None:
            self._tools.end_graph_tool(asked.tool, _content(given))
            await self._append(begun, asked, given, Label(Origin(Kind.TOOL, asked.tool), Trust.UNTRUSTED))

    async def _append(self, begun: Begun, asked: Asked, given: Given, label: Label) -> None:
        draft = _draft(begun, asked, given, label)
        self._tools.expect(asked.tool, draft.payload, label)
        await self._journal.append(Entry(self._journal.note_anew(begun.call, draft)))

    @contextmanager
    def within_tool(self, begun: Begun) -> Generator[None]:
        token = tool_call.set(key_text(begun.call.key))
        try:
            yield
        finally:
            tool_call.reset(token)

    def skip_tool(self, begun: Begun) -> None:
        self._journal.recorded.drop_parts(begun.call)

    def leave_tool(self, begun: Begun) -> None:
        self._keys.give_back(begun.call)


def _content(given: Given) -> dict[str, Any]:
    return {"result": given.result} if given.kept and not given.error else {}


def _draft(begun: Begun, asked: Asked, given: Given, label: Label) -> StepDraft:
    payload: dict[str, Any] = {
        "tool": asked.tool,
        "args": redact_value(asked.args),
        "status": given.status,
        "rule": begun.rule,
        "content": _content(given),
        "message": given.error,
        "spans": [],
        "own": True,
        **label.as_json(),
    }
    repeatable = given.status is ToolStatus.FAILED and asked.effect is Effect.PURE
    return StepDraft(
        StepKind.TOOL,
        shortened(f"{asked.tool}: {', '.join(str(value) for _, value in sorted(asked.args.items()))}"),
        payload,
        label="failed" if given.error else asked.tool,
        detail=given.error or given.text,
        ok=not given.error,
        ms=int(given.seconds * 1000),
        key=None if repeatable else begun.call.key,
    )
