"""When a flow stops collecting, and why: the same rules for every flow."""

from collections.abc import Awaitable, Callable
from typing import Any

from offing.sdk import EngineFailure, FailureKind, RunContext, StopReason

NO_MODEL = frozenset(
    {
        StopReason.TOKEN_LIMIT,
        StopReason.SPEND_LIMIT,
        StopReason.TENANT_SPEND_LIMIT,
        StopReason.TIME_LIMIT,
        StopReason.PROVIDER_DOWN,
    }
)
"""Reasons after which the report is written without asking an engine."""


def halted(ctx: RunContext, turn: int, *, begins_turn: bool = False) -> StopReason | None:
    """Why a node should do nothing. None: go on.

    The turn limit is read from the state's `turn`, because a turn that has begun is finished, also when its node runs
    again.
    """
    reason = ctx.stop()
    if reason is not None and reason is not StopReason.TURN_LIMIT:
        return reason
    return StopReason.TURN_LIMIT if begins_turn and turn >= ctx.run.budget.turns else None


def reason_of(failure: EngineFailure) -> StopReason:
    """A failed role call as the reason to stop collecting."""
    if failure.kind is FailureKind.OUT_OF_BUDGET:
        return StopReason(failure.stop)
    return StopReason.INVALID_OUTPUT if failure.kind is FailureKind.INVALID_OUTPUT else StopReason.PROVIDER_DOWN


def unless_stopped(following: str, last: str) -> Callable[[Any], Awaitable[str]]:
    """A router: on to `following`, or to `last` once the state has a reason to stop.

    Asynchronous, because LangGraph runs a router that is not on another thread.
    """

    async def next_node(state: Any) -> str:
        return last if state["stop"] else following

    return next_node
