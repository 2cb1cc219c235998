"""The agent's plain form, for models without tool calling: one tagged block, read strictly."""

from typing import Any

from pydantic import ValidationError

from offing.sdk import Form, Message, SpanKind, TextSpan, Unusable, shortened
from offing_graphs.memact.chat import chat
from offing_graphs.memact.context import EDITS
from offing_graphs.memact.shapes import Act, AgentInput
from offing_graphs.parts.tagged import Blocks, tagged, written
from offing_graphs.parts.written import CALL_RULE, REPORT_RULE, read_call, read_report, write_call, write_report

ACTION, MEMORY, ANSWER, NOTHING, SUMMARY = "action", "memory", "answer", "nothing_found", "summary"
KINDS = {
    ACTION: SpanKind.ACTION,
    MEMORY: SpanKind.MEMORY_EDIT,
    ANSWER: SpanKind.ANSWER,
    NOTHING: SpanKind.ANSWER,
    SUMMARY: SpanKind.SUMMARY,
}

CALLS = f"""Each of your messages is one block and nothing else. A tool call is {CALL_RULE}:
<action>search_library {{"query": "words to look for"}}</action>"""
EDITING = """A memory action is written in the same way, between its own tags:
<memory>prune {"delete_ids": ["r1", "r2"], "note": "what to keep of them"}</memory>
<memory>write {"note": "what to keep in mind"}</memory>"""
ANSWERING = f"""The answer ends the work; when nothing was found, its tags are <nothing_found>…</nothing_found>:
<answer>
{REPORT_RULE}
</answer>"""
SUMMING_UP = "A summary, when you are asked for one:\n<summary>the summary</summary>"


def render(given: AgentInput) -> tuple[Message, ...]:
    return chat(given, write, (CALLS, EDITING if given.edits else SUMMING_UP, ANSWERING))


def write(act: Act, _: AgentInput) -> str:
    """The action as this form has it: as it was written, where that is known."""
    if act.written:
        return act.written
    if act.answer:
        return written([(ANSWER if act.found else NOTHING, write_report(act.answer))])
    if act.summary:
        return written([(SUMMARY, act.summary)])
    return written([(MEMORY if act.tool in EDITS else ACTION, write_call(act.tool, act.args))])


def parse(text: str, given: AgentInput) -> Act | Unusable:
    """Exactly one block. A memory action between the tags of an action, or the reverse, is refused."""
    blocks = _blocks(text)
    if isinstance(blocks, Unusable):
        return blocks
    (name, block), *_ = blocks.items()
    read = _read(name, block.text, given)
    if isinstance(read, Unusable):
        return read
    try:
        act = Act(**read)
    except ValidationError as error:
        return Unusable(shortened(error.errors(include_url=False)[0]["msg"]))
    return act if write(act, given) == text else act.model_copy(update={"written": text})


def spans(text: str) -> tuple[TextSpan, ...]:
    """The one block, tags included."""
    blocks = _blocks(text)
    if isinstance(blocks, Unusable):
        return ()
    return tuple(block.span(KINDS[name]) for name, block in blocks.items())


def _blocks(text: str) -> Blocks | Unusable:
    """The one block that there is."""
    for name in KINDS:
        found = tagged(text, (name,))
        if not isinstance(found, Unusable):
            return found
    return Unusable("Write exactly one block, such as <action>…</action> or <answer>…</answer>, and nothing else.")


def _read(name: str, text: str, given: AgentInput) -> dict[str, Any] | Unusable:
    if name == SUMMARY:
        return {"summary": text}
    if name in {ANSWER, NOTHING}:
        draft = read_report(text, shortened(given.question, 120))
        return draft if isinstance(draft, Unusable) else {"answer": draft, "found": name == ANSWER}
    call = read_call(text)
    if isinstance(call, Unusable):
        return call
    tool, args = call
    if (tool in EDITS) != (name == MEMORY) and given.edits:
        return Unusable(f"{tool} belongs between <{MEMORY if tool in EDITS else ACTION}> tags.")
    return {"tool": tool, "args": args}


FORM = Form("plain", render, parse, spans, write)
