"""Exceptions with which a chat model stops a LangGraph graph, and the stop reasons of the run."""

from langgraph.errors import GraphBubbleUp

from offing.core.errors import OffingError
from offing.core.model import FailureKind
from offing.core.run import StopReason

STOP_REASONS = {
    FailureKind.INVALID_OUTPUT: StopReason.INVALID_OUTPUT,
    FailureKind.CONTEXT_TOO_LONG: StopReason.CONTEXT_LIMIT,
}


class RunStopped(GraphBubbleUp):
    """The run reached a limit, or a person requested it to stop.

    It is control flow and not an error, so tool nodes and retries let it pass.
    """

    def __init__(self, stop_reason: StopReason) -> None:
        self.reason = stop_reason
        super().__init__(f"The run stops: {stop_reason.replace('_', ' ')}.")


class ModelCallError(OffingError):
    """An engine gave no usable response.

    A graph may catch it to fall back or retry. If it is not caught, the run ends.
    """

    code = "model_failed"

    def __init__(self, role: str, kind: FailureKind, message: str) -> None:
        self.kind = kind
        super().__init__(f"{role}: {message}")

    @property
    def stop_reason(self) -> StopReason:
        return STOP_REASONS.get(self.kind, StopReason.PROVIDER_DOWN)
