"""What a run asks a person before it researches: what is unclear in the question, and whether its plan is right.

Both happen in the first node, which runs again from its beginning when the person has responded. So each call and each
step is made in the same order, and what the person decided is a step of its own that later nodes read.
"""

from pydantic import Field

from offing.sdk import (
    EngineFailure,
    Headline,
    InvalidOutput,
    Message,
    PlanProposal,
    ReviewDecision,
    Role,
    RunContext,
    StepDraft,
    StepKind,
    shorten_line,
)
from offing_graphs.agentflow.roles import ANALYST
from offing_graphs.agentflow.schemas import AnalystInput
from offing_graphs.shared.fitted_calls import call_fitted
from offing_graphs.shared.prompt_parts import build_prompt, render_task
from offing_graphs.shared.schemas import Analysis, FrozenModel, TaskContext
from offing_graphs.shared.tagged_text import build_text_format, parse_tagged, render_tagged, validate_output
from offing_graphs.shared.text_repairs import build_tag_repair

CLARIFICATION, REVIEWED_PLAN = "clarification", "reviewed plan"
"""Labels of the steps that hold what a person decided."""
MAX_QUESTIONS = 3
"""Maximum number of questions to the person."""
MAX_REVIEWS = 4
"""Maximum number of plans that a person is shown. The last one is followed if there is no approval."""
MAX_PARTS = 8
"""Maximum number of parts of an analysis."""
MAX_NOTES = 64
OWN_JUDGMENT = "Use your own judgment."
"""The response if the run must finish before the person has responded."""

SYSTEM_PROMPT = (
    "You prepare research on a question. Before it begins, you may ask the person who asked. Ask only what would "
    "change what is researched and cannot be found out by research: which of several meanings is meant, which period, "
    "place or audience, what the answer is for. If the question is clear enough, ask nothing."
)
TEXT_FORMAT_RULE = "<questions>one question per line, at most three, or nothing</questions>"


class Clarification(FrozenModel):
    """Questions to the person."""

    questions: tuple[str, ...] = Field(
        default=(), max_length=MAX_QUESTIONS, description="Questions to the person; empty if nothing is unclear."
    )


def parse_questions(text: str, _inputs: TaskContext) -> Clarification | InvalidOutput:
    blocks = parse_tagged(text, ("questions",))
    if isinstance(blocks, InvalidOutput):
        return blocks
    lines = [line.strip().lstrip("-*0123456789.) ").strip() for line in blocks["questions"].text.splitlines()]
    questions = [line for line in lines if line and line.lower().rstrip(".") not in ("nothing", "none")]
    return validate_output(Clarification, {"questions": questions[:MAX_QUESTIONS]})


def render_questions(output: Clarification, _inputs: TaskContext) -> str:
    return render_tagged([("questions", "\n".join(output.questions))])


def render_clarifier_prompt(inputs: TaskContext) -> tuple[Message, ...]:
    return build_prompt(SYSTEM_PROMPT, render_task(inputs))


def _render_headline(output: Clarification) -> Headline:
    count = len(output.questions)
    return Headline(f"{count} question{'s' if count > 1 else ''} to you" if count else "Nothing is unclear")


CLARIFIER = Role(
    ANALYST.name,
    TaskContext,
    Clarification,
    render_clarifier_prompt,
    _render_headline,
    step_kind=StepKind.ROLE_CALL,
    label="clarify",
    prompt_formats=(
        build_text_format(
            render_clarifier_prompt,
            TEXT_FORMAT_RULE,
            parse_questions,
            render_questions,
            repair=build_tag_repair(("questions",)),
        ),
    ),
)
"""Asked of the engine of the analyst. A run whose analyst is no model asks nothing."""


async def clarify_question(ctx: RunContext, task: TaskContext) -> int | EngineFailure:
    """Ask the person what is unclear, and return the seq of the step with the response. 0 means that nothing is."""
    if not ctx.can_revise(ANALYST):
        return 0
    reply = await call_fitted(ctx, CLARIFIER, TaskContext(**dict(task)))
    if isinstance(reply, EngineFailure):
        return reply
    questions = [line for question in reply.output.questions if (line := " ".join(question.split()))]
    if not questions:
        return 0
    text = questions[0] if len(questions) == 1 else "\n".join(f"{n}. {one}" for n, one in enumerate(questions, 1))
    response = await ctx.ask(text, default=OWN_JUDGMENT)
    payload = {"questions": questions, "response": response}
    await ctx.append_steps(
        StepDraft(StepKind.NOTE, "The question was clarified", payload, CLARIFICATION, shorten_line(response))
    )
    return await _find_note(ctx, CLARIFICATION)


async def load_clarification(ctx: RunContext, seq: int) -> str:
    """Return what was asked and answered before the research, as text for the roles."""
    (step,) = await ctx.get_steps([seq])
    return "Before the run was asked:\n{}\nThe person answered:\n{}".format(
        "\n".join(step.payload["questions"]), step.payload["response"]
    )


async def review_analysis(ctx: RunContext, task: AnalystInput, seq: int, analysis: Analysis) -> int | EngineFailure:
    """Show the person the parts of the question, and return the seq of the step with the analysis to follow.

    A comment makes the analyst split the question again. `seq` is that of the analysis that was made.
    """
    comments: tuple[str, ...] = ()
    for number in range(1, MAX_REVIEWS + 1):
        review = await ctx.review(PlanProposal(analysis.sub_questions), default=ReviewDecision.APPROVED)
        if review.decision is ReviewDecision.EDITED:
            edited = analysis.model_copy(update={"sub_questions": join_parts(review.plan.steps)})
            payload = {"output": edited.model_dump(mode="json")}
            detail = shorten_line(" · ".join(edited.sub_questions))
            await ctx.append_steps(StepDraft(StepKind.NOTE, "The plan was edited", payload, REVIEWED_PLAN, detail))
            return await _find_note(ctx, REVIEWED_PLAN)
        if review.is_accepted or number == MAX_REVIEWS:
            break
        comments = (*comments, review.comment)
        again = task.model_copy(update={"user_messages": (*task.user_messages, *comments)})
        reply = await call_fitted(ctx, ANALYST, again)
        if isinstance(reply, EngineFailure):
            return reply
        seq, analysis = reply.seq, reply.output
    return seq


def join_parts(steps: tuple[str, ...]) -> tuple[str, ...]:
    """Return the steps as parts of an analysis. What exceeds their maximum number is joined to the last one."""
    parts = tuple(line for step in steps if (line := " ".join(step.split())))
    return parts if len(parts) <= MAX_PARTS else (*parts[: MAX_PARTS - 1], "; ".join(parts[MAX_PARTS - 1 :]))


async def _find_note(ctx: RunContext, label: str) -> int:
    """Return the seq of the latest step with this label."""
    return next(step.seq for step in reversed(await ctx.last_steps(StepKind.NOTE, MAX_NOTES)) if step.label == label)
