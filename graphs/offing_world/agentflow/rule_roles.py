"""Rule-based roles for synthetic worlds: `world` for most roles, `oracle` and `random` planners.

The planner chooses only the tool. The look-up follows from the question and the facts
learned so far.
"""

from collections.abc import Mapping

from offing.sdk import ReportDraft, RuleContext, RuleFunction
from offing_graphs.agentflow.schemas import AnalystInput, Command, ExecutorInput, PlannerInput, Verdict, VerifierInput
from offing_graphs.shared.schemas import Analysis, Coverage, Plan, WriterInput
from offing_world.agentflow.compact_format import plan_look_up
from offing_world.lookup_rules import (
    TOOL_CHOOSERS,
    build_solution_report,
    find_next_look_up,
    list_learned_facts,
    parse_args,
)
from offing_world.question_solver import find_missing_look_ups


def analyze_question(inputs: AnalystInput, _context: RuleContext) -> Analysis:
    """Return the question as its only part. The look-ups reveal its structure."""
    tools = tuple(t.name for t in inputs.tools)
    return Analysis(summary="A question about a made-up world.", sub_questions=(inputs.question,), relevant_tools=tools)


def build_tool_call(inputs: ExecutorInput, _context: RuleContext) -> Command:
    """Return the planned look-up.

    The arguments are empty if the plan names none; the tool then rejects the call, and the
    rejection is recorded.
    """
    return Command(tool=inputs.tool.name, args=dict(parse_args(inputs.plan.context)))


def verify_coverage(inputs: VerifierInput, _context: RuleContext) -> Verdict:
    """Stop if no look-up is missing."""
    missing = find_missing_look_ups(inputs.question, list_learned_facts(inputs.memory))
    missing_text = ", ".join(f"the {n.relation} of {n.entity}" for n in missing)
    coverage = Coverage(sub_question=inputs.question, covered=not missing, missing=missing_text)
    analysis = f"Still to be looked up: {missing_text}." if missing else "Everything that is needed is known."
    return Verdict(analysis=analysis, coverage=(coverage,), stop=not missing)


def write_report(inputs: WriterInput, _context: RuleContext) -> ReportDraft:
    """Write a report of the answer that follows from the look-ups."""
    return build_solution_report(inputs.question, list_learned_facts(inputs.memory))


def _build_planner_rule(name: str) -> RuleFunction[PlannerInput, Plan]:
    def plan(inputs: PlannerInput, context: RuleContext) -> Plan:
        need = find_next_look_up(inputs.question, list_learned_facts(inputs.memory))
        return plan_look_up(
            need, TOOL_CHOOSERS[name](need, context, tuple(t.name for t in inputs.tools)), "It comes next."
        )

    return plan


PLANNER_RULES: Mapping[str, RuleFunction[PlannerInput, Plan]] = {
    name: _build_planner_rule(name) for name in TOOL_CHOOSERS
}
