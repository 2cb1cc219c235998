"""Trace spans of nodes, role calls and tool calls. They contain names and counts, never content.

Nodes are observed through LangGraph's callbacks, which are installed only while spans are recorded.
"""

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler
from opentelemetry import trace
from opentelemetry.trace import Span

from offing.core.model import EngineConfig, EngineFailure, EngineResponse
from offing.kernel.call_key import NodeCall
from offing.models.model_limits import get_completion_limit
from offing.telemetry import attributes as names
from offing.telemetry.tracing import mark_failed, open_span

NodePath = tuple[int, str]
"""Superstep and task path, as in a call key."""


class NodeSpans(AsyncCallbackHandler):
    """One trace span per node. Calls inside a node find its span by their call path."""

    def __init__(self) -> None:
        self._open: dict[UUID, tuple[NodePath, Span]] = {}
        self._span_by_path: dict[NodePath, Span] = {}

    def get_span(self, path: NodePath) -> Span:
        """Return the span of the node at this path, or the current span if nodes are not recorded."""
        return self._span_by_path.get(path) or trace.get_current_span()

    async def on_chain_start(
        self,
        serialized: dict[str, Any],
        inputs: dict[str, Any],
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        values = metadata or {}
        if "langgraph_node" not in values or values["langgraph_node"] != more.get("name"):
            return
        position = (int(values["langgraph_step"]), "/".join(map(str, values["langgraph_path"])))
        node = str(values["langgraph_node"])
        opened = trace.get_tracer("offing").start_span(f"node {node}", attributes={names.NODE: node})
        self._open[run_id], self._span_by_path[position] = (position, opened), opened

    async def on_chain_end(self, outputs: dict[str, Any], *, run_id: UUID, **_: Any) -> None:
        self._close(run_id)

    async def on_chain_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        self._close(run_id, error)

    def _close(self, run_id: UUID, error: BaseException | None = None) -> None:
        if run_id not in self._open:
            return
        position, opened = self._open.pop(run_id)
        self._span_by_path.pop(position, None)
        if error is not None:
            mark_failed(opened, type(error).__name__)
        opened.end()


class CallSpans:
    """Trace spans of calls, each a child of the span of its node."""

    def __init__(self) -> None:
        self.node_spans: NodeSpans | None = None
        """`None` means that nothing is recorded."""

    def open_role_span(
        self, call: NodeCall, role: str, engine_config: EngineConfig, turn: int
    ) -> AbstractContextManager[Span]:
        return trace_role_call(self._get_node_span(call), role, engine_config, turn)

    def open_tool_span(self, call: NodeCall, tool: str, turn: int) -> AbstractContextManager[Span]:
        return trace_tool_call(self._get_node_span(call), tool, turn)

    def _get_node_span(self, call: NodeCall) -> Span:
        return self.node_spans.get_span(call.call_path) if self.node_spans else trace.get_current_span()


@contextmanager
def trace_role_call(parent: Span, role: str, engine_config: EngineConfig, turn: int) -> Generator[Span]:
    """Open the trace span of a role call. If nothing is recorded, yield the parent."""
    if not parent.is_recording():
        yield parent
        return
    attributes = {
        names.OPERATION_NAME: names.CHAT,
        names.ROLE: role,
        names.ENGINE: engine_config.engine,
        names.REQUEST_MODEL: engine_config.model,
        names.REQUEST_MAX_TOKENS: get_completion_limit(engine_config),
        names.TURN: turn,
    }
    with trace.use_span(parent), open_span(f"role {role}", attributes) as opened:
        yield opened


def set_response_attributes(span: Span, response: EngineResponse | EngineFailure) -> None:
    """Set the span attributes of the response to a role call."""
    span.set_attributes(names.build_usage_attributes(response.usage))
    if isinstance(response, EngineFailure):
        mark_failed(span, response.kind)
    elif response.first_text_ms is not None:
        span.set_attribute(names.TIME_TO_FIRST_CHUNK, response.first_text_ms / 1000)


@contextmanager
def trace_tool_call(parent: Span, tool: str, turn: int) -> Generator[Span]:
    """Open the trace span of a tool call. If nothing is recorded, yield the parent."""
    if not parent.is_recording():
        yield parent
        return
    attributes = {names.OPERATION_NAME: names.EXECUTE_TOOL, names.TOOL_NAME: tool, names.TURN: turn}
    with trace.use_span(parent), open_span(f"tool {tool}", attributes) as opened:
        yield opened
