"""The roles without a model, as pure functions.

The `extractive` engine calls only these functions.
"""

from offing.sdk import ReportDraft
from offing_graphs.agentflow.schemas import AnalystInput, Command, ExecutorInput, PlannerInput, Verdict, VerifierInput
from offing_graphs.extractive import report as extractive_report
from offing_graphs.extractive.agenda import Agenda, build_agenda, choose_first_action
from offing_graphs.extractive.analysis import analyze_task
from offing_graphs.extractive.arguments import build_arguments
from offing_graphs.extractive.coverage import list_parts
from offing_graphs.shared.schemas import Analysis, Plan, WriterInput


def analyze_question(inputs: AnalystInput) -> Analysis:
    """Split the question into parts by its words."""
    return analyze_task(inputs, tuple(t.name for t in inputs.tools))


def plan_next_step(inputs: PlannerInput) -> Plan:
    """Plan the first remaining action, or search for the whole question again if there is none."""
    actions = _build_agenda(inputs).actions
    if actions:
        return actions[0].to_plan()
    return choose_first_action(
        inputs.question, inputs.tools, "Everything that could be tried has been tried."
    ).to_plan()


def build_tool_call(inputs: ExecutorInput) -> Command:
    """Build the planned call with arguments that fit the tool's schema."""
    return Command(tool=inputs.tool.name, args=build_arguments(inputs.plan, inputs.tool, inputs.evidence))


def verify_coverage(inputs: VerifierInput) -> Verdict:
    """Stop if every part is covered and all required actions were taken, or if no action is left."""
    agenda = _build_agenda(inputs)
    return Verdict(
        analysis=_describe_progress(agenda),
        coverage=tuple(s.to_coverage() for s in agenda.part_statuses),
        stop=agenda.is_complete,
    )


def write_report(inputs: WriterInput) -> ReportDraft:
    """Write a report of quotes."""
    return extractive_report.build_report(inputs)


def _build_agenda(inputs: PlannerInput | VerifierInput) -> Agenda:
    parts = list_parts(inputs.analysis.sub_questions, inputs.user_messages)
    return build_agenda(inputs.question, parts, inputs.memory, inputs.evidence, inputs.tools)


def _describe_progress(agenda: Agenda) -> str:
    parts, covered = len(agenda.part_statuses), agenda.covered_count
    state = f"{covered} of {parts} parts are answered by passages." if parts > 1 else _describe_single_part(covered)
    gaps = [f"{s.part}: {s.to_coverage().missing}" for s in agenda.part_statuses if not s.covered]
    last = "" if agenda.is_complete else f"Next: {agenda.actions[0].why}"
    after = last if agenda.actions else "Nothing is left to try."
    return " ".join(t for t in (state, *gaps, after) if t)


def _describe_single_part(covered: int) -> str:
    return "Passages hold what is asked for." if covered else "No passage holds what is asked for yet."
