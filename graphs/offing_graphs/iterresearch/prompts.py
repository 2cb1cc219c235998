"""The prompt of a workspace, its size limits, and the `text` format with the paper's tagged blocks.

The prompt is the whole context: one constant system message and one user message that is
rebuilt in each turn. If space is short, the result of the last call is truncated, and the prompt
says so. A report is truncated only if it is longer than its limit for a small window.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from offing.sdk import (
    UNTRUSTED_BLOCK_RULE,
    CompletionSpan,
    InvalidOutput,
    Message,
    PromptFormat,
    RepairedText,
    SpanKind,
    shorten_line,
    wrap_untrusted,
)
from offing_graphs.iterresearch.schemas import (
    MAX_REPORT_TOKENS,
    OUTPUTS_BY_PHASE,
    Call,
    Round,
    ToolObservation,
    TurnPhase,
    Workspace,
)
from offing_graphs.shared.prompt_parts import (
    add_format_rules,
    build_prompt,
    render_json,
    render_task,
    render_tool_cards,
)
from offing_graphs.shared.prompt_room import compute_prompt_tokens
from offing_graphs.shared.report_style import WRITING_RULES, render_report_style
from offing_graphs.shared.schemas import RetrievedPassage
from offing_graphs.shared.tagged_text import (
    Block,
    Blocks,
    find_thoughts_end,
    parse_tagged,
    render_tagged,
    validate_output,
)
from offing_graphs.shared.text_repairs import build_tag_repair
from offing_graphs.shared.text_reports import REPORT_FORMAT_RULE, parse_report, render_report
from offing_graphs.shared.token_estimate import estimate_tokens, truncate_to_tokens

MAX_WORKSPACE_TOKENS = 40_960
"""Maximum estimated tokens of prompt and answer together, as in the paper."""
MAX_ANSWER_TOKENS = 8_192
"""Tokens that are reserved for the answer."""
MAX_RESULT_TOKENS = 8_000
"""Maximum tokens of the result of the last call."""
MAX_WIDE_RESULT_TOKENS = 64_000
"""Maximum tokens of the result of the last call, however large the window of the model is."""
REPORT_FRACTION = 0.14
"""Fraction of a known window that the report may take, as in the paper."""
MIN_RESULT_TOKENS = 200
"""Minimum tokens of a result that are always shown."""
MARKUP_TOKENS = 60
"""Tokens for the lines around a result and the notice of truncation."""
MAX_CALL_CHARS = 2_000
"""Maximum number of characters of the last call's arguments."""

RESEARCHER_TEMPLATE = (
    "You research a question in rounds. In each round you see the question, your report so far, your last tool call "
    "and what it brought back. You see nothing else of earlier rounds, and in the next round you will not see what you "
    "see now: only the report that you write is carried over. So rewrite it whole each round. Keep in it what has been "
    "found, with the ids of passages such as [E3] and, in quotation marks, the very words that matter; what has been "
    "tried in vain; what is still open; and what you mean to do next. Leave out what no longer helps. It may have "
    "{report_tokens:,} tokens at most; a much shorter one is better. A result that was cut can be read on with a "
    "tool. In the answer every statement of fact cites at least one passage by its id and copies from it, letter by "
    f"letter, the words that carry it; the copied words are checked against the stored text. {WRITING_RULES}"
)
RESEARCHER_PROMPT = RESEARCHER_TEMPLATE.format(report_tokens=MAX_REPORT_TOKENS)
"""The system text for a window that is large enough for the whole workspace, or unknown."""
PHASE_PROMPTS = {
    TurnPhase.FIRST: (
        "This is the first round. There is no report yet: begin it, and make one tool call. Do not answer."
    ),
    TurnPhase.MIDDLE: "Either make one tool call, or, if the report holds what answers the question, answer it.",
    TurnPhase.FINAL: "This is the last round: no tool can be called any more. Answer the question from what is known.",
}

REPORT, TOOL_CALL, ANSWER, NO_ANSWER = "report", "tool_call", "answer", "no_answer"
FINAL_TAGS = (TOOL_CALL, ANSWER, NO_ANSWER)
"""Tags of the final block. Exactly one of them ends the output."""
SPAN_KINDS = {
    REPORT: SpanKind.REPORT,
    TOOL_CALL: SpanKind.ACTION,
    ANSWER: SpanKind.ANSWER,
    NO_ANSWER: SpanKind.ANSWER,
}


def list_citable(inputs: Workspace) -> tuple[RetrievedPassage, ...]:
    """Return the passages that the report names and those of the last result."""
    return (*inputs.cited, *(inputs.result.passages if inputs.result else ()))


MISSING_REPORT_TEXT = "The answer follows."
_repair_blocks = build_tag_repair(
    (REPORT, *FINAL_TAGS), report_tags=(ANSWER, NO_ANSWER), list_evidence=list_citable, keeps_thoughts=True
)
COMMON_RULE = "<think>reasoning for this round only</think>\n<report>the report, rewritten whole</report>"
CALL_RULE = '<tool_call>{"name": "exact name of a tool", "arguments": {as its JSON schema asks}}</tool_call>'
ANSWER_RULE = (
    f"<answer>\n{REPORT_FORMAT_RULE}\n</answer>\n"
    "or, when nothing that was found answers the question, the same within <no_answer>…</no_answer>"
)
RULES_BY_PHASE = {
    TurnPhase.FIRST: f"{COMMON_RULE}\n{CALL_RULE}",
    TurnPhase.MIDDLE: f"{COMMON_RULE}\nand then either\n{CALL_RULE}\nor\n{ANSWER_RULE}",
    TurnPhase.FINAL: f"{COMMON_RULE}\n{ANSWER_RULE}",
}


@dataclass(frozen=True, slots=True)
class WorkspaceSizes:
    """Maximum estimated tokens of the workspace and its parts."""

    prompt_tokens: int
    """Maximum of the whole prompt."""
    report_tokens: int
    result_tokens: int
    """Maximum of the result of the last call."""


def compute_sizes(context_tokens: int | None) -> WorkspaceSizes:
    """Return the sizes for a context window. `None` means that it is unknown, so that the paper's sizes apply."""
    if context_tokens is None:
        return WorkspaceSizes(MAX_WORKSPACE_TOKENS - MAX_ANSWER_TOKENS, MAX_REPORT_TOKENS, MAX_RESULT_TOKENS)
    prompt = compute_prompt_tokens(context_tokens, Round)
    return WorkspaceSizes(
        prompt,
        min(MAX_REPORT_TOKENS, math.floor(context_tokens * REPORT_FRACTION)),
        min(MAX_WIDE_RESULT_TOKENS, max(MAX_RESULT_TOKENS, prompt // 2)),
    )


def render_researcher_prompt(inputs: Workspace) -> tuple[Message, ...]:
    """Render the prompt of a turn. It depends only on the workspace."""
    sizes = compute_sizes(inputs.context_tokens)
    system = RESEARCHER_TEMPLATE.format(report_tokens=sizes.report_tokens)
    tools = () if inputs.phase is TurnPhase.FINAL else render_tool_cards(inputs.tools, inputs.context_tokens)
    report = _render_report(inputs.report, sizes.report_tokens)
    style = render_report_style(inputs.report_style)
    before = (*render_task(inputs), *style, *tools, *report, *_render_call(inputs.action))
    request = PHASE_PROMPTS[inputs.phase]
    spent = estimate_tokens(system, UNTRUSTED_BLOCK_RULE, *before, request) + MARKUP_TOKENS
    max_result_tokens = max(MIN_RESULT_TOKENS, min(sizes.result_tokens, sizes.prompt_tokens - spent))
    last, omitted = _render_result(inputs.result, max_result_tokens) if inputs.action else ("", 0)
    return build_prompt(system, (*before, last, request), omitted)


def _render_report(report: str, max_tokens: int) -> tuple[str, ...]:
    """Render the report as untrusted text, because it quotes third parties. A report over its limit is cut."""
    return (f"Your report so far:\n{_truncate_text(report, max_tokens)}",) if report else ()


def _render_call(action: Call | None) -> tuple[str, ...]:
    if action is None:
        return ()
    return (f"Your last tool call: {action.tool} {shorten_line(render_json(action.args), MAX_CALL_CHARS)}",)


def _render_result(result: ToolObservation | None, max_tokens: int) -> tuple[str, int]:
    """Render the result of the last call within `max_tokens`. Return it with the number of omitted passages."""
    if result is None:
        return "It was not made.", 0
    if result.message:
        return f"It failed ({result.status}):\n{_truncate_text(result.message, max_tokens)}", 0
    if result.passages:
        rendered, omitted = _render_passages(result.passages, max_tokens)
        return "It brought back:\n" + "\n".join(rendered), omitted
    return "It brought back:\n" + _truncate_text(result.value or "Nothing was found.", max_tokens), 0


def _render_passages(passages: Sequence[RetrievedPassage], max_tokens: int) -> tuple[list[str], int]:
    """Render the passages that fit, the last one perhaps in part, and the ids of the omitted ones."""
    rendered: list[str] = []
    for number, passage in enumerate(passages):
        head = _render_passage_header(passage)
        left = max_tokens - estimate_tokens(head) - MARKUP_TOKENS
        if left <= 0 and rendered:
            ids = ", ".join(p.id for p in passages[number:])
            omitted = len(passages) - number
            return [*rendered, f"(There was no room for {omitted} more passages: {ids}.)"], omitted
        rendered.append(f"{head}\n{_truncate_text(passage.text, left)}")
        max_tokens -= estimate_tokens(rendered[-1])
    return rendered, 0


def _render_passage_header(passage: RetrievedPassage) -> str:
    location = f"{passage.title} \u203a {passage.heading}" if passage.heading else passage.title
    where = f"Passage {passage.id} (source {passage.source}, {passage.start} to {passage.end}), under:"
    return f"{where}\n{wrap_untrusted(shorten_line(location))}\nIts text:"


def _truncate_text(text: str, max_tokens: int) -> str:
    """Render a text as an untrusted block and state outside of it how much was cut."""
    truncated = truncate_to_tokens(text, max_tokens)
    left = len(text) - len(truncated)
    note = f"\n(Cut here: the last {left:,} of {len(text):,} characters are not shown.)" if left else ""
    return wrap_untrusted(truncated) + note


def render_text_prompt(inputs: Workspace) -> tuple[Message, ...]:
    return add_format_rules(render_researcher_prompt(inputs), RULES_BY_PHASE[inputs.phase])


def parse_output(text: str, inputs: Workspace) -> Round | InvalidOutput:
    """Parse optional thoughts, the report, and one call or answer as the phase of the turn allows."""
    if "\0" in text:
        return InvalidOutput("It holds a NUL character.")
    blocks = _parse_blocks(text)
    if isinstance(blocks, InvalidOutput):
        return blocks
    last = _parse_final_block(blocks, inputs)
    if isinstance(last, InvalidOutput):
        return last
    return validate_output(OUTPUTS_BY_PHASE[inputs.phase], {"think": _extract_thoughts(text), **last}, "the answer")


def find_spans(text: str) -> tuple[CompletionSpan, ...]:
    """Return the spans of the blocks, including their tags."""
    end = find_thoughts_end(text)
    thoughts = (CompletionSpan(SpanKind.THINK, text.index("<think>"), end),) if end else ()
    blocks = _parse_blocks(text)
    named = () if isinstance(blocks, InvalidOutput) else blocks.items()
    return (*thoughts, *(block.to_span(SPAN_KINDS[name]) for name, block in named))


def render_output(output: Round, _inputs: Workspace) -> str:
    """Render an output as the blocks of a turn."""
    thoughts = [("think", output.think)] if output.think else []
    return render_tagged([*thoughts, (REPORT, output.report), _render_final_block(output)])


def parse_call(text: str) -> Call | InvalidOutput:
    """Parse exactly one JSON object with a name and arguments."""
    try:
        call = json.loads(text, object_pairs_hook=_reject_duplicate_keys, parse_constant=_reject_constant)
        _reject_unstorable(render_json(call))
        return Call(tool=call["name"], args=call["arguments"]) if set(call) == {"name", "arguments"} else _NO_CALL
    except (ValueError, TypeError, RecursionError):
        return _NO_CALL


_NO_CALL = InvalidOutput('The tool call must be one JSON object {"name": "…", "arguments": {…}} and nothing else.')


def _reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(fields := dict(pairs)) < len(pairs):
        raise ValueError("a key occurs twice")
    return fields


def _reject_unstorable(text: str) -> None:
    """Raise `ValueError` for NUL and lone surrogates, which the database cannot store."""
    text.encode()
    if "\\u0000" in text:
        raise ValueError("it holds a NUL character")


def _reject_constant(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def _parse_blocks(text: str) -> Blocks | InvalidOutput:
    blocks = parse_tagged(text, (REPORT, *FINAL_TAGS), optional=FINAL_TAGS)
    if isinstance(blocks, InvalidOutput):
        return blocks
    ends = [name for name in FINAL_TAGS if name in blocks]
    return (
        blocks
        if len(ends) == 1
        else InvalidOutput("After the report, write one tool call or one answer, and only one.")
    )


def _parse_final_block(blocks: Blocks, inputs: Workspace) -> dict[str, Any] | InvalidOutput:
    fields: dict[str, Any] = {"report": blocks[REPORT].text}
    if TOOL_CALL in blocks:
        call = parse_call(blocks[TOOL_CALL].text)
        return call if isinstance(call, InvalidOutput) else fields | {"action": call}
    block: Block = blocks.get(ANSWER) or blocks[NO_ANSWER]
    answer = parse_report(block.text, inputs.question)
    return answer if isinstance(answer, InvalidOutput) else fields | {"answer": answer, "answered": ANSWER in blocks}


def _extract_thoughts(text: str) -> str:
    end = find_thoughts_end(text)
    return text[:end].strip().removeprefix("<think>").removesuffix("</think>").strip() if end else ""


def _render_final_block(output: Round) -> tuple[str, str]:
    if output.action is not None:
        return TOOL_CALL, render_json({"name": output.action.tool, "arguments": output.action.args})
    assert output.answer is not None
    return (ANSWER if output.answered else NO_ANSWER), render_report(output.answer)


def repair_output_text(text: str, inputs: Workspace) -> RepairedText:
    """Repair the blocks of a turn. In the last turn an answer needs no report, because nothing is carried over."""
    repaired = _repair_blocks(text, inputs)
    if inputs.phase is not TurnPhase.FINAL or f"<{REPORT}>" in repaired.text:
        return repaired
    end = find_thoughts_end(repaired.text)
    report = render_tagged([(REPORT, MISSING_REPORT_TEXT)])
    return RepairedText(
        f"{repaired.text[:end]}\n{report}\n{repaired.text[end:].lstrip()}".lstrip(),
        (*repaired.repairs, "missing_report"),
    )


TEXT_FORMAT = PromptFormat(
    "text", render_text_prompt, parse_output, find_spans, render_output, repair=repair_output_text
)
