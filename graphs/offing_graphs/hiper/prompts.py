"""The prompt of a turn, its size limits, and the `text` format with tagged blocks.

The agent sees the task, the status, its last two turns in full, the passages that it may
cite and the current subgoal. Earlier turns are not shown, except for values that no passage
contains.

The output and its spans are read from the same blocks, so that a segment boundary in the
record is a boundary in the tokens. No text may stand outside of the blocks, so there is no
place for free reasoning.
"""

import math
import re
from collections.abc import Mapping, Sequence
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
from offing_graphs.hiper.schemas import ANSWER, FINAL_ACTIONS, GIVE_UP, Action, AgentInput, Switch, Turn, TurnRecord
from offing_graphs.shared.prompt_parts import (
    add_format_rules,
    build_prompt,
    render_json,
    render_passages,
    render_task,
    render_tool_cards,
)
from offing_graphs.shared.prompt_room import MEMORY_FRACTION, PromptRoom, compute_room
from offing_graphs.shared.report_style import WRITING_RULES, render_report_style
from offing_graphs.shared.tagged_text import Blocks, parse_tagged, parse_whole, render_tagged, validate_output
from offing_graphs.shared.text_repairs import build_tag_repair, repair_report
from offing_graphs.shared.text_reports import (
    CALL_FORMAT_RULE,
    REPORT_FORMAT_RULE,
    parse_call,
    parse_report,
    render_call,
    render_report,
)
from offing_graphs.shared.token_estimate import estimate_tokens

MAX_FULL_RECORDS = 2
"""Number of the latest turns whose action and observation are shown."""
MAX_VALUES = 40
"""Maximum number of earlier results that are not passages, one per line."""
MAX_EVIDENCE_CHARS = 16_000
"""Maximum number of characters of the passages, where the window of the model is unknown."""
MAX_EVIDENCE_TOKENS = 64_000
"""Maximum estimated tokens of the passages, however large the window is."""

AGENT_PROMPT = (
    "You answer a question from a library, one action a turn, and keep a subgoal that guides several turns. Each turn, "
    "decide first whether the current subgoal still serves: KEEP it and copy it letter by letter, or SWITCH when it is "
    "reached or leads nowhere, and write a new one in a few words. Then take one action that serves it: a tool call, "
    f"or `{ANSWER}` with the report once the passages and results suffice, or `{GIVE_UP}` with a report that says what "
    "is missing when nothing more can help. Do not repeat an action that has been taken. In a report, every statement "
    "of fact cites a passage by its id and copies from it, letter by letter, the words that carry the statement; the "
    f"copied words are checked. Lead with a short answer. {WRITING_RULES}"
)
TAGS = ("switch", "subgoal", "action")
SPAN_KINDS = {"switch": SpanKind.SWITCH, "subgoal": SpanKind.SUBGOAL, "action": SpanKind.ACTION}
TEXT_FORMAT_RULE = f"""<switch>KEEP or SWITCH</switch>
<subgoal>the current subgoal, copied, under KEEP; a new one in a few words under SWITCH</subgoal>
<action>one action</action>
An action is either {CALL_FORMAT_RULE}; or the word {ANSWER} or {GIVE_UP}, and on the lines after it the report \
like this:
{REPORT_FORMAT_RULE}"""

_repair_blocks = build_tag_repair(TAGS)
_FINAL_PATTERN = re.compile(rf"<action>\s*({ANSWER}|{GIVE_UP})\s*\n(.*?)</action>", re.DOTALL)
_ACTION_PATTERN = re.compile(r"<action>.*?</action>", re.DOTALL)


def render_agent_prompt(inputs: AgentInput) -> tuple[Message, ...]:
    style = render_report_style(inputs.report_style)
    before = (*render_task(inputs), *style, *render_tool_cards(inputs.tools, inputs.context_tokens))
    latest = tuple(map(_render_value_pair, inputs.memory[-MAX_FULL_RECORDS:]))
    status = _render_status(inputs)
    room = compute_room(inputs.context_tokens, Turn, (AGENT_PROMPT, UNTRUSTED_BLOCK_RULE, *before, *latest, status))
    values = _render_values(inputs.memory[:-MAX_FULL_RECORDS], room)
    allowance = room.without(values).allow(MAX_EVIDENCE_CHARS, MAX_EVIDENCE_TOKENS)
    questions = (inputs.question, *filter(None, (inputs.subgoal,)))
    new_ids = inputs.memory[-1].evidence if inputs.memory and inputs.context_tokens else ()
    passages = render_passages(questions, inputs.evidence, allowance, inputs.left_out_passages, new_ids)
    return build_prompt(AGENT_PROMPT, (*before, *passages.parts, *values, *latest, status), passages.omitted)


def _render_values(older: Sequence[TurnRecord], room: PromptRoom) -> tuple[str, ...]:
    """Render results that no passage contains, the latest ones that fit, and the number of the others."""
    lines = [f"Turn {r.turn}, {shorten_line(_render_call(r), 160)}: {shorten_line(r.value)}" for r in older if r.value]
    latest = lines[-MAX_VALUES:]
    max_tokens = None if room.tokens is None else math.floor(room.tokens * MEMORY_FRACTION)
    while max_tokens is not None and latest and estimate_tokens(*latest) > max_tokens:
        latest = latest[1:]
    omitted = len(lines) - len(latest)
    head = (f"{omitted} results of earlier turns are not shown.",) if omitted else ()
    return (*head, *(("Results of earlier turns:\n" + wrap_untrusted("\n".join(latest)),) if latest else ()))


def _render_value_pair(record: TurnRecord) -> str:
    return (
        f"Turn {record.turn}. Action: {shorten_line(_render_call(record), 800)}\nOutcome: "
        f"{record.status}\n{wrap_untrusted(record.finding)}"
    )


def _render_call(record: TurnRecord) -> str:
    return f"{record.tool} {render_json(record.args)}"


def _render_status(inputs: AgentInput) -> str:
    current = f"The current subgoal: {inputs.subgoal or 'None'}"
    if inputs.reason:
        ended = f"The work must end now; the reason is: {inputs.reason.replace('_', ' ')}."
        return f"{ended} The action must be `{ANSWER}` or `{GIVE_UP}`.\n{current}"
    return f"This is turn {inputs.turn} of {inputs.turn + inputs.remaining - 1}.\n{current}"


def render_text_prompt(inputs: AgentInput) -> tuple[Message, ...]:
    return add_format_rules(render_agent_prompt(inputs), TEXT_FORMAT_RULE)


def parse_text_blocks(text: str) -> Blocks | InvalidOutput:
    """Parse the three blocks. A response without action tags is the action and keeps the subgoal."""
    if _ACTION_PATTERN.search(text):
        return parse_tagged(text, TAGS, optional=("switch", "subgoal"))
    block = parse_whole(text)
    return {"action": block} if block else InvalidOutput(f"The answer is empty. Expected:\n{TEXT_FORMAT_RULE}")


def parse_text_turn(text: str, inputs: AgentInput) -> Turn | InvalidOutput:
    blocks = parse_text_blocks(text)
    if isinstance(blocks, InvalidOutput):
        return blocks
    action = _parse_text_action(blocks["action"].text, inputs)
    if isinstance(action, InvalidOutput):
        return action
    return build_turn(
        {"switch": _get_block_text(blocks, "switch"), "subgoal": _get_block_text(blocks, "subgoal"), "action": action},
        inputs,
    )


def render_text_turn(output: Turn, _inputs: AgentInput) -> str:
    action = output.action
    text = f"{action.tool}\n{render_report(action.report)}" if action.report else render_call(action.tool, action.args)
    return render_tagged(zip(TAGS, (output.switch, output.subgoal, text), strict=True))


def find_text_spans(text: str) -> tuple[CompletionSpan, ...]:
    return spans_from_blocks(parse_text_blocks(text))


def build_turn(fields: Mapping[str, Any], inputs: AgentInput) -> Turn | InvalidOutput:
    """Validate the fields and return the turn, or the first validation error."""
    if inputs.reason and not fields["action"].is_final:
        return InvalidOutput(f"No tool can be called any more. The action must be {ANSWER} or {GIVE_UP}.")
    return validate_output(Turn, fields)


def spans_from_blocks(blocks: Blocks | InvalidOutput) -> tuple[CompletionSpan, ...]:
    return (
        ()
        if isinstance(blocks, InvalidOutput)
        else tuple(blocks[tag].to_span(_classify_span(tag, blocks)) for tag in TAGS if tag in blocks)
    )


def _parse_text_action(text: str, inputs: AgentInput) -> Action | InvalidOutput:
    head, _, rest = text.partition("\n")
    if head.strip() in FINAL_ACTIONS:
        report = parse_report(rest, inputs.question)
        return report if isinstance(report, InvalidOutput) else Action(tool=head.strip(), report=report)
    call = parse_call(text)
    return call if isinstance(call, InvalidOutput) else _build_action(*call)


def _build_action(tool: str, args: dict[str, Any]) -> Action | InvalidOutput:
    return InvalidOutput(f"{tool} needs a report.") if tool in FINAL_ACTIONS else Action(tool=tool, args=args)


def repair_text_turn(text: str, inputs: AgentInput) -> RepairedText:
    """Repair the blocks of a turn, and the report of a final action."""
    repaired = _repair_blocks(text, inputs)
    match = _FINAL_PATTERN.search(repaired.text)
    if match is None:
        return repaired
    report = repair_report(match.group(2), inputs.evidence)
    if not report.repairs:
        return repaired
    text = f"{repaired.text[: match.start(2)]}{report.text.strip()}\n{repaired.text[match.end(2) :]}"
    return RepairedText(text, (*repaired.repairs, *report.repairs))


def _get_block_text(blocks: Blocks, tag: str) -> str:
    return blocks[tag].text if tag in blocks else ""


def _classify_span(tag: str, blocks: Blocks) -> SpanKind:
    """Return the kind of a span.

    A subgoal under KEEP is a copy, so only a new subgoal counts as a subgoal.
    """
    copied = tag == "subgoal" and _get_block_text(blocks, "switch") != Switch.SWITCH
    return SpanKind.KEPT if copied else SPAN_KINDS[tag]


TEXT_FORMAT = PromptFormat(
    "text", render_text_prompt, parse_text_turn, find_text_spans, render_text_turn, repair=repair_text_turn
)
