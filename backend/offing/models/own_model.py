"""Engine `own`: the chat model that a LangGraph graph brings along answers its own call.

The model is found, not configured: the code that intercepts its call puts it here for the time of the role call. With
another engine in the run's configuration, that engine answers in its place.
"""

from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pydantic import BaseModel

from offing.core.model import EngineFailure, EngineResponse, FailureKind, Usage
from offing.models.engine import RoleRequest
from offing.models.model_table import find_model_price
from offing.models.reservation import reserve_usage

OWN_ENGINE = "own"
"""Name of the engine."""


@dataclass(frozen=True, slots=True)
class OwnAnswer:
    """What the graph's own model answered."""

    output: BaseModel
    text: str
    """The answer as it is recorded."""
    model: str
    """Name of the model, as its provider reports it. Empty means that it is unknown."""
    prompt_tokens: int = 0
    completion_tokens: int = 0


OwnModelCall = Callable[[], Awaitable[OwnAnswer]]

_current_call: ContextVar[OwnModelCall | None] = ContextVar("offing_own_model_call", default=None)


@contextmanager
def use_own_model(call: OwnModelCall) -> Generator[None]:
    """Answer role calls of the engine `own` with this model call while the context is open."""
    token = _current_call.set(call)
    try:
        yield
    finally:
        _current_call.reset(token)


def has_own_model() -> bool:
    """Return whether the current role call is one of the graph's own model."""
    return _current_call.get() is not None


class OwnModelEngine:
    """Engine that makes the graph's own model call."""

    async def answer(self, request: RoleRequest) -> EngineResponse | EngineFailure:
        """Return the model's answer. An error of the model becomes a failure with the error's text.

        The graph's own settings decide the length of an answer, so nothing can be reserved for it: a call that begins
        within the limits may exceed them, and the next call is refused.
        """
        call = _current_call.get()
        if call is None:
            message = f"The role {request.role.name!r} has no model of its own here. Use another engine."
            return EngineFailure(FailureKind.UNKNOWN_ENGINE, message)
        async with reserve_usage(request.meter, 1, Decimal()) as reservation:
            if reservation.denied_by is not None:
                message = "No budget left for this call."
                return EngineFailure(FailureKind.BUDGET_EXHAUSTED, message, stop_reason=reservation.denied_by)
            try:
                answer = await call()
            except Exception as error:
                return EngineFailure(FailureKind.MODEL_UNAVAILABLE, f"{type(error).__name__}: {error}")
            reservation.usage = compute_usage(answer)
        return EngineResponse(
            output=answer.output,
            text=answer.text,
            model=answer.model or OWN_ENGINE,
            messages=request.role.render(request.inputs),
            usage=reservation.usage,
        )


def compute_usage(answer: OwnAnswer) -> Usage:
    """Return the usage with its cost by the model table, which may not know the model."""
    price = find_model_price(answer.model)
    if price.input_usd is None or price.output_usd is None:
        return Usage(answer.prompt_tokens, answer.completion_tokens, priced=False)
    cost = answer.prompt_tokens * price.input_usd + answer.completion_tokens * price.output_usd
    return Usage(answer.prompt_tokens, answer.completion_tokens, Decimal(str(cost)) / 1_000_000)


def create_engine(_env: Mapping[str, str]) -> Any:
    """Create the engine. It reads no environment variables: the graph's model has its own keys."""
    return OwnModelEngine()
