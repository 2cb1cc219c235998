"""The team's roles: a lead of its own, and AgentFlow's planner, executor, verifier and writer, with a judge beside.

Knows how the lead is asked; what the others are asked is AgentFlow's.
"""

from dataclasses import replace

from offing.sdk import CHILD_RUN, Headline, Message, Role, StepKind, shortened
from offing_graphs.agentflow import extractive, forms, rules
from offing_graphs.agentflow.roles import EXECUTOR, GENERATOR, PLANNER
from offing_graphs.agentflow.roles import VERIFIER as ONE_QUESTION
from offing_graphs.agentflow.shapes import AnalystInput, Verdict, VerifierInput
from offing_graphs.extractive.agenda import standings
from offing_graphs.parts.judge import JUDGE
from offing_graphs.parts.prompting import in_form, prompt_of, task, tool_cards
from offing_graphs.parts.shapes import Analysis

LEAD_SAYS = (
    "You lead a research team. Split the question into parts that colleagues can research at the same time, without "
    "knowing each other's answers: each understandable alone, none that another holds. A question that has no such "
    "parts stays whole, as its own only part. Do not answer it."
)


def render(given: AnalystInput) -> tuple[Message, ...]:
    return prompt_of(LEAD_SAYS, (*task(given), *tool_cards(given.tools)))


def render_plain(given: AnalystInput) -> tuple[Message, ...]:
    return in_form(render(given), forms.ANALYSIS_RULE)


def _line(output: Analysis) -> Headline:
    count = len(output.sub_questions)
    return Headline(shortened(output.summary), shortened(" · ".join(output.sub_questions)) if count > 1 else "one part")


def verdict_by_words(given: VerifierInput) -> Verdict:
    """What the team brought back is not looked for once more; else as AgentFlow judges."""
    if not any(record.tool == CHILD_RUN for record in given.memory):
        return extractive.verifier(given)
    now = standings(given.analysis.sub_questions, given.wishes, given.evidence, given.memory)
    covered = sum(s.covered for s in now)
    said = f"The team has reported; {covered} of {len(now)} parts are answered by passages."
    return Verdict(analysis=said, coverage=tuple(s.coverage() for s in now), stop=True)


LEAD = Role(
    "lead",
    AnalystInput,
    Analysis,
    render,
    _line,
    kind=StepKind.ANALYSIS,
    label="lead",
    extractive=extractive.analyst,
    forms=(replace(forms.ANALYST[0], render=render_plain),),
    rules={"world": rules.analyst},
)
VERIFIER = replace(ONE_QUESTION, extractive=verdict_by_words)
ROLES = (LEAD, PLANNER, EXECUTOR, JUDGE, VERIFIER, GENERATOR)
