"""The trace span of a slice."""

from collections.abc import Generator
from contextlib import contextmanager

from offing.core.run import Fence
from offing.kernel.trace_spans import NodeSpans
from offing.telemetry import attributes as names
from offing.telemetry.tracing import continued, span


@contextmanager
def slice_span(fence: Fence, graph: str, parent: str | None) -> Generator[NodeSpans | None]:
    """Open the span of a slice, child of the request that submitted its run. `None` means that nothing is recorded."""
    given = {
        names.RUN: str(fence.run),
        names.TENANT: str(fence.tenant),
        names.GRAPH: graph,
        names.FENCE: fence.number,
        names.OPERATION: names.INVOKE_AGENT,
        names.AGENT_NAME: graph,
        names.CONVERSATION: str(fence.thread),
    }
    with continued(parent), span(f"slice {graph}", given) as opened:
        yield NodeSpans() if opened.is_recording() else None
