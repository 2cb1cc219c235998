"""The roles of the team: its lead, a judge, and AgentFlow's roles except the analyst."""

from dataclasses import replace

from offing.sdk import CHILD_RUN, Headline, Role, StepKind, shorten_line
from offing_graphs.agentflow import extractive
from offing_graphs.agentflow.roles import EXECUTOR, GENERATOR, PLANNER
from offing_graphs.agentflow.roles import VERIFIER as ONE_QUESTION
from offing_graphs.agentflow.schemas import AnalystInput, Verdict, VerifierInput
from offing_graphs.extractive.coverage import assess_parts
from offing_graphs.research_team import prompts
from offing_graphs.shared.judge import JUDGE
from offing_graphs.shared.schemas import Analysis


def _render_headline(output: Analysis) -> Headline:
    count = len(output.sub_questions)
    return Headline(
        shorten_line(output.summary), shorten_line(" · ".join(output.sub_questions)) if count > 1 else "one part"
    )


def verify_by_words(inputs: VerifierInput) -> Verdict:
    """Verify by words.

    Once child runs have reported, their findings are not searched for again and the verifier
    stops. Without child runs it works as in AgentFlow.
    """
    if not any(record.tool == CHILD_RUN for record in inputs.memory):
        return extractive.verify_coverage(inputs)
    agenda = assess_parts(inputs.analysis.sub_questions, inputs.user_messages, inputs.evidence, inputs.memory)
    covered = sum(s.covered for s in agenda)
    analysis = f"The team has reported; {covered} of {len(agenda)} parts are answered by passages."
    return Verdict(analysis=analysis, coverage=tuple(s.to_coverage() for s in agenda), stop=True)


LEAD = Role(
    "lead",
    AnalystInput,
    Analysis,
    prompts.render_prompt,
    _render_headline,
    step_kind=StepKind.ANALYSIS,
    label="lead",
    extractive=extractive.analyze_question,
    prompt_formats=(prompts.TEXT_FORMAT,),
)
VERIFIER = replace(ONE_QUESTION, extractive=verify_by_words)
ROLES = (LEAD, PLANNER, EXECUTOR, JUDGE, VERIFIER, GENERATOR)
