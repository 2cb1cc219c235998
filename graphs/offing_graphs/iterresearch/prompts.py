"""The prompt of a workspace, its size limits, and the `text` format with the paper's tagged blocks.

The prompt is the whole context: one constant system message and one user message that is
rebuilt in each turn. If space is short, the result of the last call is truncated, and the prompt
says so. A report is truncated only if it is longer than its limit for a small window.
"""

import json
import math
from collections.abc import Collection, Sequence
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
    Round,
    ToolObservation,
    TurnPhase,
    Workspace,
)
from offing_graphs.shared.call_batches import BATCH_RULE, MAX_CALLS, TOO_MANY_CALLS, Call, split_calls
from offing_graphs.shared.prompt_parts import (
    add_format_rules,
    build_prompt,
    name_passage,
    render_json,
    render_task,
    render_tool_cards,
)
from offing_graphs.shared.prompt_room import compute_prompt_tokens
from offing_graphs.shared.report_style import WRITING_RULES, render_report_style
from offing_graphs.shared.schemas import RetrievedPassage
from offing_graphs.shared.tagged_text import (
    NamedBlocks,
    find_thoughts_end,
    parse_tagged_list,
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
REPORT_PER_ANSWER = 0.5
"""Fraction of an answer that the report may take. The rest is for thoughts, and for tool calls or the final answer."""
MIN_RESULT_TOKENS = 200
"""Minimum tokens of a result that are always shown."""
MARKUP_TOKENS = 60
"""Tokens for the lines around a result and the notice of truncation."""
MAX_CALL_CHARS = 2_000
"""Maximum number of characters of the last call's arguments."""

RESEARCHER_TEMPLATE = (
    "You research a question in rounds. In each round you see the question, your report so far, your last tool calls "
    "and what they brought back. You see nothing else of earlier rounds, and in the next round you will not see what "
    "you see now: only the report that you write is carried over. So rewrite it whole each round. Keep in it what has"
    " been found, with the ids of passages such as [E3] and, in quotation marks, the very words that matter; what has"
    " been tried in vain; what is still open; and what you mean to do next. Leave out what no longer helps. It may "
    "have {report_tokens:,} tokens at most; a much shorter one is better. A result that was cut can be read on with a"
    " tool. In the answer every statement of fact cites at least one passage by its id and copies from it, letter by "
    "letter, the words that carry it; the copied words are checked against the stored text. "
    f"{WRITING_RULES}"
)
PHASE_PROMPTS = {
    TurnPhase.FIRST: (
        f"This is the first round. There is no report yet: begin it, and call a tool. Do not answer. {BATCH_RULE}"
    ),
    TurnPhase.MIDDLE: (
        f"Either call a tool, or, if the report holds what answers the question, answer it. {BATCH_RULE}"
    ),
    TurnPhase.FINAL: "This is the last round: no tool can be called any more. Answer the question from what is known.",
}
TURN_PROMPT = "This is round {turn:,} of {max_turns:,}."
LAST_TURN_PROMPT = "The last round must answer and can call no tool."
"""Added while further rounds follow."""
DEEP_PROMPT = (
    "This is a deep run. Breadth first: list the parts of the question in the report, and look into each of them once "
    "before any of them again. Then depth: look into what is contested, where passages contradict each other, and then "
    "what is missing, in sources other than those found so far. Answer only when every part is settled. The run asks "
    "for the answer by itself when several rounds in a row find nothing new."
)

REPORT, TOOL_CALL, ANSWER, NO_ANSWER = "report", "tool_call", "answer", "no_answer"
FINAL_TAGS = (TOOL_CALL, ANSWER, NO_ANSWER)
"""Tags of the final block. Exactly one of them ends the output; a tool call may be repeated."""
SPAN_KINDS = {
    REPORT: SpanKind.REPORT,
    TOOL_CALL: SpanKind.ACTION,
    ANSWER: SpanKind.ANSWER,
    NO_ANSWER: SpanKind.ANSWER,
}


def list_citable(inputs: Workspace) -> tuple[RetrievedPassage, ...]:
    """Return the passages that the report names and those of the last results."""
    return (*inputs.cited, *(passage for result in inputs.results for passage in result.passages))


MISSING_REPORT_TEXT = "The answer follows."
_repair_blocks = build_tag_repair(
    (REPORT, *FINAL_TAGS),
    report_tags=(ANSWER, NO_ANSWER),
    list_evidence=list_citable,
    keeps_thoughts=True,
    repeated=(TOOL_CALL,),
)
COMMON_RULE = "<think>reasoning for this round only</think>\n<report>the report, rewritten whole</report>"
CALL_RULE = '<tool_call>{"name": "exact name of a tool", "arguments": {as its JSON schema asks}}</tool_call>'
CALLS_RULE = f"{CALL_RULE}\nand, for calls at once, more such blocks, each with one call"
ANSWER_RULE = (
    f"<answer>\n{REPORT_FORMAT_RULE}\n</answer>\n"
    "or, when nothing that was found answers the question, the same within <no_answer>…</no_answer>"
)
RULES_BY_PHASE = {
    TurnPhase.FIRST: f"{COMMON_RULE}\n{CALLS_RULE}",
    TurnPhase.MIDDLE: f"{COMMON_RULE}\nand then either\n{CALLS_RULE}\nor\n{ANSWER_RULE}",
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


def compute_requested_tokens(sizes: WorkspaceSizes, answer_tokens: int | None) -> int:
    """Return the maximum length of a report that the prompt names.

    `answer_tokens` is what the model can write at once. `None` means that it is unknown. A report over this length
    is carried over whole, up to `sizes.report_tokens`.
    """
    if answer_tokens is None:
        return sizes.report_tokens
    return min(sizes.report_tokens, math.floor(answer_tokens * REPORT_PER_ANSWER))


def render_researcher_prompt(inputs: Workspace) -> tuple[Message, ...]:
    """Render the prompt of a turn. It depends only on the workspace."""
    sizes = compute_sizes(inputs.context_tokens)
    system = RESEARCHER_TEMPLATE.format(report_tokens=compute_requested_tokens(sizes, inputs.answer_tokens))
    tools = () if inputs.phase is TurnPhase.FINAL else render_tool_cards(inputs.tools, inputs.context_tokens)
    report = _render_report(inputs.report, sizes.report_tokens)
    calls = () if inputs.more_actions else _render_call(inputs.action)
    style = render_report_style(inputs.report_style)
    before = (*render_task(inputs), *style, *tools, *report, *calls)
    request = " ".join((*_render_depth(inputs), *_render_turn(inputs), PHASE_PROMPTS[inputs.phase]))
    spent = estimate_tokens(system, UNTRUSTED_BLOCK_RULE, *before, request) + MARKUP_TOKENS
    max_result_tokens = max(MIN_RESULT_TOKENS, min(sizes.result_tokens, sizes.prompt_tokens - spent))
    if inputs.more_actions:
        last, omitted = _render_batch(inputs, max_result_tokens)
    else:
        last, omitted = _render_result(inputs.result, max_result_tokens) if inputs.action else ("", 0)
    return build_prompt(system, (*before, last, request), omitted)


def _render_depth(inputs: Workspace) -> tuple[str, ...]:
    return (DEEP_PROMPT,) if inputs.deep and inputs.phase is not TurnPhase.FINAL else ()


def _render_turn(inputs: Workspace) -> tuple[str, ...]:
    """Render how far the run has come. It stands in the last part of the prompt, so that the parts before stay."""
    if not inputs.turn:
        return ()
    position = TURN_PROMPT.format(turn=inputs.turn, max_turns=inputs.max_turns)
    return (position,) if inputs.phase is TurnPhase.FINAL else (position, LAST_TURN_PROMPT)


def _render_batch(inputs: Workspace, max_tokens: int) -> tuple[str, int]:
    """Render calls that were made at once, with their results, within `max_tokens`.

    A result gets an equal part of what those before it leave. A passage that an earlier result has is
    named there. Returns the text with the number of omitted passages.
    """
    rendered, omitted, seen = ["Your last tool calls, made at once:"], 0, set[str]()
    results: Sequence[ToolObservation | None] = inputs.results or (None,) * len(inputs.actions)
    for number, (action, result) in enumerate(zip(inputs.actions, results, strict=True)):
        call = f"Call {number + 1}: {action.tool} {shorten_line(render_json(action.args), MAX_CALL_CHARS)}"
        share = max_tokens // (len(results) - number) - estimate_tokens(call)
        text, left_out = _render_new(result, seen, max(MIN_RESULT_TOKENS, share))
        rendered.append(f"{call}\n{text}")
        max_tokens -= estimate_tokens(rendered[-1])
        omitted += left_out
        seen |= {p.id for p in result.passages} if result else set()
    return "\n\n".join(rendered), omitted


def _render_new(result: ToolObservation | None, seen_ids: Collection[str], max_tokens: int) -> tuple[str, int]:
    """Render a result. Passages that an earlier result of the same turn has are only named."""
    repeated = [p.id for p in result.passages if p.id in seen_ids] if result else []
    if result is None or not repeated:
        return _render_result(result, max_tokens)
    again = f"It brought back {', '.join(repeated)} again, as the call above did."
    new = tuple(p for p in result.passages if p.id not in seen_ids)
    if not new:
        return again, 0
    text, omitted = _render_result(result.model_copy(update={"passages": new}), max_tokens)
    return f"{text}\n{again}", omitted


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
    name = name_passage(passage.id, passage.source_reference, passage.start, passage.end, passage.published)
    return f"{name}, under:\n{wrap_untrusted(shorten_line(location))}\nIts text:"


def _truncate_text(text: str, max_tokens: int) -> str:
    """Render a text as an untrusted block and state outside of it how much was cut."""
    truncated = truncate_to_tokens(text, max_tokens)
    left = len(text) - len(truncated)
    note = f"\n(Cut here: the last {left:,} of {len(text):,} characters are not shown.)" if left else ""
    return wrap_untrusted(truncated) + note


def render_text_prompt(inputs: Workspace) -> tuple[Message, ...]:
    return add_format_rules(render_researcher_prompt(inputs), RULES_BY_PHASE[inputs.phase])


def parse_output(text: str, inputs: Workspace) -> Round | InvalidOutput:
    """Parse optional thoughts, the report, and calls or one answer as the phase of the turn allows."""
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
    named = () if isinstance(blocks, InvalidOutput) else blocks
    return (*thoughts, *(block.to_span(SPAN_KINDS[name]) for name, block in named))


def render_output(output: Round, _inputs: Workspace) -> str:
    """Render an output as the blocks of a turn."""
    thoughts = [("think", output.think)] if output.think else []
    return render_tagged([*thoughts, (REPORT, output.report), *_render_final_blocks(output)])


def parse_calls(text: str) -> tuple[Call, ...] | InvalidOutput:
    """Parse one JSON object with a name and arguments, or a list of them."""
    try:
        parsed = json.loads(text, object_pairs_hook=_reject_duplicate_keys, parse_constant=_reject_constant)
        _reject_unstorable(render_json(parsed))
        calls: list[Any] = parsed if isinstance(parsed, list) else [parsed]  # pyright: ignore[reportUnknownVariableType]
        if not calls or any(set(call) != {"name", "arguments"} for call in calls):
            return _NO_CALL
        return tuple(Call(tool=call["name"], args=call["arguments"]) for call in calls)
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


def _parse_blocks(text: str) -> NamedBlocks | InvalidOutput:
    blocks = parse_tagged_list(text, (REPORT, *FINAL_TAGS), optional=FINAL_TAGS, repeated=(TOOL_CALL,))
    if isinstance(blocks, InvalidOutput):
        return blocks
    ends = {name for name, _ in blocks} - {REPORT}
    return blocks if len(ends) == 1 else InvalidOutput("After the report, write tool calls or one answer, not both.")


def _parse_final_block(blocks: NamedBlocks, inputs: Workspace) -> dict[str, Any] | InvalidOutput:
    (_, report), (name, block), *_ = blocks
    fields: dict[str, Any] = {"report": report.text}
    if name == TOOL_CALL:
        calls = _parse_call_blocks([block.text for name, block in blocks if name == TOOL_CALL], inputs)
        return calls if isinstance(calls, InvalidOutput) else fields | calls
    answer = parse_report(block.text, inputs.question)
    return answer if isinstance(answer, InvalidOutput) else fields | {"answer": answer, "answered": name == ANSWER}


def _parse_call_blocks(texts: Sequence[str], inputs: Workspace) -> dict[str, Any] | InvalidOutput:
    """Parse the calls of a turn. A call with a list of queries is one call for each of them."""
    calls: list[Call] = []
    for text in texts:
        parsed = parse_calls(text)
        if isinstance(parsed, InvalidOutput):
            return parsed
        calls += split_calls(parsed, inputs.tools)
    if len(calls) > MAX_CALLS:
        return InvalidOutput(TOO_MANY_CALLS.format(count=len(calls)))
    return {"action": calls[0], "more_actions": tuple(calls[1:])}


def _extract_thoughts(text: str) -> str:
    end = find_thoughts_end(text)
    return text[:end].strip().removeprefix("<think>").removesuffix("</think>").strip() if end else ""


def _render_final_blocks(output: Round) -> list[tuple[str, str]]:
    if output.actions:
        return [(TOOL_CALL, render_json({"name": call.tool, "arguments": call.args})) for call in output.actions]
    assert output.answer is not None
    return [((ANSWER if output.answered else NO_ANSWER), render_report(output.answer))]


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
