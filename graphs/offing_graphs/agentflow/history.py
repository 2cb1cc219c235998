"""The earlier steps of a run in the prompts of AgentFlow's roles.

In a known window that holds everything, each step stands with the passages that it brought, oldest first. A prompt
then begins with the prompt of the turn before, which a provider can reuse. Where something must be left out, the steps
and the passages that fit the question best are chosen anew in each turn.
"""

from collections.abc import Iterator, Sequence

from offing.sdk import shorten_line, wrap_untrusted
from offing_graphs.agentflow.schemas import PlannerInput, VerifierInput
from offing_graphs.shared.memory import MAX_RECORDS
from offing_graphs.shared.prompt_parts import render_json, render_passage
from offing_graphs.shared.prompt_room import MAX_MEMORY_TOKENS, MEMORY_FRACTION, Allowance, PromptRoom
from offing_graphs.shared.schemas import ChildOutcome, MemoryRecord, RetrievedPassage
from offing_graphs.shared.source_names import shorten_source_ids

MAX_FULL_RECORDS = 8
"""Number of the latest records that are shown in full. Older records take one line each."""
MAX_RECORD_LINES = 40
"""Maximum number of older records that are shown in one line."""
MAX_MEMORY_CHARS = 12_000
"""Maximum number of characters of all records together."""
FULL_RECORDS_FRACTION = 0.75
"""Fraction of the memory's part that records in full may take, where the window is known."""


def render_history(inputs: PlannerInput | VerifierInput, allowance: Allowance) -> tuple[str, ...] | None:
    """Render every step with the passages that it was the first to bring.

    `None` means that the window is unknown, or that something must be left out.
    """
    if not allowance.in_tokens or inputs.left_out_passages or len(inputs.memory) >= MAX_RECORDS:
        return None
    parts = tuple(_list_history(inputs.memory, inputs.evidence))
    return parts if sum(map(allowance.measure, parts)) <= allowance.max_size else None


def _list_history(memory: Sequence[MemoryRecord], evidence: Sequence[RetrievedPassage]) -> Iterator[str]:
    passages = {passage.id: passage for passage in evidence}
    of_steps = {id for record in memory for id in record.evidence}
    for passage in evidence:
        if passage.id not in of_steps:  # of an earlier question of the thread
            yield render_passage(passage)
    earlier_ids: set[str] = set()
    for record in memory:
        yield _render_step(record, evidence)
        for id in record.evidence:
            if id in passages and id not in earlier_ids:
                yield render_passage(passages[id])
        earlier_ids |= set(record.evidence)


def _render_step(record: MemoryRecord, evidence: Sequence[RetrievedPassage]) -> str:
    """Render a record. The extract of its passages is left out, because the passages themselves are shown."""
    result = f", passages {', '.join(record.evidence)}" if record.evidence else f"\n{wrap_untrusted(record.finding)}"
    return f"{_render_call(record, evidence)}\nOutcome: {record.status}{result}{_render_child(record.child)}"


def render_memory(
    memory: Sequence[MemoryRecord], room: PromptRoom, evidence: Sequence[RetrievedPassage] = ()
) -> tuple[str, ...]:
    """Render the latest records in full and older ones in one line each, within their part of the room.

    The number of omitted records is stated. Calls name the sources of `evidence` by their short ids.
    """
    allowance = room.allow(MAX_MEMORY_CHARS, MAX_MEMORY_TOKENS, MEMORY_FRACTION)
    max_full = MAX_RECORDS if allowance.in_tokens else MAX_FULL_RECORDS
    entries: list[str] = []
    used, is_full = 0, True
    for age, record in enumerate(reversed(memory)):
        part = _render_full_record(record, evidence)
        is_full = is_full and age < max_full and _fits_in_full(used + allowance.measure(part), allowance)
        part = part if is_full else _render_record_line(record)
        if age >= max_full + MAX_RECORD_LINES or used + allowance.measure(part) > allowance.max_size:
            break
        entries.append(part)
        used += allowance.measure(part)
    earlier = memory[0].turn - 1 if len(memory) >= MAX_RECORDS else 0  # steps that were not loaded
    left_out = len(memory) - len(entries) + earlier
    head = (f"{left_out} earlier steps are not shown.",) if left_out else ()
    return (*head, *reversed(entries))


def _fits_in_full(size: int, allowance: Allowance) -> bool:
    """Return whether a record can be shown in full. In a known window, a part stays free for older records."""
    return not allowance.in_tokens or size <= FULL_RECORDS_FRACTION * allowance.max_size


def _render_full_record(record: MemoryRecord, evidence: Sequence[RetrievedPassage]) -> str:
    outcome = f"Outcome: {record.status}\n{wrap_untrusted(record.finding)}"
    return f"{_render_call(record, evidence)}\n{outcome}{_render_child(record.child)}"


def _render_child(child: ChildOutcome | None) -> str:
    """Render how a child run ended: why, what it read, and what it left open."""
    if child is None:
        return ""
    open_points = "\n".join((*((child.limits,) if child.limits else ()), *child.open_points))
    left_open = f"\nWhat it could not establish:\n{wrap_untrusted(open_points)}" if open_points else ""
    return (
        f"\nIt ended: {child.stop.replace('_', ' ')}. It read {child.read_passages} passages and cited "
        f"{len(child.cited)}.{left_open}"
    )


def _render_call(record: MemoryRecord, evidence: Sequence[RetrievedPassage]) -> str:
    call = shorten_source_ids(f"{record.tool} {render_json(record.args)}", evidence)
    after = f"\nVerifier before it: {record.verdict_before}" if record.verdict_before else ""
    return f"Step {record.turn}: {record.sub_goal}{after}\nCall: {shorten_line(call, 800)}"


def _render_record_line(record: MemoryRecord) -> str:
    line = (
        f"Step {record.turn}: {shorten_line(record.sub_goal, 120)} ({record.tool}, {record.status}, {record.fresh} new)"
    )
    return f"{line}{_render_child(record.child)}"
