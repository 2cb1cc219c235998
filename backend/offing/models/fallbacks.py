"""Fallbacks of an engine: the next engine answers if a provider fails after its retries."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from offing.core.model import (
    FALLBACK_FAILURES,
    EngineFailure,
    EngineResponse,
    FailedAttempt,
    Usage,
    list_chain,
    name_chain,
)
from offing.models.engine import RoleRequest

OutcomeT = TypeVar("OutcomeT", EngineResponse, EngineFailure, EngineResponse | EngineFailure)

AnswerOne = Callable[[RoleRequest], Awaitable[EngineResponse | EngineFailure]]


@dataclass(slots=True)
class _Progress:
    """What the engines of a chain have done so far."""

    attempts: tuple[FailedAttempt, ...] = ()
    usage: Usage = field(default_factory=Usage)
    failures: list[EngineFailure] = field(default_factory=list[EngineFailure])
    passed_over: tuple[FailedAttempt, ...] = ()
    slot_wait_ms: int = 0

    def add(self, name: str, outcome: EngineResponse | EngineFailure) -> None:
        named = tuple(replace(one, model=name) for one in _list_attempts(outcome))
        self.attempts, self.usage = self.attempts + named, self.usage + outcome.usage
        self.slot_wait_ms += outcome.slot_wait_ms
        if isinstance(outcome, EngineFailure):
            self.failures.append(outcome)
            self.passed_over += (replace(named[-1], text="", completion=None),)

    def complete(self, outcome: OutcomeT) -> OutcomeT:
        """Return the outcome with the attempts, the usage and the waits of all engines so far."""
        return replace(outcome, attempts=self.attempts, usage=self.usage, slot_wait_ms=self.slot_wait_ms)


async def answer_in_order(
    request: RoleRequest, answer_one: AnswerOne, clock: Callable[[], float]
) -> EngineResponse | EngineFailure:
    """Return the answer of the first engine of the chain whose provider does not fail.

    It carries the attempts and the usage of all engines. If all providers fail, the failure is that of the role's own
    engine, and its message names the others.
    """
    began, names, done = clock(), name_chain(request.engine_config), _Progress()
    for position, engine_config in enumerate(list_chain(request.engine_config)):
        seconds = request.deadline_seconds
        part = replace(
            request,
            engine_config=engine_config,
            deadline_seconds=None if seconds is None else max(0.0, seconds - (clock() - began)),
            earlier_attempts=len(done.attempts),
            has_fallback=position + 1 < len(names),
        )
        outcome = await answer_one(part)
        done.add(names[position], outcome)
        whole = done.complete(outcome)
        if isinstance(whole, EngineResponse):
            return replace(whole, fallback=names[position], passed_over=done.passed_over) if position else whole
        if whole.kind not in FALLBACK_FAILURES:
            return whole
    message = _describe_failures(names, done.failures)
    return replace(done.complete(done.failures[0]), message=message)


def _list_attempts(outcome: EngineResponse | EngineFailure) -> Sequence[FailedAttempt]:
    """Return the failed attempts. A failure without a request, for example without a key, counts as one."""
    if isinstance(outcome, EngineFailure) and not outcome.attempts:
        return (FailedAttempt(outcome.kind, outcome.message),)
    return outcome.attempts


def _describe_failures(names: Sequence[str], failures: Sequence[EngineFailure]) -> str:
    others = zip(names[1:], failures[1:], strict=True)
    return " ".join((failures[0].message, *(f"Fallback {name}: {failure.message}" for name, failure in others)))
