"""Narrowing what a run's tools may do while it is under way: the only home of how a proposal comes into force.

A proposal may be a model's, so it is judged like any text of one: it holds only where it is proved to allow no more.
The step and the policy that it changes are stored together, and a run that goes on after a loss has the narrower one.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from offing.core.policy import Policy, proposed
from offing.core.step import CallKey, Step, StepDraft, StepKind
from offing.storage import tool_policies
from offing.storage.pool import Connection
from offing_workers.recorder import Recorder
from offing_workers.toolbelt import Toolbelt


async def narrow(recorder: Recorder, belt: Toolbelt, rules: Sequence[Mapping[str, Any]], turn: int) -> str:
    """Record a proposal and put it in force if it may be. Empty: it is in force. Else why not."""
    return await narrow_at(recorder, belt, rules, recorder.next_key("narrow", [dict(rule) for rule in rules]), turn)


async def narrow_at(
    recorder: Recorder, belt: Toolbelt, rules: Sequence[Mapping[str, Any]], key: CallKey, turn: int
) -> str:
    """As `narrow`, under a key."""
    if step := recorder.recorded(key, frozenset({StepKind.NOTE})):
        return str(step.payload["refused"])
    async with belt.narrowing:  # two proposals at once must not undo each other
        found = proposed(belt.policy, rules)
        refused = found if isinstance(found, str) else ""
        payload = {"narrow": [dict(rule) for rule in rules], "refused": refused}
        title = "What its tools may do was not narrowed" if refused else "What its tools may do was narrowed"
        draft = StepDraft(StepKind.NOTE, title, payload, detail=refused, ok=not refused, turn=turn, key=key)

        async def store(connection: Connection, new: list[Step]) -> None:
            if isinstance(found, Policy):
                await tool_policies.narrow(connection, recorder.fence.run, found)

        await recorder.append(draft, also=store)
        if isinstance(found, Policy):
            belt.policy = found
    return refused
