"""The roles without a model: same input, same answer, no I/O. The `extractive` engine only calls these."""

from typing import Any

from offing.sdk import ReportDraft, RunView
from offing_graphs.agentflow.shapes import AnalystInput, Command, ExecutorInput, PlannerInput, Verdict, VerifierInput
from offing_graphs.extractive import report as extractive_report
from offing_graphs.extractive.agenda import Agenda, agenda, asked_for
from offing_graphs.extractive.analysis import analysis_of
from offing_graphs.extractive.arguments import arguments
from offing_graphs.parts.shapes import Analysis, Case, Exchange, Piece, Plan, WriterInput


def analyst(given: AnalystInput) -> Analysis:
    """The question in parts, by its words."""
    return analysis_of(given, tuple(t.name for t in given.tools))


def planner(given: PlannerInput) -> Plan:
    """The first move that is left; where none is, the whole question once more."""
    moves = _agenda(given).moves
    if moves:
        move = moves[0]
        return Plan(justification=move.why, context=move.context, sub_goal=move.sub_goal, tool=move.tool)
    tool = given.tools[0].name if given.tools else "none"
    goal = f"Find passages on: {given.question}"
    why = "Everything that could be tried has been tried."
    return Plan(justification=why, context=f"query: {given.question}", sub_goal=goal, tool=tool)


def executor(given: ExecutorInput) -> Command:
    """The planned call, with the arguments that the tool's schema has a place for."""
    return Command(tool=given.tool.name, args=arguments(given.plan, given.tool, given.evidence))


def verifier(given: VerifierInput) -> Verdict:
    """Stop when every part is covered and the least has been done for each, or when nothing is left to try."""
    now = _agenda(given)
    covered = sum(s.covered for s in now.standings)
    needed = any(move.needed for move in now.moves)
    stop = not now.moves or (now.covered and not needed)
    return Verdict(
        analysis=_said(now, covered, stop),
        coverage=tuple(s.coverage() for s in now.standings),
        stop=stop,
    )


def generator(given: WriterInput) -> ReportDraft:
    """A report of quotes."""
    return extractive_report.report(given)


def model_free_report(given: WriterInput) -> ReportDraft:
    """The same report, for runs whose generator cannot write."""
    return extractive_report.report(given)


def salvage(run: RunView, evidence: tuple[Piece, ...]) -> ReportDraft:
    """A report of what was retrieved, for a run that ended before its generator's turn."""
    earlier = tuple(Exchange(question=q, answer=a) for q, a in run.earlier)
    case = Case(question=run.question, earlier=earlier)
    given: dict[str, Any] = {"question": run.question, "earlier": earlier, "evidence": evidence, "reason": ""}
    return extractive_report.report(WriterInput(**given, analysis=analysis_of(case)))


def _agenda(given: PlannerInput | VerifierInput) -> Agenda:
    parts = asked_for(given.analysis.sub_questions, given.wishes)
    return agenda(given.question, parts, given.memory, given.evidence, given.tools)


def _said(now: Agenda, covered: int, stop: bool) -> str:
    parts = len(now.standings)
    state = f"{covered} of {parts} parts are answered by passages." if parts > 1 else _one_part(covered)
    gaps = [f"{s.part}: {s.coverage().missing}" for s in now.standings if not s.covered]
    after = "Nothing is left to try." if not now.moves else "" if stop else f"Next: {now.moves[0].why}"
    return " ".join(t for t in (state, *gaps, after) if t)


def _one_part(covered: int) -> str:
    return "Passages hold what is asked for." if covered else "No passage holds what is asked for yet."
