"""The agent without a model, as pure functions.

The `extractive` engine calls only these functions. The agent sees only its
context. What it removes is kept in a note: quotes with the ids of their passages, and the
steps taken.
"""

import json
from collections.abc import Iterable, Sequence

from offing.sdk import shorten_line
from offing_graphs.extractive.agenda import Agenda, build_agenda
from offing_graphs.extractive.analysis import analyze_task
from offing_graphs.extractive.arguments import build_arguments
from offing_graphs.extractive.coverage import list_parts
from offing_graphs.memact.context import parse_record_turn
from offing_graphs.memact.prompts import estimate_size
from offing_graphs.memact.schemas import EDIT_ACTIONS, PRUNE, Act, AgentInput, ContextRecord, ToolFinding
from offing_graphs.shared.memory import MAX_GOAL_CHARS
from offing_graphs.shared.prompt_parts import render_json
from offing_graphs.shared.report import build_quote_report
from offing_graphs.shared.schemas import MemoryRecord, RetrievedPassage, ToolCard
from offing_graphs.shared.token_estimate import estimate_tokens

PRUNE_ABOVE_FRACTION, PRUNE_TO_FRACTION = 0.6, 0.35
"""Fractions of the context's maximum: records are removed above the first, down to the second."""
MAX_TELLING_LINES = 6
"""Number of best lines per part of the question whose passages count as telling."""
MAX_QUOTE_CHARS = 300
"""Maximum number of characters of a quote in a note."""
TAKEN_PREFIX = "Step taken: "


def choose_action(inputs: AgentInput) -> Act:
    """Choose the next action, prune the context if it is almost full, or answer if no action would help."""
    parts = list_parts(analyze_task(inputs).sub_questions, inputs.user_messages)
    taken = _list_taken_steps(inputs)
    agenda = build_agenda(inputs.question, parts, taken, inputs.evidence, _list_research_tools(inputs))
    if inputs.request == "summary":
        return Act(summary=_render_note(agenda, taken, inputs.evidence))
    if inputs.request == "answer" or agenda.is_complete:
        return _build_answer(inputs, taken, agenda)
    removed = _list_removable(inputs, agenda)
    return _build_prune(inputs, agenda, removed) if removed else _build_step(inputs, agenda)


def _list_research_tools(inputs: AgentInput) -> tuple[ToolCard, ...]:
    return tuple(t for t in inputs.tools if t.name not in EDIT_ACTIONS)


def _build_step(inputs: AgentInput, agenda: Agenda) -> Act:
    move = agenda.actions[0]
    card = next(t for t in inputs.tools if t.name == move.tool)
    return Act(
        goal=shorten_line(move.sub_goal, MAX_GOAL_CHARS),
        tool=move.tool,
        args=build_arguments(move.to_plan(), card, inputs.evidence),
    )


def _build_answer(inputs: AgentInput, taken_steps: tuple[MemoryRecord, ...], agenda: Agenda) -> Act:
    draft = build_quote_report(inputs, inputs.evidence, taken_steps, inputs.reason)
    return Act(answer=draft, found=agenda.is_answered)


def _build_prune(inputs: AgentInput, agenda: Agenda, removed: Sequence[ContextRecord]) -> Act:
    removed_ids = {entry.id for entry in removed}
    steps = _list_taken_steps(
        inputs.model_copy(update={"records": tuple(e for e in inputs.records if e.id in removed_ids)})
    )
    ids = {id for step in steps for id in step.evidence}
    note = _render_note(agenda, steps, [piece for piece in inputs.evidence if piece.id in ids])
    return Act(
        goal="Make room.", tool=PRUNE, args={"delete_ids": sorted(removed_ids, key=parse_record_turn), "note": note}
    )


def _list_removable(inputs: AgentInput, agenda: Agenda) -> tuple[ContextRecord, ...]:
    """Return the records to remove, or nothing if there is enough room.

    Records with passages that tell nothing come first, then the oldest ones. All notes are
    removed with them. The latest record always stays.
    """
    size = estimate_size(inputs.model_copy(update={"shows_room": False}))
    over = size - PRUNE_TO_FRACTION * inputs.max_context_tokens
    if not inputs.allows_edits or size <= PRUNE_ABOVE_FRACTION * inputs.max_context_tokens:
        return ()
    telling = {hit.line.passage.id for s in agenda.part_statuses for hit in s.hits[:MAX_TELLING_LINES]}
    older = [entry for entry in inputs.records[:-1] if entry.finding]
    removed: set[str] = set()
    for entry in sorted(older, key=lambda e: any(telling & set(finding.evidence) for finding in e.findings)):
        if over > 0:
            removed.add(entry.id)
            over -= estimate_tokens(entry.observation)
    notes = {e.id for e in inputs.records[:-1] if e.action.tool in EDIT_ACTIONS} if removed else set[str]()
    return tuple(entry for entry in inputs.records if entry.id in removed | notes)


def _render_note(agenda: Agenda, taken_steps: Iterable[MemoryRecord], passages: Sequence[RetrievedPassage]) -> str:
    """Render a note: quotes for people and models, and steps for this engine."""
    ids = {piece.id for piece in passages}
    hits = [hit for s in agenda.part_statuses for hit in s.hits[:MAX_TELLING_LINES] if hit.line.passage.id in ids]
    quotes = dict.fromkeys(
        f"[{h.line.passage.id}] \u201c{shorten_line(h.line.text, MAX_QUOTE_CHARS)}\u201d" for h in hits
    )
    quoted_ids = {hit.line.passage.id for hit in hits}
    return (
        "\n".join([*quotes, *(TAKEN_PREFIX + _render_step(step, quoted_ids) for step in taken_steps)])
        or "Nothing was found."
    )


def _render_step(step: MemoryRecord, quoted_ids: set[str]) -> str:
    """Render a step without the passages that tell nothing."""
    ids = tuple(id for id in step.evidence if id in quoted_ids)
    kept_of_it = step.model_copy(update={"evidence": ids}).model_dump(mode="json", exclude_defaults=True)
    # the order of the keys of stored arguments is not kept
    return json.dumps(kept_of_it, ensure_ascii=False, sort_keys=True)


def _list_taken_steps(inputs: AgentInput) -> tuple[MemoryRecord, ...]:
    """Return every step in the context, oldest first."""
    edits = (entry.action for entry in inputs.records if entry.action.tool in EDIT_ACTIONS)
    notes = (inputs.summary, *(str(edit.args.get("note", "")) for edit in edits))
    noted = {_identify_step(step): step for note in notes for step in _parse_noted_steps(note)}
    known = {id for step in noted.values() for id in step.evidence}
    shown_turns = {entry.turn for entry in inputs.records}
    taken = [step for step in noted.values() if step.turn not in shown_turns]
    for entry in inputs.records:
        for finding in entry.findings:
            taken.append(_record_from_finding(entry, finding, known))
            known |= set(finding.evidence)
    return tuple(sorted(taken, key=lambda record: record.turn))


def _identify_step(step: MemoryRecord) -> tuple[int, str, str]:
    """Return what is the same in every note of a step. A turn may have several steps."""
    return step.turn, step.tool, render_json(step.args)


def _parse_noted_steps(text: str) -> Iterable[MemoryRecord]:
    for line in text.split("\n"):
        if line.startswith(TAKEN_PREFIX):
            yield MemoryRecord.model_validate(json.loads(line.removeprefix(TAKEN_PREFIX)))


def _record_from_finding(entry: ContextRecord, finding: ToolFinding, known: set[str]) -> MemoryRecord:
    ids = finding.evidence
    return MemoryRecord(
        turn=entry.turn,
        sub_goal=entry.action.goal,
        tool=finding.tool,
        args=finding.args,
        status=finding.status,
        finding="",
        value=finding.value,
        evidence=ids,
        fresh=sum(id not in known for id in ids),
    )
