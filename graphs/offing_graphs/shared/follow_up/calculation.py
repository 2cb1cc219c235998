"""Calculations for an answer to a question on a report.

An answer may need a number that neither the report nor the passages state. If the run may use the tool `calculate`, the
model names the expressions for such numbers, the tool evaluates them, and the answer is written again with the results.
The results are recorded as those of any tool call, and support the numbers of the answer.
"""

import re
from collections.abc import Iterable
from typing import Any

from offing.sdk import (
    DraftCheck,
    EngineFailure,
    Headline,
    InvalidOutput,
    Message,
    ReportDraft,
    Role,
    RunContext,
    StepKind,
    ToolCall,
    ToolResult,
    ToolStatus,
    shorten_line,
    wrap_untrusted,
)
from offing_graphs.shared.fitted_calls import call_fitted
from offing_graphs.shared.follow_up.report_roles import ReportInput
from offing_graphs.shared.prompt_parts import build_prompt, render_task
from offing_graphs.shared.schemas import FrozenModel, TaskContext
from offing_graphs.shared.tagged_text import build_text_format, parse_whole
from offing_graphs.shared.text_reports import render_report

CALCULATE = "calculate"
MAX_EXPRESSIONS = 8
MAX_EXPRESSION_CHARS = 500

SYSTEM_PROMPT = (
    "You have answered a question on a research report, and some numbers of the answer stand in no passage. Name the "
    "arithmetic expressions that give the numbers that the question needs. Use only numbers that the report, the "
    "answer or its quotes state, with + - * / ** ( ) and the functions round, sum, mean, min, max, abs. Leave out "
    "numbers that cannot be computed from those."
)
TEXT_FORMAT_RULE = """One expression per line, and nothing else:
round(100 * (42 - 37) / 37, 1)
Or, if no number can be computed:
none"""

_NUMBER = re.compile(r"\d")
_EXPRESSION = re.compile(r"[\s\w.,+\-*/%()\[\]]*\d[\s\w.,+\-*/%()\[\]]*")


class CalculationInput(TaskContext):
    """The input of the role that names the expressions."""

    report: ReportDraft
    answer: ReportDraft
    """The answer as it was first written."""
    values: tuple[str, ...]
    """Numbers of the answer that stand in no passage."""


class Calculations(FrozenModel):
    """The expressions to evaluate. Empty means that none is needed."""

    expressions: tuple[str, ...] = ()


async def calculate_for_answer(
    ctx: RunContext, writer: Role[Any, Any], inputs: ReportInput, answer: ReportDraft
) -> tuple[str, ...]:
    """Make the calculations that an answer lacks, and return them with their results. Empty means that it lacks none.

    Nothing is asked if the run has no tool `calculate`, or if each number of the answer is supported.
    """
    if not any(tool.name == CALCULATE for tool in ctx.tools):
        return ()
    values = _list_unsupported_numbers(await ctx.check_report(answer))
    if not values:
        return ()
    fields = {name: getattr(inputs, name) for name in TaskContext.model_fields}
    request = CalculationInput(**fields, report=inputs.report, answer=answer, values=values)
    reply = await call_fitted(ctx, build_calculation_role(writer), request)
    if isinstance(reply, EngineFailure):  # the answer keeps its numbers, and the report marks them
        return ()
    expressions = tuple(dict.fromkeys(reply.output.expressions))[:MAX_EXPRESSIONS]
    calls = [ToolCall(CALCULATE, {"expression": one}) for one in expressions]
    return _render_results(await ctx.call_tools(calls)) if calls else ()


def build_calculation_role(writer: Role[Any, Any]) -> Role[CalculationInput, Calculations]:
    """Return the role with which the engine of a graph's writer names calculations."""
    return Role(
        writer.name,
        CalculationInput,
        Calculations,
        render_calculation_prompt,
        lambda output: Headline("Calculations for the answer", shorten_line("; ".join(output.expressions) or "none")),
        step_kind=StepKind.ROLE_CALL,
        label="calculations",
        prompt_formats=(CALCULATION_TEXT_FORMAT,),
    )


def render_calculation_prompt(inputs: CalculationInput) -> tuple[Message, ...]:
    parts = (
        *render_task(inputs),
        f"The report:\n{wrap_untrusted(render_report(inputs.report))}",
        f"Your answer:\n{wrap_untrusted(render_report(inputs.answer))}",
        f"Numbers of it that stand in no passage: {', '.join(inputs.values)}",
    )
    return build_prompt(SYSTEM_PROMPT, parts)


def parse_calculations(text: str, _inputs: CalculationInput) -> Calculations | InvalidOutput:
    """Parse one expression per line. Lines with anything else than arithmetic are left out."""
    block = parse_whole(text)
    lines = [line.strip(" \t`-=") for line in (block.text if block else "").splitlines() if line.strip()]
    expressions = tuple(one for one in lines if len(one) <= MAX_EXPRESSION_CHARS and _EXPRESSION.fullmatch(one))
    if expressions or any(line.casefold().rstrip(".") == "none" for line in lines):
        return Calculations(expressions=expressions)
    return InvalidOutput("There is no arithmetic expression, and not the word none.")


def render_calculations(output: Calculations, _inputs: CalculationInput) -> str:
    return "\n".join(output.expressions) or "none"


def _list_unsupported_numbers(check: DraftCheck) -> tuple[str, ...]:
    values = (value for sentence in check.problems for problem in sentence.problems for value in problem.values)
    return tuple(dict.fromkeys(value for value in values if _NUMBER.search(value)))


def _render_results(results: Iterable[ToolResult]) -> tuple[str, ...]:
    return tuple(
        f"{result.content['expression']} = {result.content['text']}"
        for result in results
        if result.status is ToolStatus.OK
    )


CALCULATION_TEXT_FORMAT = build_text_format(
    render_calculation_prompt, TEXT_FORMAT_RULE, parse_calculations, render_calculations
)
