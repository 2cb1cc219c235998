"""Calls of a graph's own tools in the journal: `offing.langchain.tool_calls.ToolJournal` over it.

They are judged by no tool policy; what they gave is untrusted, since the platform knows nothing of where it came from.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from offing.core.provenance import Kind, Label, Origin, Trust
from offing.core.step import Step, StepDraft, StepKind, shortened
from offing.core.tool import ToolStatus
from offing.kernel.call_key import Call, CallKeys
from offing.kernel.journal import Journal
from offing.kernel.recorded_calls import key_text
from offing.kernel.store import Entry
from offing.kernel.tool_executor import ToolExecutor
from offing.langchain.tool_calls import Asked, Given
from offing.telemetry.redaction import redact_value, without_secrets

tool_call: ContextVar[str] = ContextVar("offing_tool_call", default="")
"""The key of the tool call whose work makes the current call, as text. Empty: the node makes it itself."""

OBSERVATIONS = frozenset({StepKind.TOOL})


@dataclass(frozen=True, slots=True)
class Begun:
    """A call that has its place. `step` is what is on record for it; None: nothing."""

    call: Call
    step: Step | None


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
        return Given(content.get("result"), kept="result" in content)

    async def end_tool(self, begun: Begun, asked: Asked, given: Given) -> None:
        if given.error:
            self._keys.give_back(begun.call)
        if begun.step is None:
            await self._journal.append(Entry(self._draft(begun.call, asked, given)))

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

    def _draft(self, call: Call, asked: Asked, given: Given) -> StepDraft:
        label = Label(Origin(Kind.TOOL, asked.tool), Trust.UNTRUSTED)
        payload: dict[str, Any] = {
            "tool": asked.tool,
            "args": redact_value(asked.args),
            "status": ToolStatus.FAILED if given.error else ToolStatus.OK,
            "rule": "",
            "content": {"result": given.result} if given.kept and not given.error else {},
            "message": given.error,
            "spans": [],
            "own": True,
            **label.as_json(),
        }
        self._tools.expect(asked.tool, payload, label)
        return StepDraft(
            StepKind.TOOL,
            shortened(f"{asked.tool}: {', '.join(str(value) for _, value in sorted(asked.args.items()))}"),
            payload,
            label="failed" if given.error else asked.tool,
            detail=given.error or given.text,
            ok=not given.error,
            ms=int(given.seconds * 1000),
            key=None if given.error else call.key,
        )
