"""The researcher without a model: same workspace, same answer, no I/O. The `extractive` engine only calls this.

It remembers nothing but its own report: the steps that stand there are read back, and passages come by their ids.
"""

from typing import Any

from offing.sdk import shortened
from offing_graphs.extractive import report as extractive_report
from offing_graphs.extractive.agenda import Agenda, Move, agenda, asked_for
from offing_graphs.extractive.analysis import analysis_of
from offing_graphs.extractive.arguments import arguments
from offing_graphs.iterresearch import ledger
from offing_graphs.iterresearch.shapes import Call, Round, Stage, Workspace, round_of
from offing_graphs.parts.shapes import Piece, Plan, Record, WriterInput


def researcher(given: Workspace) -> Round:
    """The next step that is left, or the answer where nothing more helps."""
    analysis = analysis_of(given, tuple(t.name for t in given.tools))
    parts = asked_for(analysis.sub_questions, given.wishes)
    evidence = _evidence(given)
    taken = _taken(given, parts)
    now = agenda(given.question, parts, taken, evidence, given.tools)
    case: dict[str, Any] = {"question": given.question, "earlier": given.earlier, "wishes": given.wishes}
    drawn = WriterInput(**case, analysis=analysis, memory=taken, evidence=evidence, reason="")
    draft = extractive_report.report(drawn)
    if given.stage is Stage.FINAL or (given.stage is Stage.MIDDLE and _enough(now)):
        report = ledger.written(draft, taken, None, parts)
        return round_of(given.stage, think=_why(now), report=report, answer=draft, answered=_answered(now))
    move = now.moves[0] if now.moves else _anything(given)
    call = _call(move, given, evidence)
    then = Record(turn=0, sub_goal=_goal(move), tool=call.tool, args=call.args, status="", finding="")
    return round_of(given.stage, think=move.why, report=ledger.written(draft, taken, then, parts), action=call)


def _evidence(given: Workspace) -> tuple[Piece, ...]:
    """Passages that the report names and those that just came back, in the order of their first retrieval."""
    new = given.result.pieces if given.result else ()
    by_id = {piece.id: piece for piece in (*given.cited, *new)}
    return tuple(sorted(by_id.values(), key=lambda piece: int(piece.id[1:])))


def _taken(given: Workspace, parts: tuple[str, ...]) -> tuple[Record, ...]:
    """The steps in the report, and the one that it announced with what has come back from it."""
    taken, then = ledger.read(given.report, parts)
    if then is None or given.result is None:
        return taken
    known = {id for record in taken for id in record.evidence}
    ids = tuple(piece.id for piece in given.result.pieces)
    last = then.model_copy(
        update={
            "turn": max((r.turn for r in taken), default=0) + 1,
            "status": given.result.status,
            "value": given.result.value,
            "evidence": ids,
            "fresh": sum(id not in known for id in ids),
        }
    )
    return (*taken, last)


def _call(move: Move, given: Workspace, evidence: tuple[Piece, ...]) -> Call:
    plan = Plan(justification=move.why, context=move.context, sub_goal=move.sub_goal, tool=move.tool)
    card = next((t for t in given.tools if t.name == move.tool), None)
    return Call(tool=move.tool, args=arguments(plan, card, evidence) if card else {})


def _goal(move: Move) -> str:
    return shortened(move.sub_goal, ledger.GOAL)


def _anything(given: Workspace) -> Move:
    """A first step where the agenda has none: the whole question to the first tool."""
    tool = given.tools[0].name if given.tools else "none"
    goal = f"Find passages on: {given.question}"
    return Move(tool, f"query: {given.question}", goal, "Nothing that is made for this question can be done.")


def _enough(now: Agenda) -> bool:
    """Every part is covered and the least has been done for each, or nothing is left to try."""
    return not now.moves or (now.covered and not any(move.needed for move in now.moves))


def _answered(now: Agenda) -> bool:
    return any(s.covered for s in now.standings)


def _why(now: Agenda) -> str:
    covered = sum(s.covered for s in now.standings)
    return f"{covered} of {len(now.standings)} parts are answered by passages."
