"""Restricting what a run's tools may do while it is under way.

A proposal may be a model's, so it holds only where it is proved to allow no more. The step and the policy that it
changes are stored together, and a run that continues after a loss has the narrower one.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from offing.core.policy import Policy, proposed
from offing.core.step import StepDraft, StepKind
from offing.kernel.call_key import Call
from offing.kernel.journal import Journal
from offing.kernel.recorded_calls import NOTES
from offing.kernel.store import Entry, ToolPolicyRecord
from offing.kernel.tool_executor import ToolExecutor


async def restrict(
    journal: Journal, executor: ToolExecutor, rules: Sequence[Mapping[str, Any]], call: Call, turn: int
) -> str:
    """Record a proposal, and put it in force if it may be. Return why not; empty means that it is in force."""
    if step := journal.take(call, NOTES):
        return str(step.payload["refused"])
    journal.check_new(call)
    async with executor.restricting:  # two proposals at once must not undo each other
        found = proposed(executor.policy, rules)
        refused = found if isinstance(found, str) else ""
        payload = {"narrow": [dict(rule) for rule in rules], "refused": refused}
        title = "What its tools may do was not narrowed" if refused else "What its tools may do was narrowed"
        draft = StepDraft(StepKind.NOTE, title, payload, detail=refused, ok=not refused, turn=turn, key=call.key)
        await journal.append(Entry(draft, ToolPolicyRecord(found) if isinstance(found, Policy) else None))
        if isinstance(found, Policy):
            executor.policy = found
    return refused
