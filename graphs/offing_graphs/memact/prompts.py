"""The context as a conversation, which only grows between edits, and its `text` format.

A record is an assistant message with the action as written and a user message with its
observation. User messages follow the record after which they were first shown. A completion
carries its step number only within its own segment; in later segments it is plain text of
the context.

The text of an observation depends only on the recorded step, so that it never changes.
Omitted text is always counted.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from offing.sdk import (
    UNTRUSTED_BLOCK_RULE,
    CompletionSpan,
    Evidence,
    InvalidOutput,
    Message,
    PromptFormat,
    RepairedText,
    SourceSpan,
    SpanKind,
    ToolResult,
    ToolStatus,
    shorten_line,
    wrap_untrusted,
)
from offing_graphs.memact.context import NEARLY_FULL_FRACTION
from offing_graphs.memact.schemas import EDIT_ACTIONS, Act, AgentInput, ContextRecord
from offing_graphs.shared.call_batches import BATCH_RULE, MAX_CALLS, Call, split_calls
from offing_graphs.shared.findings import render_value
from offing_graphs.shared.prompt_parts import name_passage, render_json, render_task, render_tool_cards
from offing_graphs.shared.report_style import WRITING_RULES, render_report_style
from offing_graphs.shared.tagged_text import NamedBlocks, parse_tagged_list, render_tagged
from offing_graphs.shared.text_repairs import build_tag_repair, repair_report
from offing_graphs.shared.text_reports import (
    CALL_FORMAT_RULE,
    REPORT_FORMAT_RULE,
    parse_call,
    parse_report,
    render_call,
    render_report,
)
from offing_graphs.shared.token_estimate import estimate_tokens, truncate_to_tokens

MAX_MESSAGE_CHARS = 800
"""Maximum number of characters of the reason why a call failed."""

ActionRenderer = Callable[[Act, AgentInput], str]

AGENT_PROMPT = (
    "You answer a question with tools, one action at a time. Each action and what came back of it is a record of this"
    " conversation, with an id such as r1. "
    f"{BATCH_RULE}"
    " Answer when what you have is enough, or when more work cannot help. State nothing that is not in what you "
    "retrieved: every statement of fact cites at least one passage by its id and copies from it, letter by letter, "
    "the words that carry the statement. The copied words are checked against the stored text. A question whose "
    "answer is a single name, number or value is answered with that alone."
)
EDITING_PROMPT = (
    "This conversation may hold about {window} tokens; when it holds more, the work is lost. Keep it short: call prune "
    "with the ids of records that are of no more use, and with a note of what they told that you still need: the "
    "question's aim, facts with their passage ids and exact words, what has been tried, what is open. A note is a "
    "record, too, and can be removed by its id. write keeps a note and removes nothing."
)
SUMMARIZING_PROMPT = (
    "This conversation may hold about {window} tokens. When it is full you will be asked for a summary, and go on from "
    "the question and that summary alone."
)
SUMMARY_REQUEST = (
    "The conversation is full, and the last action with its result has been taken out of it. Do not act now. Write the "
    "summary that you will go on from: facts with their passage ids and exact words, what has been tried and with what "
    "result, what is open. Nothing else is kept."
)
ANSWER_REQUEST = (
    "The work ends here. Do not call tools any more: answer now with what you have, and say what is missing."
)
TURNS_PROMPT = (
    " The work has at most {turns} steps, and each action or edit is one of them. After the last you are asked for the "
    "answer. What remains of both is stated after each record."
)
ROOM_WARNING = " It is nearly full: prune records that are of no more use, or answer now."
ACTION, MEMORY, ANSWER, NOTHING, SUMMARY = "action", "memory", "answer", "nothing_found", "summary"
SPAN_KINDS = {
    ACTION: SpanKind.ACTION,
    MEMORY: SpanKind.MEMORY_EDIT,
    ANSWER: SpanKind.ANSWER,
    NOTHING: SpanKind.ANSWER,
    SUMMARY: SpanKind.SUMMARY,
}
CALL_RULE = f"""Each of your messages is one block and nothing else. A tool call is {CALL_FORMAT_RULE}:
<action>search_library {{"query": "words to look for"}}</action>
Tool calls that are made at once are up to {MAX_CALLS} such blocks, one after another."""
EDITING_RULE = """A memory action is written in the same way, between its own tags, and always alone:
<memory>prune {"delete_ids": ["r1", "r2"], "note": "what to keep of them"}</memory>
<memory>write {"note": "what to keep in mind"}</memory>"""
ANSWER_RULE = f"""The answer ends the work; when nothing was found, its tags are <nothing_found>…</nothing_found>:
<answer>
{REPORT_FORMAT_RULE}
</answer>
{WRITING_RULES}"""
"""The rules for reports stand here and not in the system text, whose size decides when a context is full."""
SUMMARY_RULE = "A summary, when you are asked for one:\n<summary>the summary</summary>"


MISSING_TAG = "missing_tag"
"""Name of the repair that puts the tags of an answer around a report."""

_repair_blocks = build_tag_repair(
    tuple(SPAN_KINDS), report_tags=(ANSWER, NOTHING), list_evidence=lambda inputs: inputs.evidence, repeated=(ACTION,)
)
_ANY_TAG = re.compile(rf"</?(?:{'|'.join(SPAN_KINDS)})>")


@dataclass(frozen=True, slots=True)
class Observation:
    """The text that a model sees of a call, and the evidence in it, in the order of the result."""

    text: str
    evidence: tuple[Evidence, ...] = ()
    omitted: int = 0
    """Number of passages of the result that the text says it does not show."""


def render_conversation(
    inputs: AgentInput,
    render_action: ActionRenderer,
    format_rules: Sequence[str] = (),
) -> tuple[Message, ...]:
    """Render the whole conversation.

    `render_action` renders an action in the prompt format. `format_rules` describe the format
    to the model. Where the input shows the room, each record says how much of the context is used up to there
    and how many turns are left. The numbers depend only on what stands before them, so the conversation still
    only grows.
    """
    messages = [Message("system", _render_system(inputs, format_rules)), Message("user", _render_question(inputs))]
    used = estimate_tokens(*(part for message in messages for part in message.parts))
    for n, entry in enumerate(inputs.records):
        action, record = render_action(entry.action, inputs), _render_record(entry)
        used += estimate_tokens(action, record)
        room = _render_room(used, entry.turn, inputs) if inputs.shows_room and inputs.allows_edits else ()
        after = (*room, *_list_messages_after(n, inputs))
        used += estimate_tokens(*after)
        messages.append(Message("assistant", (action,), entry.seq if entry.in_segment else 0))
        messages.append(Message("user", (record, *after), omitted_passages=entry.omitted_passages))
    return (*messages[:-1], _append_parts(messages[-1], _render_request(inputs)))


def _render_room(used_tokens: int, turn: int, inputs: AgentInput) -> tuple[str, ...]:
    window, turns_left = inputs.max_context_tokens, inputs.max_turns - turn
    warning = ROOM_WARNING if used_tokens > NEARLY_FULL_FRACTION * window else ""
    used = f"About {used_tokens:,} of {window:,} tokens of this conversation are used."
    return (f"({used}{warning} Steps left: {turns_left:,} of {inputs.max_turns:,}.)",)


def render_json_action(action: Act, _: AgentInput) -> str:
    """Render an action as a model with tool calling writes it."""
    return render_json(action.model_dump(mode="json", exclude={"written"}, exclude_defaults=True))


def render_prompt(inputs: AgentInput) -> tuple[Message, ...]:
    """Render the conversation for models that answer with JSON."""
    return render_conversation(inputs, render_json_action)


def estimate_size(inputs: AgentInput) -> int:
    """Estimate the tokens of the conversation. Formats for small planners are shorter."""
    messages = render_conversation(inputs, render_json_action)
    return estimate_tokens(*(part for message in messages for part in message.parts))


def drop_latest_records(inputs: AgentInput, max_tokens: int) -> AgentInput:
    """Take out the latest records until the conversation fits. Their ids are named in the request."""
    dropped: tuple[str, ...] = ()
    while inputs.records and estimate_size(inputs) > max_tokens:
        dropped = (inputs.records[-1].id, *dropped)
        inputs = inputs.model_copy(update={"records": inputs.records[:-1], "omitted_records": dropped})
    return inputs


def build_observation(result: ToolResult, retrieved: Mapping[SourceSpan, Evidence], max_tokens: int) -> Observation:
    """Build the observation of a result within `max_tokens` estimated tokens. The text states how much is omitted.

    `retrieved` is the evidence of the run.
    """
    if result.status is not ToolStatus.OK:
        return Observation(wrap_untrusted(shorten_line(result.message or str(result.status), MAX_MESSAGE_CHARS)))
    back = tuple(retrieved[span] for span in result.spans if span in retrieved)
    if not back:
        return Observation(wrap_untrusted(render_value(result) or "Nothing was found."))
    fitting = _take_fitting(back, max_tokens)
    left = len(back) - len(fitting)
    more = f"\n{left} of {len(back)} passages are not shown, because the result is too long." if left else ""
    rendered = "\n".join(map(_render_evidence, fitting))
    if estimate_tokens(rendered) > max_tokens:  # a single passage that is longer than the limit
        rendered = _render_cut(fitting[0], max_tokens)
    return Observation(rendered + more, fitting, left)


def build_observations(
    results: Sequence[ToolResult], retrieved: Mapping[SourceSpan, Evidence], max_tokens: int
) -> tuple[Observation, ...]:
    """Build the observations of calls that were made at once, together within `max_tokens`.

    Each gets an equal part of what those before it leave. A passage that an earlier one has is only named.
    """
    observations: list[Observation] = []
    seen = set[str]()
    for number, result in enumerate(results):
        observation = _build_new_observation(result, retrieved, seen, max_tokens // (len(results) - number))
        observations.append(observation)
        max_tokens -= estimate_tokens(observation.text)
        seen |= {retrieved[span].id for span in result.spans if span in retrieved}
    return tuple(observations)


def _build_new_observation(
    result: ToolResult, retrieved: Mapping[SourceSpan, Evidence], seen_ids: Collection[str], max_tokens: int
) -> Observation:
    returned = [retrieved[span] for span in result.spans if span in retrieved]
    repeated = [e.id for e in returned if e.id in seen_ids]
    if not repeated:
        return build_observation(result, retrieved, max_tokens)
    again = f"It brought back {', '.join(repeated)} again, as a call above did."
    new = {e.span: e for e in returned if e.id not in seen_ids}
    if not new:
        return Observation(again)
    observation = build_observation(result, new, max_tokens)
    return replace(observation, text=f"{observation.text}\n{again}")


def join_observations(results: Sequence[ToolResult], observations: Sequence[Observation]) -> str:
    """Join the observations of calls that were made at once. That of a single call stays unchanged."""
    if len(observations) == 1:
        return observations[0].text
    return "\n".join(
        f"Call {n}, {result.tool}: {result.status}\n{observation.text}"
        for n, (result, observation) in enumerate(zip(results, observations, strict=True), 1)
    )


def _render_cut(evidence: Evidence, max_tokens: int) -> str:
    """Render the beginning of a passage and how much is cut."""
    left = max_tokens - estimate_tokens(_render_evidence(replace(evidence, text="")))
    text = truncate_to_tokens(evidence.text, left)
    cut = len(evidence.text) - len(text)
    note = f"(Cut here: the last {cut:,} of {len(evidence.text):,} characters are not shown. Read on with a tool.)"
    return f"{_render_evidence(replace(evidence, text=text))}\n{note}"


def _take_fitting(evidence: Sequence[Evidence], max_tokens: int) -> tuple[Evidence, ...]:
    """Return the longest prefix of the evidence that fits. It always contains the first passage."""
    used, count = 0, 0
    for passage in evidence:
        used += estimate_tokens(_render_evidence(passage))
        if count and used > max_tokens:
            break
        count += 1
    return tuple(evidence[:count])


def _render_evidence(evidence: Evidence) -> str:
    location = f"{evidence.title} \u203a {evidence.heading}" if evidence.heading else evidence.title
    source, span = evidence.source_label or str(evidence.source_id), evidence.span
    head = name_passage(evidence.id, source, span.start, span.end, evidence.published)
    return head + "\n" + wrap_untrusted(shorten_line(location) + "\n" + evidence.text)


def _render_system(inputs: AgentInput, format_rules: Sequence[str]) -> tuple[str, ...]:
    limit = (EDITING_PROMPT if inputs.allows_edits else SUMMARIZING_PROMPT).format(window=inputs.max_context_tokens)
    if inputs.shows_room and inputs.allows_edits:
        limit += TURNS_PROMPT.format(turns=inputs.max_turns)
    return (
        AGENT_PROMPT,
        limit,
        UNTRUSTED_BLOCK_RULE,
        *render_tool_cards(inputs.tools, inputs.context_tokens),
        *format_rules,
    )


def _render_question(inputs: AgentInput) -> tuple[str, ...]:
    summed = f"Part {inputs.stage} of the work. Your summary of what was done before:\n{wrap_untrusted(inputs.summary)}"
    case = inputs.model_copy(update={"user_messages": ()})
    style = render_report_style(inputs.report_style)
    return (*render_task(case), *style, *((summed,) if inputs.summary else ()), *_list_messages_after(-1, inputs))


def _render_record(entry: ContextRecord) -> str:
    if entry.more_findings:
        return f"{entry.id}, {len(entry.findings)} calls at once:\n{entry.observation}"
    name = entry.finding.tool if entry.finding else entry.action.tool or "answer"
    outcome = "ok" if entry.ok else entry.finding.status if entry.finding else "failed"
    return f"{entry.id} {name}: {outcome}\n{entry.observation}"


def _list_messages_after(record_index: int, inputs: AgentInput) -> Iterable[str]:
    """Yield the user messages that follow a record, the last one before they were first shown."""
    for message, turn in zip(inputs.user_messages, inputs.message_turns, strict=True):
        before = sum(entry.turn < turn for entry in inputs.records)
        if before == record_index + 1:
            yield f"A person wrote during the run: {message}"


def _render_request(inputs: AgentInput) -> tuple[str, ...]:
    omitted = ", ".join(inputs.omitted_records)
    notice = (f"There is no room for the latest results, which are not shown: {omitted}.",) if omitted else ()
    requests: dict[str, Any] = {"summary": (SUMMARY_REQUEST,), "answer": (*notice, ANSWER_REQUEST)}
    return requests.get(inputs.request, ())


def _append_parts(message: Message, parts: tuple[str, ...]) -> Message:
    return replace(message, parts=(*message.parts, *parts))


def render_text_prompt(inputs: AgentInput) -> tuple[Message, ...]:
    return render_conversation(
        inputs, render_text_action, (CALL_RULE, EDITING_RULE if inputs.allows_edits else SUMMARY_RULE, ANSWER_RULE)
    )


def render_text_action(action: Act, _: AgentInput) -> str:
    """Render an action. If the original text is known, it is used unchanged."""
    if action.written:
        return action.written
    if action.answer:
        return render_tagged([(ANSWER if action.found else NOTHING, render_report(action.answer))])
    if action.summary:
        return render_tagged([(SUMMARY, action.summary)])
    return render_tagged(
        (MEMORY if call.tool in EDIT_ACTIONS else ACTION, render_call(call.tool, call.args)) for call in action.calls
    )


def parse_text_action(text: str, inputs: AgentInput) -> Act | InvalidOutput:
    """Parse one block, or several of tool calls that are made at once.

    A memory action between the tags of an action is rejected, and the reverse.
    """
    blocks = _parse_blocks(text)
    if isinstance(blocks, InvalidOutput):
        return blocks
    read = _parse_fields(blocks[0][0], [block.text for _, block in blocks], inputs)
    if isinstance(read, InvalidOutput):
        return read
    try:
        act = Act(**read)
    except ValidationError as error:
        return InvalidOutput(shorten_line(error.errors(include_url=False)[0]["msg"]))
    return act if render_text_action(act, inputs) == text else act.model_copy(update={"written": text})


def find_text_spans(text: str) -> tuple[CompletionSpan, ...]:
    """Return the span of each block, including its tags."""
    blocks = _parse_blocks(text)
    return () if isinstance(blocks, InvalidOutput) else tuple(block.to_span(SPAN_KINDS[name]) for name, block in blocks)


def _parse_blocks(text: str) -> NamedBlocks | InvalidOutput:
    """Return the one block of the output, or the blocks of several actions."""
    for name in SPAN_KINDS:
        blocks = parse_tagged_list(text, (name,), repeated=(ACTION,))
        if not isinstance(blocks, InvalidOutput):
            return blocks
    return InvalidOutput("Write exactly one block, such as <action>…</action> or <answer>…</answer>, and nothing else.")


def _parse_fields(name: str, texts: Sequence[str], inputs: AgentInput) -> dict[str, Any] | InvalidOutput:
    if name == SUMMARY:
        return {"summary": texts[0]}
    if name in {ANSWER, NOTHING}:
        draft = parse_report(texts[0], shorten_line(inputs.question, 120))
        return draft if isinstance(draft, InvalidOutput) else {"answer": draft, "found": name == ANSWER}
    calls: list[Call] = []
    for text in texts:
        call = _parse_call_block(name, text, inputs)
        if isinstance(call, InvalidOutput):
            return call
        calls.append(call)
    first, *more = split_calls(calls, inputs.tools) if name == ACTION else calls
    return {"tool": first.tool, "args": first.args, "more_calls": tuple(more)}


def _parse_call_block(name: str, text: str, inputs: AgentInput) -> Call | InvalidOutput:
    parsed = parse_call(text)
    if isinstance(parsed, InvalidOutput):
        return parsed
    tool, args = parsed
    if (tool in EDIT_ACTIONS) != (name == MEMORY) and inputs.allows_edits:
        return InvalidOutput(f"{tool} belongs between <{MEMORY if tool in EDIT_ACTIONS else ACTION}> tags.")
    return Call(tool=tool, args=args)


def repair_text_action(text: str, inputs: AgentInput) -> RepairedText:
    """Repair the one block. A report without tags, where an answer may be given, is the answer."""
    repaired = _repair_blocks(text, inputs)
    if not isinstance(_parse_blocks(repaired.text), InvalidOutput) or _ANY_TAG.search(repaired.text):
        return repaired
    report = repair_report(text, inputs.evidence)
    if inputs.request == "summary" or not report.text.startswith("# "):
        return repaired
    return RepairedText(render_tagged([(ANSWER, report.text)]), (*report.repairs, MISSING_TAG))


TEXT_FORMAT = PromptFormat(
    "text", render_text_prompt, parse_text_action, find_text_spans, render_text_action, repair=repair_text_action
)
