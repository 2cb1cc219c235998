"""Who answers the roles in a made-up world: `world` for those without choices there, `oracle` and `random` planners.

The planner's only choice is the tool; what has to be looked up follows from the question and what was learned.
"""

from collections.abc import Mapping

from offing.sdk import ReportDraft, Rule, Seat
from offing.world.solving import needs
from offing_graphs.agentflow.forms import look_up
from offing_graphs.agentflow.shapes import AnalystInput, Command, ExecutorInput, PlannerInput, Verdict, VerifierInput
from offing_graphs.parts.shapes import Analysis, Coverage, Plan, WriterInput
from offing_graphs.parts.world import TOOL_BY, args_in, learned, next_need, solved


def analyst(given: AnalystInput, _seat: Seat) -> Analysis:
    """The question as it stands: its parts show while it is looked up."""
    tools = tuple(t.name for t in given.tools)
    return Analysis(summary="A question about a made-up world.", sub_questions=(given.question,), relevant_tools=tools)


def executor(given: ExecutorInput, _seat: Seat) -> Command:
    """The planned look-up. Empty arguments: the plan names none; the tool refuses them, and that goes on record."""
    return Command(tool=given.tool.name, args=dict(args_in(given.plan.context)))


def verifier(given: VerifierInput, _seat: Seat) -> Verdict:
    """Stops when nothing is missing."""
    missing = needs(given.question, learned(given.memory))
    said = ", ".join(f"the {n.relation} of {n.entity}" for n in missing)
    coverage = Coverage(sub_question=given.question, covered=not missing, missing=said)
    analysis = f"Still to be looked up: {said}." if missing else "Everything that is needed is known."
    return Verdict(analysis=analysis, coverage=(coverage,), stop=not missing)


def generator(given: WriterInput, _seat: Seat) -> ReportDraft:
    """What the look-ups come to."""
    return solved(given.question, learned(given.memory))


def _planner(name: str) -> Rule[PlannerInput, Plan]:
    def plan(given: PlannerInput, seat: Seat) -> Plan:
        need = next_need(given.question, learned(given.memory))
        return look_up(need, TOOL_BY[name](need, seat, tuple(t.name for t in given.tools)), "It comes next.")

    return plan


PLANNER: Mapping[str, Rule[PlannerInput, Plan]] = {name: _planner(name) for name in TOOL_BY}
