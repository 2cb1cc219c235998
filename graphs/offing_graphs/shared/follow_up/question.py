"""Answers to questions on a report, from the report and its stored evidence."""

from typing import Any

from offing.sdk import (
    UNTRUSTED_BLOCK_RULE,
    EarlierReport,
    EngineFailure,
    Message,
    ReportDraft,
    Role,
    RunContext,
    StopReason,
    wrap_untrusted,
)
from offing_graphs.shared.findings import passages_from_evidence
from offing_graphs.shared.fitted_calls import call_fitted
from offing_graphs.shared.follow_up.calculation import calculate_for_answer
from offing_graphs.shared.follow_up.report_roles import ReportInput, build_report_role
from offing_graphs.shared.memory import MAX_EVIDENCE, count_earlier_passages
from offing_graphs.shared.prompt_parts import build_prompt, render_passages, render_task
from offing_graphs.shared.prompt_room import compute_room
from offing_graphs.shared.report import add_title, build_quote_report
from offing_graphs.shared.schemas import TaskContext
from offing_graphs.shared.stop_reasons import stop_reason_from_failure
from offing_graphs.shared.text_reports import REPORT_FORMAT_RULE, render_report

MAX_EVIDENCE_CHARS = 32_000
MAX_EVIDENCE_TOKENS = 64_000

SYSTEM_PROMPT = (
    "You answer a question that a person asks about a research report that they have. Use the report and the passages "
    "that it was made from, and nothing else. Answer briefly: a short answer, and sections only where they are needed. "
    "Every statement of fact cites at least one passage by its id and copies from it, letter by letter, the words that "
    "carry the statement; you may reuse the citations of the report. If the question needs a number that follows from "
    "others, work it out, and cite the passages with those. If the report and the passages do not answer the "
    "question, say so, and do not guess."
)
CALCULATIONS_HEAD = (
    "Calculations that were made for this answer. State their results, rounded where that helps, and cite the passages "
    "with the numbers that they use; a result needs no quote:"
)


class QuestionInput(ReportInput):
    """The input of a role that answers a question on a report."""

    calculations: tuple[str, ...] = ()
    """Calculations for the answer with their results, such as `42 - 37 = 5`."""


async def answer_question(
    ctx: RunContext, writer: Role[Any, Any], task: TaskContext, earlier: EarlierReport
) -> tuple[ReportDraft, StopReason]:
    """Return the answer to a question on a report. A model writes it if one answers the writer's role.

    Numbers of the answer that stand in no passage are calculated, and the answer is then written again.
    """
    evidence = await ctx.get_evidence(MAX_EVIDENCE)
    inputs = QuestionInput(
        **dict(task),
        report=earlier.draft,
        evidence=passages_from_evidence(evidence),
        left_out_passages=count_earlier_passages(evidence),
    )
    if not ctx.can_revise(writer):
        return _quote_answer(inputs), _resolve_reason(inputs)
    reply = await call_fitted(ctx, build_question_role(writer), inputs)
    if isinstance(reply, EngineFailure):
        return _quote_answer(inputs), stop_reason_from_failure(reply)
    answer = reply.output
    if calculations := await calculate_for_answer(ctx, writer, inputs, answer):
        again = inputs.model_copy(update={"calculations": calculations})
        reply = await call_fitted(ctx, build_question_role(writer), again)
        answer = answer if isinstance(reply, EngineFailure) else reply.output
    return add_title(answer, task.question), _resolve_reason(inputs)


def build_question_role(writer: Role[Any, Any]) -> Role[QuestionInput, ReportDraft]:
    """Return the role with which the engine of a writer answers a question on a report."""
    return build_report_role(writer, QuestionInput, "answer", render_question_prompt, REPORT_FORMAT_RULE)


def render_question_prompt(inputs: QuestionInput) -> tuple[Message, ...]:
    before = (*render_task(inputs), f"The report:\n{wrap_untrusted(render_report(inputs.report))}")
    if inputs.calculations:
        before = (*before, "\n".join((CALCULATIONS_HEAD, *inputs.calculations)))
    room = compute_room(inputs.context_tokens, ReportDraft, (SYSTEM_PROMPT, UNTRUSTED_BLOCK_RULE, *before))
    allowance = room.allow(MAX_EVIDENCE_CHARS, MAX_EVIDENCE_TOKENS)
    passages = render_passages((inputs.question,), inputs.evidence, allowance, inputs.left_out_passages)
    return build_prompt(SYSTEM_PROMPT, (*before, *passages.parts), passages.omitted)


def _quote_answer(inputs: ReportInput) -> ReportDraft:
    """Return an answer of quotes, without a model."""
    task = TaskContext(question=inputs.question, earlier=inputs.earlier, user_messages=inputs.user_messages)
    return add_title(build_quote_report(task, inputs.evidence), inputs.question)


def _resolve_reason(inputs: ReportInput) -> StopReason:
    return StopReason.ANSWERED if inputs.evidence else StopReason.NOTHING_FOUND
