"""Narrowing what a run's tools may do while it is under way: the only home of how a proposal comes into force.

A proposal may be a model's, so it is judged like any text of one: it holds only where it is proved to allow no more. The
step and the policy that it changes are stored together, and a run that goes on after a loss has the narrower one.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from offing.core.policy import Policy, Rule, Unproven, narrowed
from offing.core.step import Step, StepDraft, StepKind
from offing.storage import tool_policies
from offing.storage.pool import Connection
from offing_workers.recorder import Recorder
from offing_workers.toolbelt import Toolbelt

RULES = TypeAdapter(tuple[Rule, ...])
MOST_RULES = 100
"""Of one proposal."""


def judged(policy: Policy | None, rules: Sequence[Mapping[str, Any]]) -> Policy | str:
    """The policy with a proposal in force, or why it stays as it is."""
    if policy is None:
        return "The run has no valid tool policy; everything is denied already."
    if len(rules) > MOST_RULES:
        return f"These are more than {MOST_RULES} rules."
    try:
        proposed = RULES.validate_python(tuple(dict(rule) for rule in rules))
        found = narrowed(policy, proposed)
    except ValidationError as error:
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return f"{found.rule}: {found.problem}" if isinstance(found, Unproven) else found


async def narrow(recorder: Recorder, belt: Toolbelt, rules: Sequence[Mapping[str, Any]], turn: int) -> str:
    """Record a proposal and put it in force if it may be. Empty: it is in force. Else why not."""
    key = recorder.next_key("narrow", [dict(rule) for rule in rules])
    if step := recorder.recorded(key, frozenset({StepKind.NOTE})):
        return str(step.payload["refused"])
    async with belt.narrowing:  # two proposals at once must not undo each other
        found = judged(belt.policy, rules)
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
