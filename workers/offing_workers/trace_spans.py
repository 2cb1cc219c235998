"""The trace span of a slice."""

from collections.abc import Generator
from contextlib import contextmanager

from offing.core.run import FencingToken
from offing.kernel.trace_spans import NodeSpans
from offing.telemetry import attributes as names
from offing.telemetry.tracing import continue_trace, open_span


@contextmanager
def open_slice_span(fencing_token: FencingToken, graph: str, traceparent: str | None) -> Generator[NodeSpans | None]:
    """Open the trace span of a slice, with `traceparent` as its parent.

    `None` means that nothing is recorded.
    """
    attributes = {
        names.RUN_ID: str(fencing_token.run_id),
        names.TENANT_ID: str(fencing_token.tenant_id),
        names.GRAPH: graph,
        names.FENCING_TOKEN: fencing_token.number,
        names.OPERATION_NAME: names.INVOKE_AGENT,
        names.AGENT_NAME: graph,
        names.CONVERSATION_ID: str(fencing_token.thread_id),
    }
    with continue_trace(traceparent), open_span(f"slice {graph}", attributes) as opened:
        yield NodeSpans() if opened.is_recording() else None
