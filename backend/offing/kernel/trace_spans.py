"""Trace spans of nodes, role calls and tool calls. They hold names and counts only, never content.

Nodes are seen through LangGraph's callbacks, which are installed only while spans are recorded.
"""

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler
from opentelemetry import trace
from opentelemetry.trace import Span

from offing.core.model import Answer, EngineChoice, EngineFailure
from offing.kernel.call_key import Call
from offing.telemetry import attributes as names
from offing.telemetry.tracing import mark_failed, span

NodePlace = tuple[int, str]
"""Superstep and task path, as in a call key."""


class NodeSpans(AsyncCallbackHandler):
    """One span a node. Calls made inside find theirs by the place they are in."""

    def __init__(self) -> None:
        self._open: dict[UUID, tuple[NodePlace, Span]] = {}
        self._at: dict[NodePlace, Span] = {}

    def at(self, place: NodePlace) -> Span:
        """The span of the node that runs there; the current one when nodes are not recorded."""
        return self._at.get(place) or trace.get_current_span()

    async def on_chain_start(
        self,
        serialized: dict[str, Any],
        inputs: dict[str, Any],
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        known = metadata or {}
        if "langgraph_node" not in known or known["langgraph_node"] != more.get("name"):
            return
        place = (int(known["langgraph_step"]), "/".join(map(str, known["langgraph_path"])))
        node = str(known["langgraph_node"])
        opened = trace.get_tracer("offing").start_span(f"node {node}", attributes={names.NODE: node})
        self._open[run_id], self._at[place] = (place, opened), opened

    async def on_chain_end(self, outputs: dict[str, Any], *, run_id: UUID, **_: Any) -> None:
        self._close(run_id)

    async def on_chain_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        self._close(run_id, error)

    def _close(self, run_id: UUID, error: BaseException | None = None) -> None:
        if run_id not in self._open:
            return
        place, opened = self._open.pop(run_id)
        self._at.pop(place, None)
        if error is not None:
            mark_failed(opened, type(error).__name__)
        opened.end()


class CallSpans:
    """Trace spans of calls, each within that of its node."""

    def __init__(self) -> None:
        self.nodes: NodeSpans | None = None
        """`None` means that nothing is recorded."""

    def of_role(self, call: Call, role: str, choice: EngineChoice, turn: int) -> AbstractContextManager[Span]:
        return role_span(self._node(call), role, choice, turn)

    def of_tool(self, call: Call, tool: str, turn: int) -> AbstractContextManager[Span]:
        return tool_span(self._node(call), tool, turn)

    def _node(self, call: Call) -> Span:
        return self.nodes.at(call.path) if self.nodes else trace.get_current_span()


@contextmanager
def role_span(parent: Span, role: str, choice: EngineChoice, turn: int) -> Generator[Span]:
    """The span of a role call. Where nothing is recorded, the parent, which costs nothing."""
    if not parent.is_recording():
        yield parent
        return
    given = {
        names.OPERATION: names.CHAT,
        names.ROLE: role,
        names.ENGINE: choice.engine,
        names.REQUEST_MODEL: choice.model,
        names.REQUEST_MAX_TOKENS: choice.max_tokens,
        names.TURN: turn,
    }
    with trace.use_span(parent), span(f"role {role}", given) as opened:
        yield opened


def answered(opened: Span, answer: Answer | EngineFailure) -> None:
    """What came of a role call."""
    opened.set_attributes(names.usage_attributes(answer.usage))
    if isinstance(answer, EngineFailure):
        mark_failed(opened, answer.kind)


@contextmanager
def tool_span(parent: Span, tool: str, turn: int) -> Generator[Span]:
    """The span of a tool call. Where nothing is recorded, the parent, which costs nothing."""
    if not parent.is_recording():
        yield parent
        return
    given = {names.OPERATION: names.EXECUTE_TOOL, names.TOOL_NAME: tool, names.TURN: turn}
    with trace.use_span(parent), span(f"tool {tool}", given) as opened:
        yield opened
