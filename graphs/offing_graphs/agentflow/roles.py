"""The graph's five roles: what each is given, how it is asked, how its answer shows, who answers without a model."""

from offing.sdk import Headline, ReportDraft, Role, StepKind, shortened
from offing_graphs.agentflow import extractive, forms, prompts, rules
from offing_graphs.agentflow.shapes import AnalystInput, Command, ExecutorInput, PlannerInput, Verdict, VerifierInput
from offing_graphs.parts.shapes import Analysis, Plan, WriterInput


def _analysis_line(output: Analysis) -> Headline:
    count = len(output.sub_questions)
    return Headline(shortened(output.summary), shortened(" · ".join(output.sub_questions)) if count > 1 else "")


def _plan_line(output: Plan) -> Headline:
    return Headline(shortened(output.sub_goal), shortened(f"{output.tool}: {output.justification}"))


def _command_line(output: Command) -> Headline:
    args = ", ".join(f"{name}={value!r}" for name, value in output.args.items())
    return Headline(shortened(f"{output.tool}({args})"))


def _verdict_line(output: Verdict) -> Headline:
    covered = sum(c.covered for c in output.coverage)
    detail = f"{covered} of {len(output.coverage)} parts answered; " if output.coverage else ""
    return Headline(shortened(output.analysis), detail + ("stop" if output.stop else "go on"))


def _report_line(output: ReportDraft) -> Headline:
    return Headline(shortened(output.title), shortened(output.answer))


ANALYST = Role(
    "analyst",
    AnalystInput,
    Analysis,
    prompts.analyst,
    _analysis_line,
    kind=StepKind.ANALYSIS,
    label="analyse",
    extractive=extractive.analyst,
    forms=forms.ANALYST,
    rules={"world": rules.analyst},
)
PLANNER = Role(
    "planner",
    PlannerInput,
    Plan,
    prompts.planner,
    _plan_line,
    kind=StepKind.PLAN,
    label="plan",
    extractive=extractive.planner,
    forms=forms.PLANNER,
    rules=rules.PLANNER,
)
EXECUTOR = Role(
    "executor",
    ExecutorInput,
    Command,
    prompts.executor,
    _command_line,
    kind=StepKind.COMMAND,
    label="call",
    extractive=extractive.executor,
    forms=forms.EXECUTOR,
    rules={"world": rules.executor},
)
VERIFIER = Role(
    "verifier",
    VerifierInput,
    Verdict,
    prompts.verifier,
    _verdict_line,
    kind=StepKind.VERDICT,
    label="verify",
    extractive=extractive.verifier,
    forms=forms.VERIFIER,
    rules={"world": rules.verifier},
)
GENERATOR = Role(
    "generator",
    WriterInput,
    ReportDraft,
    prompts.writer,
    _report_line,
    kind=StepKind.TURN,
    label="write",
    extractive=extractive.generator,
    forms=forms.GENERATOR,
    rules={"world": rules.generator},
)
ROLES = (ANALYST, PLANNER, EXECUTOR, VERIFIER, GENERATOR)
