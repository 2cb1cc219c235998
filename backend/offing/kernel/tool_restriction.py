"""Restriction of the tool policy of a running run.

A proposal may come from a model, so it takes effect only if it provably allows no more. The step
and the new tool policy are stored together, so that the restriction survives a crash.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from offing.core.step import StepDraft, StepKind
from offing.core.tool_policy import ToolPolicy, parse_restriction
from offing.kernel.call_key import NodeCall
from offing.kernel.journal import Journal
from offing.kernel.recorded_calls import NOTE_KINDS
from offing.kernel.run_store import JournalEntry, ToolPolicyAttachment
from offing.kernel.tool_executor import ToolExecutor


async def restrict_tools(
    journal: Journal, executor: ToolExecutor, rules: Sequence[Mapping[str, Any]], call: NodeCall, turn: int
) -> str:
    """Record a proposed restriction, and apply it if it is valid.

    Return the reason for a rejection. Empty means that the restriction is in effect.
    """
    if step := journal.take_recorded(call, NOTE_KINDS):
        return str(step.payload["rejected"])
    journal.check_new(call)
    async with executor.restriction_lock:  # parallel proposals must not overwrite each other
        restricted = parse_restriction(executor.tool_policy, rules)
        rejected = restricted if isinstance(restricted, str) else ""
        payload = {"narrow": [dict(rule) for rule in rules], "rejected": rejected}
        title = "Restriction of the tool policy rejected" if rejected else "Tool policy restricted"
        draft = StepDraft(StepKind.NOTE, title, payload, detail=rejected, ok=not rejected, turn=turn, call_key=call.key)
        await journal.append(
            JournalEntry(draft, ToolPolicyAttachment(restricted) if isinstance(restricted, ToolPolicy) else None)
        )
        if isinstance(restricted, ToolPolicy):
            executor.tool_policy = restricted
    return rejected
