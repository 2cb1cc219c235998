"""How a LangGraph graph stops before its own end: what a chat model raises, and what that means for the run."""

from langgraph.errors import GraphBubbleUp

from offing.core.errors import OffingError
from offing.core.model import FailureKind
from offing.core.run import StopReason

REASONS = {
    FailureKind.INVALID_OUTPUT: StopReason.INVALID_OUTPUT,
    FailureKind.CONTEXT_TOO_LONG: StopReason.CONTEXT_LIMIT,
}


class RunStopped(GraphBubbleUp):
    """A limit of the run was reached, or a person asked to stop. No error: tool nodes and retries let it through."""

    def __init__(self, reason: StopReason) -> None:
        self.reason = reason
        super().__init__(f"The run stops: {reason.replace('_', ' ')}.")


class ModelFailed(OffingError):
    """An engine gave no usable answer. A graph may catch it, fall back or try again; uncaught it ends the run."""

    code = "model_failed"

    def __init__(self, role: str, kind: FailureKind, message: str) -> None:
        self.kind = kind
        super().__init__(f"{role}: {message}")

    @property
    def reason(self) -> StopReason:
        return REASONS.get(self.kind, StopReason.PROVIDER_DOWN)
