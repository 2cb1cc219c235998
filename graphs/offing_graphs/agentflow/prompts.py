"""The prompts of the roles, their size limits, and the `text` format.

A part that is unchanged since the previous turn is the same string, so that it is stored
once. Text from documents and tools stands between two lines with a hash of the text, which
the text cannot forge. The parser of a format accepts exactly what its rules ask for.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from offing.sdk import (
    UNTRUSTED_BLOCK_RULE,
    CompletionSpan,
    InvalidOutput,
    Message,
    ReportDraft,
    SpanKind,
)
from offing_graphs.agentflow.history import render_history, render_memory
from offing_graphs.agentflow.schemas import AnalystInput, Command, ExecutorInput, PlannerInput, Verdict, VerifierInput
from offing_graphs.shared.depth import ResearchPhase
from offing_graphs.shared.prompt_parts import (
    build_prompt,
    render_analysis,
    render_json,
    render_open_parts,
    render_passages,
    render_task,
    render_tool_cards,
)
from offing_graphs.shared.prompt_room import (
    MAX_MEMORY_TOKENS,
    compute_room,
)
from offing_graphs.shared.report_style import WRITING_RULES, render_report_style, render_template_hint
from offing_graphs.shared.schemas import (
    NOT_IN_DOCUMENTS,
    PARTLY,
    Analysis,
    Coverage,
    Plan,
    RetrievedPassage,
    WriterInput,
    resolve_part,
)
from offing_graphs.shared.source_names import shorten_source_ids
from offing_graphs.shared.tagged_text import (
    OutputT,
    build_text_format,
    find_whole_span,
    parse_labeled,
    parse_tagged,
    parse_whole,
    render_tagged,
    validate_output,
)
from offing_graphs.shared.text_repairs import build_label_repair, build_tag_repair, repair_report
from offing_graphs.shared.text_reports import REPORT_FORMAT_RULE, parse_report, render_report

MAX_PLANNER_EVIDENCE_CHARS = 16_000
MAX_EXECUTOR_EVIDENCE_CHARS = 32_000
MAX_VERIFIER_EVIDENCE_CHARS = 16_000
MAX_WRITER_EVIDENCE_CHARS = 32_000
"""Maximum number of characters of the passages in one prompt, where the window of the model is unknown."""
MAX_PLANNER_EVIDENCE_TOKENS = 32_000
MAX_VERIFIER_EVIDENCE_TOKENS = 64_000
MAX_WRITER_EVIDENCE_TOKENS = 160_000
"""Maximum estimated tokens of the passages in one prompt, however large the window is."""

ANALYST_PROMPT = (
    "You prepare research on a question that will be answered from a library of documents. Say what is asked, split it "
    "into parts that can be looked up one by one, and name what helps. Do not answer the question yet."
)
PLANNER_PROMPT = (
    "You plan research one step at a time. Choose the single next step that brings the answer closest: one sub-goal "
    "and one tool. Build on the memory of earlier steps and on the passages; do not repeat a step that has been taken, "
    "and after a search that found little, use other words. What the verifier calls not_in_documents has been searched "
    "for in vain: do not search for it again unless something new points to it. If you know all arguments of the tool, "
    "give them complete, as its JSON schema asks. Mind how many steps remain, and follow what people wrote during the "
    "run."
)
EXECUTOR_PROMPT = (
    "You turn a planned step into one call of the planned tool. Give arguments that its JSON schema accepts, and no "
    "others. Take ids and positions from the plan, the memory or the passages as they stand there."
)
VERIFIER_PROMPT = (
    "You judge whether what has been retrieved is enough to answer the question. Say for every sub-question whether "
    "passages answer it and which, and what is missing. Of one that is not covered, say whether it is answered partly, "
    "or was searched for in several ways and is not in the documents, so that nobody searches for it again. Do not "
    "repeat what was found: the analysis names only what is missing and what contradicts what, in a few words. Set "
    "stop to true only if the question is answered, or if further steps cannot help; otherwise set it to false."
)
PLANNER_PHASES = {
    ResearchPhase.BREADTH: (
        "This is a deep run in its first phase, breadth: give each sub-question one step before any of them gets "
        "another. Choose one that has had no step yet."
    ),
    ResearchPhase.DEPTH: (
        "This is a deep run in its second phase, depth: every sub-question has had its step. Look into what is "
        "contested, where passages contradict each other, and then what is missing. Look for sources other than "
        "those found so far, with other words. The run ends by itself when several steps in a row find nothing new."
    ),
}
VERIFIER_PHASES = {
    ResearchPhase.BREADTH: (
        "This is a deep run, and some sub-questions have had no step yet. Set stop to true only if passages answer "
        "every sub-question completely and nothing is contested."
    ),
    ResearchPhase.DEPTH: (
        "This is a deep run, and every sub-question has had its step. Say what is contested, and which answers rest on "
        "a single source. Set stop to true only if every sub-question is answered, and each contested point was "
        "followed up, or if further steps cannot help."
    ),
}
SEARCH_AGAIN = "The passages of the latest step come first. To see others, search for them or read their source again."
EARLIER_VERDICT = (
    "Your judgment after the previous step follows. What it calls covered stays covered, even if its passages are not "
    "shown now, unless a passage contradicts it: "
)
WRITER_PROMPT = (
    "You write a report that answers a question from retrieved passages and from nothing else. Every statement of fact "
    "cites at least one passage by its id and copies from it, letter by letter, the words that carry the statement; "
    "the copied words are checked against the stored text. Lead with a short answer and put the ids of the passages it "
    f"stands on behind it, like [E3]. {WRITING_RULES}"
)
PLAN_LABELS = ("Justification", "Context", "Sub-Goal", "Tool Name")
ARGUMENTS_LABEL = "Arguments"
PLAN_FORMAT_RULE = """Justification: why this is the best next step
Context: all that the tool call needs, such as search words, passage ids, positions, numbers
Sub-Goal: what this step is to find out, in one sentence
Tool Name: the exact name of one tool
Arguments: all its arguments as one JSON object, as its schema asks. Leave this line out if you do not know them."""
ANALYSIS_FORMAT_RULE = """<summary>what the question asks, in one or two sentences</summary>
<sub_questions>
one part a line, at most 8, each understandable alone
</sub_questions>
<tools>names of the tools that are likely to help, with commas between</tools>
<considerations>pitfalls, ambiguities, words that documents may use instead</considerations>"""
CALL_FORMAT_RULE = """<tool>exact name of the planned tool</tool>
<args>its arguments as one JSON object</args>"""
VERDICT_FORMAT_RULE = """<analysis>only what is missing and what contradicts what, in a few words</analysis>
<coverage>
a line for each sub-question: yes, partly, no or not in documents | its id, like p1 | ids of passages that answer it | \
what is missing
</coverage>
<stop>true or false</stop>"""
ANALYSIS_TAGS = ("summary", "sub_questions", "tools", "considerations")
CALL_TAGS = ("tool", "args")
VERDICT_TAGS = ("analysis", "coverage", "stop")
STOP_VALUES = {"true": True, "false": False}
COVERED_VALUES: Mapping[str, tuple[bool, str]] = {
    "yes": (True, ""),
    "no": (False, ""),
    "partly": (False, PARTLY),
    "not in documents": (False, NOT_IN_DOCUMENTS),
    "not in the documents": (False, NOT_IN_DOCUMENTS),
    "searched, not in the documents": (False, NOT_IN_DOCUMENTS),
}
"""Whether a sub-question is covered, and its state, by the first words of a line of coverage."""
STATE_WORDS = {"": "no", PARTLY: "partly", NOT_IN_DOCUMENTS: "not in documents"}

_ARGUMENTS_LINE = re.compile(rf"^[ \t]*{ARGUMENTS_LABEL}:", re.MULTILINE)


def render_analyst_prompt(inputs: AnalystInput) -> tuple[Message, ...]:
    template = render_template_hint(inputs.report_style)
    tools = render_tool_cards(inputs.tools, inputs.context_tokens)
    return build_prompt(ANALYST_PROMPT, (*render_task(inputs), *template, *tools))


def render_planner_prompt(inputs: PlannerInput) -> tuple[Message, ...]:
    before = (
        *render_task(inputs),
        render_analysis(inputs.analysis, shows_ids=True),
        *render_tool_cards(inputs.tools, inputs.context_tokens),
    )
    phase = () if inputs.phase is None else (PLANNER_PHASES[inputs.phase],)
    after = (*_render_verdict(inputs.verdict), *phase, _render_remaining_turns(inputs.turn, inputs.remaining))
    room = compute_room(inputs.context_tokens, Plan, (PLANNER_PROMPT, UNTRUSTED_BLOCK_RULE, *before, *after))
    history = render_history(inputs, room.allow(0, MAX_MEMORY_TOKENS + MAX_PLANNER_EVIDENCE_TOKENS))
    if history is not None:
        return build_prompt(PLANNER_PROMPT, (*before, *history, *after))
    memory = render_memory(inputs.memory, room, inputs.evidence)
    latest = inputs.memory[-1].evidence if inputs.memory else ()
    allowance = room.without(memory).allow(MAX_PLANNER_EVIDENCE_CHARS, MAX_PLANNER_EVIDENCE_TOKENS)
    passages = render_passages(
        (inputs.question, *inputs.analysis.sub_questions), inputs.evidence, allowance, inputs.left_out_passages, latest
    )
    tail = (SEARCH_AGAIN,) if passages.omitted else ()
    return build_prompt(PLANNER_PROMPT, (*before, *memory, *passages.parts, *tail, *after), passages.omitted)


def render_executor_prompt(inputs: ExecutorInput) -> tuple[Message, ...]:
    before = (f"The question:\n{inputs.question}", *render_tool_cards((inputs.tool,), inputs.context_tokens))
    planned = shorten_source_ids(render_json(inputs.plan.model_dump(mode="json")), inputs.evidence)
    plan = f"The planned step:\n{planned}"
    room = compute_room(inputs.context_tokens, Command, (EXECUTOR_PROMPT, UNTRUSTED_BLOCK_RULE, *before, plan))
    memory = render_memory(inputs.memory, room, inputs.evidence)
    named_ids = _find_evidence_ids(inputs.plan.context, inputs.evidence)
    named = tuple(p for p in inputs.evidence if p.id in named_ids)
    unnamed = inputs.left_out_passages + len(inputs.evidence) - len(named)
    allowance = room.without(memory).allow(MAX_EXECUTOR_EVIDENCE_CHARS, MAX_PLANNER_EVIDENCE_TOKENS)
    passages = render_passages((inputs.plan.sub_goal,), named, allowance, unnamed)
    return build_prompt(EXECUTOR_PROMPT, (*before, *passages.parts, *memory, plan), passages.omitted - unnamed)


def render_verifier_prompt(inputs: VerifierInput) -> tuple[Message, ...]:
    before = (*render_task(inputs), render_analysis(inputs.analysis, shows_ids=True))
    phase = () if inputs.phase is None else (VERIFIER_PHASES[inputs.phase],)
    remaining = f"Steps that remain after this one: {inputs.remaining}."
    after = (*_render_earlier_verdict(inputs.verdict), *phase, remaining)
    room = compute_room(inputs.context_tokens, Verdict, (VERIFIER_PROMPT, UNTRUSTED_BLOCK_RULE, *before, *after))
    history = render_history(inputs, room.allow(0, MAX_MEMORY_TOKENS + MAX_VERIFIER_EVIDENCE_TOKENS))
    if history is not None:
        return build_prompt(VERIFIER_PROMPT, (*before, *history, *after))
    memory = render_memory(inputs.memory, room, inputs.evidence)
    allowance = room.without(memory).allow(MAX_VERIFIER_EVIDENCE_CHARS, MAX_VERIFIER_EVIDENCE_TOKENS)
    latest = inputs.memory[-1].evidence if inputs.memory else ()
    passages = render_passages(
        (inputs.question, *inputs.analysis.sub_questions), inputs.evidence, allowance, inputs.left_out_passages, latest
    )
    return build_prompt(VERIFIER_PROMPT, (*before, *memory, *passages.parts, *after), passages.omitted)


def render_writer_prompt(inputs: WriterInput) -> tuple[Message, ...]:
    before = (*render_task(inputs), *render_report_style(inputs.report_style), render_analysis(inputs.analysis))
    after = (
        *_render_uncited(inputs.uncited_passages),
        *render_open_parts(inputs.open_parts),
        f"Collecting has ended; the reason is: {inputs.reason.replace('_', ' ')}.",
    )
    room = compute_room(inputs.context_tokens, ReportDraft, (WRITER_PROMPT, UNTRUSTED_BLOCK_RULE, *before, *after))
    memory = render_memory(inputs.memory, room, inputs.evidence)
    allowance = room.without(memory).allow(MAX_WRITER_EVIDENCE_CHARS, MAX_WRITER_EVIDENCE_TOKENS)
    evidence = sorted(inputs.evidence, key=lambda p: p.id not in inputs.quoted)
    passages = render_passages(
        (inputs.question, *inputs.analysis.sub_questions),
        evidence,
        allowance,
        inputs.left_out_passages,
        (*inputs.covering, *inputs.quoted),
    )
    omitted = passages.omitted + inputs.uncited_passages
    return build_prompt(WRITER_PROMPT, (*before, *memory, *passages.parts, *after), omitted)


def _render_uncited(count: int) -> tuple[str, ...]:
    return (f"{count} more passages were read by the runs for the parts and not cited by them.",) if count else ()


def _render_verdict(verdict: Verdict | None) -> tuple[str, ...]:
    return () if verdict is None else ("The verifier says: " + render_json(verdict.model_dump(mode="json")),)


def _render_earlier_verdict(verdict: Verdict | None) -> tuple[str, ...]:
    """Render the judgment after the previous turn, whose passages may have to make room for new ones."""
    if verdict is None:
        return ()
    return (EARLIER_VERDICT + render_json(verdict.model_dump(mode="json")),)


def _render_remaining_turns(turn: int, remaining: int) -> str:
    return f"This is step {turn}. Steps that remain, this one included: {remaining}."


def _find_evidence_ids(text: str, evidence: Sequence[RetrievedPassage]) -> frozenset[str]:
    words = {word.strip(".,;:()[]") for word in text.split()}
    return frozenset(p.id for p in evidence if p.id in words)


def parse_text_plan(text: str, _inputs: PlannerInput) -> Plan | InvalidOutput:
    """Parse four labeled sections, and perhaps a fifth one with the arguments of the tool."""
    labels = (*PLAN_LABELS, ARGUMENTS_LABEL) if _ARGUMENTS_LINE.search(text) else PLAN_LABELS
    blocks = parse_labeled(text, labels)
    if isinstance(blocks, InvalidOutput):
        return blocks
    why, context, goal, tool = (blocks[label].text for label in PLAN_LABELS)
    fields: dict[str, Any] = {"justification": why, "context": context, "sub_goal": goal, "tool": tool}
    if ARGUMENTS_LABEL not in blocks:
        return validate_output(Plan, fields)
    try:
        return validate_output(Plan, fields | {"args": json.loads(blocks[ARGUMENTS_LABEL].text)})
    except ValueError as error:
        return InvalidOutput(f"{ARGUMENTS_LABEL}: write one JSON object, or leave the line out: {str(error)[:200]}")


def render_text_plan(output: Plan, _inputs: PlannerInput) -> str:
    values = (output.justification, output.context, output.sub_goal, output.tool)
    lines = [f"{label}: {text}" for label, text in zip(PLAN_LABELS, values, strict=True)]
    args = [] if output.args is None else [f"{ARGUMENTS_LABEL}: {render_json(output.args)}"]
    return "\n".join([*lines, *args])


def find_plan_spans(text: str) -> tuple[CompletionSpan, ...]:
    """Return a span for the whole plan, without the model's thoughts."""
    return find_whole_span(text, SpanKind.PLAN)


def parse_text_analysis(text: str, _inputs: AnalystInput) -> Analysis | InvalidOutput:
    """Parse four blocks. The format does not ask for skills."""

    def fields(blocks: Mapping[str, str]) -> dict[str, Any]:
        return {
            "summary": blocks["summary"],
            "sub_questions": _split_lines(blocks["sub_questions"]),
            "relevant_tools": _split_items(blocks["tools"]),
            "considerations": blocks["considerations"],
        }

    return _parse_tagged_output(text, ANALYSIS_TAGS, Analysis, fields)


def render_text_analysis(output: Analysis, _inputs: AnalystInput) -> str:
    parts, tools = "\n".join(output.sub_questions), ", ".join(output.relevant_tools)
    return render_tagged(zip(ANALYSIS_TAGS, (output.summary, parts, tools, output.considerations), strict=True))


def parse_text_call(text: str, _inputs: ExecutorInput) -> Command | InvalidOutput:
    """Parse a tool name and a JSON object."""
    return _parse_tagged_output(
        text, CALL_TAGS, Command, lambda blocks: {"tool": blocks["tool"], "args": json.loads(blocks["args"])}
    )


def render_text_call(output: Command, _inputs: ExecutorInput) -> str:
    return render_tagged((("tool", output.tool), ("args", render_json(output.args))))


def parse_text_verdict(text: str, inputs: VerifierInput) -> Verdict | InvalidOutput:
    """Parse an analysis, one coverage line per part, and a boolean. Only the word `true` stops."""

    def fields(blocks: Mapping[str, str]) -> dict[str, Any]:
        coverage = tuple(
            _parse_coverage(line, inputs.analysis.sub_questions) for line in _split_lines(blocks["coverage"])
        )
        return {
            "analysis": blocks["analysis"],
            "coverage": coverage,
            "stop": STOP_VALUES.get(blocks["stop"], blocks["stop"]),
        }

    return _parse_tagged_output(text, VERDICT_TAGS, Verdict, fields)


def render_text_verdict(output: Verdict, _inputs: VerifierInput) -> str:
    lines = "\n".join(map(_render_coverage, output.coverage))
    return render_tagged(zip(VERDICT_TAGS, (output.analysis, lines, str(output.stop).lower()), strict=True))


def parse_text_report(text: str, inputs: WriterInput) -> ReportDraft | InvalidOutput:
    """Parse a report as text, see `shared.text_reports`."""
    block = parse_whole(text)
    return parse_report(block.text, inputs.question) if block else InvalidOutput("The report is empty.")


def render_text_report(output: ReportDraft, _inputs: WriterInput) -> str:
    return render_report(output)


def _parse_tagged_output(
    text: str, tags: Sequence[str], schema: type[OutputT], fields: Callable[[Mapping[str, str]], dict[str, Any]]
) -> OutputT | InvalidOutput:
    blocks = parse_tagged(text, tags)
    if isinstance(blocks, InvalidOutput):
        return blocks
    try:
        return validate_output(schema, fields({name: block.text for name, block in blocks.items()}))
    except ValueError as error:
        return InvalidOutput(str(error)[:400])


def _parse_coverage(line: str, sub_questions: Sequence[str]) -> Coverage:
    """Parse a coverage line, which names its sub-question by id, by number or in words.

    Raises `ValueError` if the line has another form.
    """
    parts = [part.strip() for part in line.split("|")]
    if len(parts) != 4 or parts[0] not in COVERED_VALUES:
        values = "yes, partly, no or not in documents"
        raise ValueError(f"coverage: expected {values} | sub-question | ids | what is missing, and not: {line[:80]!r}")
    covered, state = COVERED_VALUES[parts[0]]
    name, evidence = resolve_part(parts[1], sub_questions), _split_items(parts[2])
    fields = {"sub_question": name, "covered": covered, "state": state, "evidence": evidence, "missing": parts[3]}
    return Coverage.model_validate(fields)


def _render_coverage(coverage: Coverage) -> str:
    fields = (
        "yes" if coverage.covered else STATE_WORDS[coverage.state],
        coverage.sub_question,
        ", ".join(coverage.evidence),
        coverage.missing,
    )
    return " | ".join(" ".join(field.replace("|", "/").split()) for field in fields)


def _split_lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def _split_items(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


ANALYST_TEXT_FORMAT = build_text_format(
    render_analyst_prompt,
    ANALYSIS_FORMAT_RULE,
    parse_text_analysis,
    render_text_analysis,
    repair=build_tag_repair(ANALYSIS_TAGS),
)
PLANNER_TEXT_FORMAT = build_text_format(
    render_planner_prompt,
    PLAN_FORMAT_RULE,
    parse_text_plan,
    render_text_plan,
    SpanKind.PLAN,
    build_label_repair(PLAN_LABELS, (ARGUMENTS_LABEL,)),
)
EXECUTOR_TEXT_FORMAT = build_text_format(
    render_executor_prompt,
    CALL_FORMAT_RULE,
    parse_text_call,
    render_text_call,
    SpanKind.ACTION,
    build_tag_repair(CALL_TAGS),
)
VERIFIER_TEXT_FORMAT = build_text_format(
    render_verifier_prompt,
    VERDICT_FORMAT_RULE,
    parse_text_verdict,
    render_text_verdict,
    repair=build_tag_repair(VERDICT_TAGS),
)
GENERATOR_TEXT_FORMAT = build_text_format(
    render_writer_prompt,
    REPORT_FORMAT_RULE,
    parse_text_report,
    render_text_report,
    SpanKind.ANSWER,
    lambda text, inputs: repair_report(text, inputs.evidence),
)
