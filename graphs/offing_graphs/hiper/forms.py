"""Other ways to ask the agent than JSON: `plain` tagged blocks, `compact` words for a small planner.

In each form one parse finds the blocks; the answer and its spans are both read from them, so that a boundary in the
record is a boundary in the tokens. Nothing may stand beside the blocks: there is no place for free reasoning.
"""

import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from offing.sdk import Form, Message, SpanKind, TextSpan, Unusable
from offing.world.compact import call_words, names_of, question_words, relation_word
from offing.world.compact import read_call as read_words
from offing.world.semantics import RELATIONS
from offing_graphs.hiper import prompts
from offing_graphs.hiper.shapes import ANSWER, ENDS, GIVE_UP, Action, AgentInput, Switch, Turn
from offing_graphs.parts.prompting import in_form
from offing_graphs.parts.tagged import Block, Blocks, tagged, whole, written
from offing_graphs.parts.world import learned, observation_words, solved
from offing_graphs.parts.written import CALL_RULE, REPORT_RULE, read_call, read_report, write_call, write_report

TAGS = ("switch", "subgoal", "action")
KINDS = {"switch": SpanKind.SWITCH, "subgoal": SpanKind.SUBGOAL, "action": SpanKind.ACTION}
PLAIN_RULE = f"""<switch>KEEP or SWITCH</switch>
<subgoal>the current subgoal, copied, under KEEP; a new one in a few words under SWITCH</subgoal>
<action>one action</action>
An action is either {CALL_RULE}; or the word {ANSWER} or {GIVE_UP}, and on the lines after it the report like this:
{REPORT_RULE}"""

LOOKS_UP = "look up "
"""How the subgoal of a small planner begins: one relation, of whatever entities."""
WENT_ON = "go"
"""What a small planner reads after an answer that did not end the run."""
_ACTION = re.compile(r"<action>.*?</action>", re.DOTALL)
_WORDS = re.compile(r"\s*(?P<switch>\S+)\s+(?P<subgoal>\S+)\s+(?P<action>\S.*?)\s*", re.DOTALL)
_BY_WORD = {relation_word(relation): relation for relation in RELATIONS}


def plain_blocks(text: str) -> Blocks | Unusable:
    """The three blocks; without an action's tags the whole response is the action, and keeps the subgoal."""
    if _ACTION.search(text):
        return tagged(text, TAGS, optional=("switch", "subgoal"))
    said = whole(text)
    return {"action": said} if said else Unusable(f"The answer is empty. Expected:\n{PLAIN_RULE}")


def plain_turn(text: str, given: AgentInput) -> Turn | Unusable:
    found = plain_blocks(text)
    if isinstance(found, Unusable):
        return found
    action = _plain_action(found["action"].text, given)
    if isinstance(action, Unusable):
        return action
    return _made({"switch": _text(found, "switch"), "subgoal": _text(found, "subgoal"), "action": action}, given)


def write_plain(output: Turn, _given: AgentInput) -> str:
    action = output.action
    said = f"{action.tool}\n{write_report(action.report)}" if action.report else write_call(action.tool, action.args)
    return written(zip(TAGS, (output.switch, output.subgoal, said), strict=True))


def plain_spans(text: str) -> tuple[TextSpan, ...]:
    return _spans(plain_blocks(text))


def compact_blocks(text: str) -> Blocks | Unusable:
    """KEEP or SWITCH, a relation's word, and an action in words."""
    found = _WORDS.fullmatch(text)
    if found is None:
        return Unusable("Write KEEP or SWITCH, a relation, and an action, such as SWITCH r0 t0 r0 e0.")
    return {tag: Block(found[tag], found.start(tag), found.end(tag)) for tag in TAGS}


def compact_prompt(given: AgentInput) -> tuple[Message, ...]:
    """The question, then what was said and seen, each as a message of its own; `stop` asks for an answer."""
    names = names_of(given.question, learned(given.memory))
    seen = {r.said: WENT_ON if r.tool in ENDS else observation_words(r, names) for r in given.memory}
    messages = [Message("user", (question_words(given.question),))]
    for n, past in enumerate(given.past, start=1):
        observed = seen.get(past.seq, "failed")
        last = n == len(given.past) and given.reason
        messages.append(Message("assistant", (write_compact(past.output, given),), turn=past.seq))
        messages.append(Message("user", (f"{observed} stop" if last else observed,)))
    return tuple(messages)


def compact_turn(text: str, given: AgentInput) -> Turn | Unusable:
    found = compact_blocks(text)
    if isinstance(found, Unusable):
        return found
    relation = _BY_WORD.get(found["subgoal"].text)
    action = _compact_action(found["action"].text, given)
    if relation is None or isinstance(action, Unusable):
        return action if isinstance(action, Unusable) else Unusable(f"{found['subgoal'].text[:20]!r} is no relation.")
    return _made({"switch": found["switch"].text, "subgoal": LOOKS_UP + relation, "action": action}, given)


def write_compact(output: Turn, given: AgentInput) -> str:
    """Raises InvalidInput for a turn that is no look-up of something that has appeared, and no answer."""
    relation = relation_word(output.subgoal.removeprefix(LOOKS_UP))
    args = output.action.args
    names = names_of(given.question, learned(given.memory))
    call = "" if output.action.ends else call_words(output.action.tool, args["relation"], args["entity"], names)
    return f"{output.switch} {relation} {call or ANSWER}"


def compact_spans(text: str) -> tuple[TextSpan, ...]:
    return _spans(compact_blocks(text))


def _plain_action(text: str, given: AgentInput) -> Action | Unusable:
    head, _, rest = text.partition("\n")
    if head.strip() in ENDS:
        report = read_report(rest, given.question)
        return report if isinstance(report, Unusable) else Action(tool=head.strip(), report=report)
    call = read_call(text)
    return call if isinstance(call, Unusable) else _made_action(*call)


def _compact_action(text: str, given: AgentInput) -> Action | Unusable:
    """An answer is not written by the planner: it is what the look-ups come to."""
    known = learned(given.memory)
    if text == ANSWER:
        return Action(tool=ANSWER, report=solved(given.question, known))
    call = read_words(text, names_of(given.question, known))
    return call if isinstance(call, Unusable) else Action(tool=call.tool, args=dict(call.args))


def _made_action(tool: str, args: dict[str, Any]) -> Action | Unusable:
    return Unusable(f"{tool} needs a report.") if tool in ENDS else Action(tool=tool, args=args)


def _made(fields: Mapping[str, Any], given: AgentInput) -> Turn | Unusable:
    """The turn, or the first thing that is wrong with it."""
    if given.reason and not fields["action"].ends:
        return Unusable(f"No tool can be called any more. The action must be {ANSWER} or {GIVE_UP}.")
    try:
        return Turn.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        return Unusable(f"{'.'.join(map(str, first['loc']))}: {first['msg']}".removeprefix(": "))


def _text(found: Blocks, tag: str) -> str:
    return found[tag].text if tag in found else ""


def _spans(found: Blocks | Unusable) -> tuple[TextSpan, ...]:
    return (
        () if isinstance(found, Unusable) else tuple(found[tag].span(_kind(tag, found)) for tag in TAGS if tag in found)
    )


def _kind(tag: str, found: Blocks) -> SpanKind:
    """A subgoal under KEEP is a copy: only a new one is credited as a subgoal."""
    copied = tag == "subgoal" and _text(found, "switch") != Switch.SWITCH
    return SpanKind.KEPT if copied else KINDS[tag]


AGENT = (
    Form("plain", lambda g: in_form(prompts.agent(g), PLAIN_RULE), plain_turn, plain_spans, write_plain),
    Form("compact", compact_prompt, compact_turn, compact_spans, write_compact),
)
