"""The researcher asked in plain text, for models without tool calling: the paper's tagged blocks, read strictly.

The only home of which blocks there are; how they are found is in `parts.tagged`, reports are in `parts.written`.
"""

import json
from typing import Any

from pydantic import ValidationError

from offing.sdk import Form, Message, SpanKind, TextSpan, Unusable
from offing_graphs.iterresearch import prompts
from offing_graphs.iterresearch.shapes import Call, Round, Stage, Workspace, round_of
from offing_graphs.parts.prompting import compact_json, in_form
from offing_graphs.parts.tagged import Block, Blocks, tagged, thoughts_end, written
from offing_graphs.parts.written import REPORT_RULE, read_report, write_report

REPORT, TOOL_CALL, ANSWER, NO_ANSWER = "report", "tool_call", "answer", "no_answer"
LAST = (TOOL_CALL, ANSWER, NO_ANSWER)
"""Of these, one stands at the end."""
KINDS = {
    REPORT: SpanKind.REPORT,
    TOOL_CALL: SpanKind.ACTION,
    ANSWER: SpanKind.ANSWER,
    NO_ANSWER: SpanKind.ANSWER,
}
ALWAYS = "<think>reasoning for this round only</think>\n<report>the report, rewritten whole</report>"
ACTS = '<tool_call>{"name": "exact name of a tool", "arguments": {as its JSON schema asks}}</tool_call>'
ANSWERS = (
    f"<answer>\n{REPORT_RULE}\n</answer>\n"
    "or, when nothing that was found answers the question, the same within <no_answer>…</no_answer>"
)
RULES = {
    Stage.FIRST: f"{ALWAYS}\n{ACTS}",
    Stage.MIDDLE: f"{ALWAYS}\nand then either\n{ACTS}\nor\n{ANSWERS}",
    Stage.FINAL: f"{ALWAYS}\n{ANSWERS}",
}


def render(given: Workspace) -> tuple[Message, ...]:
    return in_form(prompts.researcher(given), RULES[given.stage])


def parse(text: str, given: Workspace) -> Round | Unusable:
    """Thoughts, if any, the report, and one call or answer, as the stage allows."""
    if "\0" in text:
        return Unusable("It holds a NUL character.")
    found = _blocks(text)
    if isinstance(found, Unusable):
        return found
    last = _last(found, given)
    return last if isinstance(last, Unusable) else made(given.stage, think=_thoughts(text), **last)


def spans(text: str) -> tuple[TextSpan, ...]:
    """The blocks with their tags."""
    end = thoughts_end(text)
    thoughts = (TextSpan(SpanKind.THINK, text.index("<think>"), end),) if end else ()
    found = _blocks(text)
    named = () if isinstance(found, Unusable) else found.items()
    return (*thoughts, *(block.span(KINDS[name]) for name, block in named))


def write(output: Round, _given: Workspace) -> str:
    """An answer as the blocks of a round."""
    thoughts = [("think", output.think)] if output.think else []
    return written([*thoughts, (REPORT, output.report), _written_last(output)])


def made(stage: Stage, **fields: Any) -> Round | Unusable:
    """The answer, or the first thing that is wrong with it."""
    try:
        return round_of(stage, **fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        return Unusable(f"{'.'.join(map(str, first['loc'])) or 'the answer'}: {first['msg']}")


def read_call(text: str) -> Call | Unusable:
    """One JSON object with a name and arguments, and nothing else."""
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
        _refuse_unstorable(compact_json(found))
        return Call(tool=found["name"], args=found["arguments"]) if set(found) == {"name", "arguments"} else _NO_CALL
    except (ValueError, TypeError, RecursionError):
        return _NO_CALL


_NO_CALL = Unusable('The tool call must be one JSON object {"name": "…", "arguments": {…}} and nothing else.')


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _refuse_unstorable(text: str) -> None:
    """Raises `ValueError` for NUL and lone surrogates, which no store keeps."""
    text.encode()
    if "\\u0000" in text:
        raise ValueError("it holds a NUL character")


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def _blocks(text: str) -> Blocks | Unusable:
    found = tagged(text, (REPORT, *LAST), optional=LAST)
    if isinstance(found, Unusable):
        return found
    ends = [name for name in LAST if name in found]
    return found if len(ends) == 1 else Unusable("After the report, write one tool call or one answer, and only one.")


def _last(found: Blocks, given: Workspace) -> dict[str, Any] | Unusable:
    fields: dict[str, Any] = {"report": found[REPORT].text}
    if TOOL_CALL in found:
        call = read_call(found[TOOL_CALL].text)
        return call if isinstance(call, Unusable) else fields | {"action": call}
    block: Block = found.get(ANSWER) or found[NO_ANSWER]
    answer = read_report(block.text, given.question)
    return answer if isinstance(answer, Unusable) else fields | {"answer": answer, "answered": ANSWER in found}


def _thoughts(text: str) -> str:
    end = thoughts_end(text)
    return text[:end].strip().removeprefix("<think>").removesuffix("</think>").strip() if end else ""


def _written_last(output: Round) -> tuple[str, str]:
    if output.action is not None:
        return TOOL_CALL, compact_json({"name": output.action.tool, "arguments": output.action.args})
    assert output.answer is not None
    return (ANSWER if output.answered else NO_ANSWER), write_report(output.answer)


PLAIN = Form("plain", render, parse, spans, write)
