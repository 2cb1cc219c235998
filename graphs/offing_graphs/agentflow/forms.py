"""Other ways to ask AgentFlow's roles than JSON: `plain` text for every role, `compact` words for a small planner.

Each form's parser reads exactly what its rules ask for. The compact planner's prompt only grows: what was said and seen
in earlier turns is repeated as it was, so that a turn goes on from the tokens of the one before.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from offing.sdk import Form, Message, ReportDraft, SpanKind, TextSpan, Unusable
from offing.world.compact import call_words, names_of, question_words, read_call
from offing.world.solving import Need
from offing_graphs.agentflow import prompts
from offing_graphs.agentflow.shapes import AnalystInput, Command, ExecutorInput, PlannerInput, Verdict, VerifierInput
from offing_graphs.parts.prompting import compact_json, in_form
from offing_graphs.parts.shapes import Analysis, Coverage, Plan, WriterInput
from offing_graphs.parts.tagged import Blocks, labelled, tagged, whole, written
from offing_graphs.parts.world import args_in, args_text, learned, observation_words
from offing_graphs.parts.written import REPORT_RULE, read_report, write_report

PLAN_LABELS = ("Justification", "Context", "Sub-Goal", "Tool Name")
PLAN_RULE = """Justification: why this is the best next step
Context: all that the tool call needs, such as search words, passage ids, positions, numbers
Sub-Goal: what this step is to find out, in one sentence
Tool Name: the exact name of one tool"""
ANALYSIS_RULE = """<summary>what the question asks, in one or two sentences</summary>
<sub_questions>
one part a line, at most 8, each understandable alone
</sub_questions>
<tools>names of the tools that are likely to help, with commas between</tools>
<considerations>pitfalls, ambiguities, words that documents may use instead</considerations>"""
COMMAND_RULE = """<tool>exact name of the planned tool</tool>
<args>its arguments as one JSON object</args>"""
VERDICT_RULE = """<analysis>what has been established, and what is missing</analysis>
<coverage>
a line for each sub-question: yes or no | the sub-question | ids of the passages that answer it | what is missing
</coverage>
<stop>true or false</stop>"""
ANALYSIS_TAGS = ("summary", "sub_questions", "tools", "considerations")
COMMAND_TAGS = ("tool", "args")
VERDICT_TAGS = ("analysis", "coverage", "stop")
STOPS = {"true": True, "false": False}
COVERED = {"yes": True, "no": False}


def plain_plan(text: str, _given: PlannerInput) -> Plan | Unusable:
    """Four labelled sections."""
    found = labelled(text, PLAN_LABELS)
    if isinstance(found, Unusable):
        return found
    why, context, goal, tool = (found[label].text for label in PLAN_LABELS)
    return _made(Plan, {"justification": why, "context": context, "sub_goal": goal, "tool": tool})


def write_plan(output: Plan, _given: PlannerInput) -> str:
    said = (output.justification, output.context, output.sub_goal, output.tool)
    return "\n".join(f"{label}: {text}" for label, text in zip(PLAN_LABELS, said, strict=True))


def plan_spans(text: str) -> tuple[TextSpan, ...]:
    """The whole plan, what was thought aloud left out."""
    said = whole(text)
    return (said.span(SpanKind.PLAN),) if said else ()


def compact_prompt(given: PlannerInput) -> tuple[Message, ...]:
    """The question, then what was said and seen turn by turn, each as a message of its own."""
    names = names_of(given.question, learned(given.memory))
    seen = {record.turn: observation_words(record, names) for record in given.memory}
    messages = [Message("user", (question_words(given.question),))]
    for past in given.past:
        messages.append(Message("assistant", (write_compact(past.plan, given),), turn=past.seq))
        messages.append(Message("user", (seen.get(past.turn, "failed"),)))
    return tuple(messages)


def compact_plan(text: str, given: PlannerInput) -> Plan | Unusable:
    """A tool's, a relation's and an entity's word."""
    call = read_call(text, names_of(given.question, learned(given.memory)))
    if isinstance(call, Unusable):
        return call
    return look_up(Need(call.relation, call.entity), call.tool)


def write_compact(output: Plan, given: PlannerInput) -> str:
    """Raises InvalidInput for a plan that is no look-up of something that has appeared."""
    args = args_in(output.context)
    names = names_of(given.question, learned(given.memory))
    return call_words(output.tool, args.get("relation", ""), args.get("entity", ""), names)


def look_up(need: Need, tool: str, why: str = "") -> Plan:
    """The plan that looks one thing up."""
    goal = f"Find the {need.relation} of {need.entity}"
    return Plan(justification=why, context=args_text(need), sub_goal=goal, tool=tool)


def plain_analysis(text: str, _given: AnalystInput) -> Analysis | Unusable:
    """Four blocks; skills are not asked for."""

    def fields(found: Mapping[str, str]) -> dict[str, Any]:
        return {
            "summary": found["summary"],
            "sub_questions": _lines(found["sub_questions"]),
            "relevant_tools": _items(found["tools"]),
            "considerations": found["considerations"],
        }

    return _read(text, ANALYSIS_TAGS, Analysis, fields)


def write_analysis(output: Analysis, _given: AnalystInput) -> str:
    parts, tools = "\n".join(output.sub_questions), ", ".join(output.relevant_tools)
    return written(zip(ANALYSIS_TAGS, (output.summary, parts, tools, output.considerations), strict=True))


def plain_command(text: str, _given: ExecutorInput) -> Command | Unusable:
    """A tool and a JSON object."""
    return _read(text, COMMAND_TAGS, Command, lambda found: {"tool": found["tool"], "args": json.loads(found["args"])})


def write_command(output: Command, _given: ExecutorInput) -> str:
    return written((("tool", output.tool), ("args", compact_json(output.args))))


def command_spans(text: str) -> tuple[TextSpan, ...]:
    said = whole(text)
    return (said.span(SpanKind.ACTION),) if said else ()


def plain_verdict(text: str, _given: VerifierInput) -> Verdict | Unusable:
    """An analysis, a line for each part, and a boolean in words; no other word than true stops."""

    def fields(found: Mapping[str, str]) -> dict[str, Any]:
        coverage = tuple(_coverage(line) for line in _lines(found["coverage"]))
        return {"analysis": found["analysis"], "coverage": coverage, "stop": STOPS.get(found["stop"], found["stop"])}

    return _read(text, VERDICT_TAGS, Verdict, fields)


def write_verdict(output: Verdict, _given: VerifierInput) -> str:
    lines = "\n".join(map(_coverage_line, output.coverage))
    return written(zip(VERDICT_TAGS, (output.analysis, lines, str(output.stop).lower()), strict=True))


def plain_report(text: str, given: WriterInput) -> ReportDraft | Unusable:
    """A report as text, see `parts.written`."""
    said = whole(text)
    return read_report(said.text, given.question) if said else Unusable("The report is empty.")


def answer_spans(text: str) -> tuple[TextSpan, ...]:
    said = whole(text)
    return (said.span(SpanKind.ANSWER),) if said else ()


def _read(
    text: str, tags: Sequence[str], shape: type[Any], fields: Callable[[Mapping[str, str]], dict[str, Any]]
) -> Any | Unusable:
    found: Blocks | Unusable = tagged(text, tags)
    if isinstance(found, Unusable):
        return found
    try:
        return _made(shape, fields({name: block.text for name, block in found.items()}))
    except ValueError as error:
        return Unusable(str(error)[:400])


def _made(shape: type[Any], fields: Mapping[str, Any]) -> Any | Unusable:
    """The value, or the first thing that is wrong with it."""
    try:
        made: BaseModel = shape.model_validate(fields)
        return made
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        return Unusable(f"{'.'.join(map(str, first['loc']))}: {first['msg']}")


def _coverage(line: str) -> Coverage:
    """Raises `ValueError` for a line of another form."""
    parts = [part.strip() for part in line.split("|")]
    if len(parts) != 4 or parts[0] not in COVERED:
        raise ValueError(f"coverage: expected yes or no | sub-question | ids | what is missing, and not: {line[:80]!r}")
    return Coverage(sub_question=parts[1], covered=COVERED[parts[0]], evidence=_items(parts[2]), missing=parts[3])


def _coverage_line(c: Coverage) -> str:
    fields = ("yes" if c.covered else "no", c.sub_question, ", ".join(c.evidence), c.missing)
    return " | ".join(" ".join(field.replace("|", "/").split()) for field in fields)


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def _items(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


ANALYST = (Form("plain", lambda g: in_form(prompts.analyst(g), ANALYSIS_RULE), plain_analysis, write=write_analysis),)
PLANNER = (
    Form("plain", lambda g: in_form(prompts.planner(g), PLAN_RULE), plain_plan, plan_spans, write_plan),
    Form("compact", compact_prompt, compact_plan, plan_spans, write_compact),
)
EXECUTOR = (
    Form("plain", lambda g: in_form(prompts.executor(g), COMMAND_RULE), plain_command, command_spans, write_command),
)
VERIFIER = (Form("plain", lambda g: in_form(prompts.verifier(g), VERDICT_RULE), plain_verdict, write=write_verdict),)
GENERATOR = (
    Form(
        "plain",
        lambda g: in_form(prompts.writer(g), REPORT_RULE),
        plain_report,
        answer_spans,
        lambda output, _given: write_report(output),
    ),
)
