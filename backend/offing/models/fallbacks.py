"""Fallbacks of an engine: the next model answers if a provider fails after its retries."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from offing.core.model import FALLBACK_FAILURES, EngineFailure, EngineResponse, FailedAttempt, Usage, list_chain
from offing.models.engine import RoleRequest

AnswerOne = Callable[[RoleRequest], Awaitable[EngineResponse | EngineFailure]]


async def answer_in_order(
    request: RoleRequest, answer_one: AnswerOne, clock: Callable[[], float]
) -> EngineResponse | EngineFailure:
    """Return the answer of the first model of the chain whose provider does not fail.

    It carries the attempts and the usage of all models. If all providers fail, the failure is that of the role's own
    engine, and its message names the others.
    """
    began, chain = clock(), list_chain(request.engine_config)
    attempts, usage, failures = tuple[FailedAttempt, ...](), Usage(), list[EngineFailure]()
    for position, engine_config in enumerate(chain):
        left = None if request.deadline_seconds is None else max(0.0, request.deadline_seconds - (clock() - began))
        part = replace(request, engine_config=engine_config, deadline_seconds=left, earlier_attempts=len(attempts))
        outcome = await answer_one(part)
        made = outcome.attempts
        if not made and isinstance(outcome, EngineFailure):  # no request was possible, for example without a key
            made = (FailedAttempt(outcome.kind, outcome.message),)
        attempts += tuple(replace(one, model=engine_config.model) for one in made)
        usage += outcome.usage
        if isinstance(outcome, EngineResponse):
            return replace(outcome, attempts=attempts, usage=usage, fallback=engine_config.model if position else "")
        if outcome.kind not in FALLBACK_FAILURES:
            return replace(outcome, attempts=attempts, usage=usage)
        failures.append(outcome)
    others = zip(chain[1:], failures[1:], strict=True)
    message = " ".join((failures[0].message, *(f"Fallback {one.model}: {why.message}" for one, why in others)))
    return replace(failures[0], message=message, attempts=attempts, usage=usage)
