"""The agent without a model: same context, same answer, no I/O. The `extractive` engine only calls this.

It knows nothing but its context. What it removes lives on in a note: quotes with the ids of their passages, and the
steps that were taken.
"""

import json
from collections.abc import Iterable, Sequence

from offing.sdk import shortened
from offing_graphs.extractive.agenda import Agenda, agenda, asked_for
from offing_graphs.extractive.analysis import analysis_of
from offing_graphs.extractive.arguments import arguments
from offing_graphs.extractive.report import report
from offing_graphs.memact.chat import size
from offing_graphs.memact.context import EDITS, PRUNE, turn_of
from offing_graphs.memact.shapes import Act, AgentInput, Entry
from offing_graphs.parts.measuring import tokens_of
from offing_graphs.parts.shapes import Analysis, Card, Piece, Plan, Record, WriterInput

PRESSURE, ROOM = 0.6, 0.35
"""Share of the window from which records are removed, and what they are removed down to."""
TELLING = 6
"""Best lines of each part of the question whose passages tell something."""
QUOTED = 300
"""Code points of a quote in a note."""
TAKEN = "Step taken: "


def agent(given: AgentInput) -> Act:
    """The next step that is left, room for it where there is little, or the answer where nothing more helps."""
    analysis = analysis_of(given, tuple(t.name for t in _tools(given)))
    parts = asked_for(analysis.sub_questions, given.wishes)
    taken = _taken(given)
    now = agenda(given.question, parts, taken, given.evidence, _tools(given))
    if given.ask == "summary":
        return Act(summary=_note(now, taken, given.evidence))
    if given.ask == "answer" or _enough(now):
        return _answer(given, analysis, taken, now)
    removed = _removable(given, now)
    return _pruned(given, now, removed) if removed else _step(given, now)


def _tools(given: AgentInput) -> tuple[Card, ...]:
    return tuple(t for t in given.tools if t.name not in EDITS)


def _enough(now: Agenda) -> bool:
    """Every part is covered and the least has been done for each, or nothing is left to try."""
    return not now.moves or (now.covered and not any(move.needed for move in now.moves))


def _step(given: AgentInput, now: Agenda) -> Act:
    move = now.moves[0]
    plan = Plan(justification=move.why, context=move.context, sub_goal=move.sub_goal, tool=move.tool)
    card = next(t for t in given.tools if t.name == move.tool)
    return Act(goal=shortened(move.sub_goal, 400), tool=move.tool, args=arguments(plan, card, given.evidence))


def _answer(given: AgentInput, analysis: Analysis, taken: tuple[Record, ...], now: Agenda) -> Act:
    found = any(s.covered for s in now.standings)
    draft = report(
        WriterInput(
            question=given.question,
            earlier=given.earlier,
            wishes=given.wishes,
            analysis=analysis,
            memory=taken,
            evidence=given.evidence,
            reason=given.reason,
        )
    )
    return Act(answer=draft, found=found)


def _pruned(given: AgentInput, now: Agenda, removed: Sequence[Entry]) -> Act:
    gone = {entry.id for entry in removed}
    steps = _taken(given.model_copy(update={"records": tuple(e for e in given.records if e.id in gone)}))
    ids = {id for step in steps for id in step.evidence}
    note = _note(now, steps, [piece for piece in given.evidence if piece.id in ids])
    return Act(goal="Make room.", tool=PRUNE, args={"delete_ids": sorted(gone, key=turn_of), "note": note})


def _removable(given: AgentInput, now: Agenda) -> tuple[Entry, ...]:
    """Records to remove, all notes with them: those whose passages tell nothing, then the oldest, until there is room.

    The latest record stays. Empty: there is room, or nothing to remove.
    """
    over = size(given) - ROOM * given.window
    if not given.edits or size(given) <= PRESSURE * given.window:
        return ()
    telling = {hit.line.piece.id for s in now.standings for hit in s.hits[:TELLING]}
    older = [entry for entry in given.records[:-1] if entry.found]
    removed: set[str] = set()
    for entry in sorted(older, key=lambda e: bool(e.found and telling & set(e.found.evidence))):
        if over > 0:
            removed.add(entry.id)
            over -= tokens_of(entry.observation)
    notes = {e.id for e in given.records[:-1] if e.act.tool in EDITS} if removed else set[str]()
    return tuple(entry for entry in given.records if entry.id in removed | notes)


def _note(now: Agenda, taken: Iterable[Record], pieces: Sequence[Piece]) -> str:
    """Quotes for people and models, and the steps for this engine."""
    ids = {piece.id for piece in pieces}
    hits = [hit for s in now.standings for hit in s.hits[:TELLING] if hit.line.piece.id in ids]
    quotes = dict.fromkeys(f"[{h.line.piece.id}] \u201c{shortened(h.line.text, QUOTED)}\u201d" for h in hits)
    kept = {hit.line.piece.id for hit in hits}
    return "\n".join([*quotes, *(TAKEN + _told(step, kept) for step in taken)]) or "Nothing was found."


def _told(step: Record, kept: set[str]) -> str:
    """A step without the passages that told nothing."""
    ids = tuple(id for id in step.evidence if id in kept)
    kept_of_it = step.model_copy(update={"evidence": ids}).model_dump(mode="json", exclude_defaults=True)
    return json.dumps(kept_of_it, ensure_ascii=False, sort_keys=True)  # stored arguments have lost their order


def _taken(given: AgentInput) -> tuple[Record, ...]:
    """Every step that the context tells of, oldest first."""
    found = {r.turn: r for r in _noted(given.summary)}
    for entry in given.records:
        if entry.act.tool in EDITS:
            found |= {r.turn: r for r in _noted(str(entry.act.args.get("note", "")))}
    known = {id for record in found.values() for id in record.evidence}
    for entry in given.records:
        if entry.found:
            found[entry.turn] = _record(entry, known)
            known |= set(entry.found.evidence)
    return tuple(found[turn] for turn in sorted(found))


def _noted(text: str) -> Iterable[Record]:
    for line in text.split("\n"):
        if line.startswith(TAKEN):
            yield Record.model_validate(json.loads(line.removeprefix(TAKEN)))


def _record(entry: Entry, known: set[str]) -> Record:
    assert entry.found
    ids = entry.found.evidence
    return Record(
        turn=entry.turn,
        sub_goal=entry.act.goal,
        tool=entry.found.tool,
        args=entry.found.args,
        status=entry.found.status,
        finding="",
        value=entry.found.value,
        evidence=ids,
        fresh=sum(id not in known for id in ids),
    )
