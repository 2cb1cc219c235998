"""Stop reasons and limits, which are the same for every graph."""

from offing.sdk import EngineFailure, FailureKind, RunContext, StopReason

NO_MODEL_REASONS = frozenset(
    {
        StopReason.TOKEN_LIMIT,
        StopReason.SPEND_LIMIT,
        StopReason.TENANT_SPEND_LIMIT,
        StopReason.TIME_LIMIT,
        StopReason.PROVIDER_DOWN,
    }
)
"""Stop reasons after which the report is written without calling an engine."""
FINAL_ANSWER_REASONS = frozenset({StopReason.TURN_LIMIT, StopReason.FINISH_REQUESTED})
"""Stop reasons after which a graph of one agent calls it once more, only for an answer."""


def check_limits(ctx: RunContext, turn: int, *, begins_turn: bool = False) -> StopReason | None:
    """Return the reason why a node must not act. `None` means that it may continue.

    The turn limit is checked against the state's `turn`, because a turn that has begun is
    finished even if its node runs again.
    """
    reason = ctx.stop_reason()
    if reason is not None and reason is not StopReason.TURN_LIMIT:
        return reason
    return StopReason.TURN_LIMIT if begins_turn and turn >= ctx.run.budget.max_turns else None


def stop_reason_from_failure(failure: EngineFailure) -> StopReason:
    """Return the stop reason for a failed role call."""
    if failure.kind is FailureKind.BUDGET_EXHAUSTED:
        return StopReason(failure.stop_reason)
    return StopReason.INVALID_OUTPUT if failure.kind is FailureKind.INVALID_OUTPUT else StopReason.PROVIDER_DOWN
