"""The compact prompt format of the agent for small planners in a synthetic world.

`t3 r1 e0` makes a look-up, `prune m0 m1 write r1 e0 e5` removes records and notes facts,
and `answer` ends the work: a rule derives the answer from the known facts. Records are
addressed by their position. Entities are numbered in the order in which the context names
them, so that a new segment renumbers them.
"""

from collections.abc import Callable, Sequence
from itertools import takewhile

from offing.sdk import CompletionSpan, InvalidOutput, Message, PromptFormat, SpanKind
from offing_graphs.memact.schemas import EDIT_ACTIONS, PRUNE, WRITE, Act, AgentInput, ContextRecord
from offing_world.compact_answer import ANSWER, SUMMARY
from offing_world.compact_facts import parse_compact_facts, render_compact_facts
from offing_world.compact_notation import (
    MAX_RECORDS,
    EntityIndex,
    build_entity_index,
    parse_compact_call,
    render_compact_call,
    render_compact_question,
    render_compact_values,
)
from offing_world.memact.facts import list_known_facts, list_record_facts, parse_facts, render_facts
from offing_world.memact.rule_roles import build_answer
from offing_world.question_solver import KnownFact

DONE, FAILED, NONE = "known", "failed", "none"
SPAN_KINDS = {
    ANSWER: SpanKind.ANSWER,
    SUMMARY: SpanKind.SUMMARY,
    PRUNE: SpanKind.MEMORY_EDIT,
    WRITE: SpanKind.MEMORY_EDIT,
}
RenderAction = Callable[[Act, AgentInput], str]
"""Renders an action as an agent with this input would have written it."""
FORMAT_HELP = "Write a look-up such as t0 r0 e0, prune m0, write r0 e0 e1, summary r0 e0 e1, or answer."


def render_compact_prompt(inputs: AgentInput) -> tuple[Message, ...]:
    """Render the question, then each action and its observation."""
    return render_prompt(inputs, render_action)


def render_prompt(inputs: AgentInput, render: RenderAction) -> tuple[Message, ...]:
    """Render the question, then each action, rendered by `render`, and its observation.

    User messages have no compact words.
    """
    names = build_context_index(inputs)
    summed = (f"{SUMMARY} {render_compact_facts(parse_facts(inputs.summary), names)}",) if inputs.summary else ()
    messages = [Message("user", (" ".join((render_compact_question(inputs.question), *summed)),))]
    for entry in inputs.records:
        seq = entry.seq if entry.in_segment else 0
        messages.append(Message("assistant", (_render_earlier_action(entry, inputs, render),), seq))
        messages.append(Message("user", (_render_observation(entry, names),)))
    last = messages[-1]
    request = "" if inputs.request == "action" else f" {inputs.request}"
    return (*messages[:-1], Message(last.role, (last.text + request,), last.turn))


def render_action(action: Act, inputs: AgentInput) -> str:
    """Render an action in compact words.

    Raises `InvalidInput` if the action names something that has no word.
    """
    names = build_context_index(inputs)
    if action.answer:
        return ANSWER
    if action.summary:
        return f"{SUMMARY} {render_compact_facts(parse_facts(action.summary), names)}"
    if action.tool not in EDIT_ACTIONS:
        return render_compact_call(action.tool, str(action.args.get("relation")), str(action.args.get("entity")), names)
    facts = parse_facts(str(action.args.get("note", "")))
    noted = f"{WRITE} {render_compact_facts(facts, names)}" if facts or action.tool == WRITE else ""
    if action.tool == WRITE:
        return noted
    record_words = {entry.id: f"m{n}" for n, entry in enumerate(inputs.records)}
    named = [record_words.get(str(id), str(id)) for id in action.args.get("delete_ids", ())]
    return " ".join([PRUNE, *named, noted]).strip()


def parse_action(text: str, inputs: AgentInput) -> Act | InvalidOutput:
    """Parse exactly one action."""
    act = _parse(text, inputs)
    if isinstance(act, InvalidOutput) or render_action(act, inputs) == text:
        return act
    return act.model_copy(update={"written": text})


def _parse(text: str, inputs: AgentInput) -> Act | InvalidOutput:
    words = text.split()
    first, rest = (words[0], words[1:]) if words else ("", [])
    if first == ANSWER and not rest:
        return build_answer(inputs, list_known_facts(inputs))
    if first == SUMMARY:
        facts = parse_compact_facts(rest, build_context_index(inputs), FORMAT_HELP)
        return facts if isinstance(facts, InvalidOutput) else Act(summary=render_facts(facts))
    if first in EDIT_ACTIONS:
        return _parse_edit(words, inputs)
    call = parse_compact_call(text, build_context_index(inputs))
    return (
        InvalidOutput(f"{call.problem} {FORMAT_HELP}")
        if isinstance(call, InvalidOutput)
        else Act(tool=call.tool, args=call.args)
    )


def find_spans(text: str) -> tuple[CompletionSpan, ...]:
    """Return one span for the whole completion. Its first word determines the kind."""
    stripped = text.strip()
    if not stripped:
        return ()
    start = text.index(stripped)
    return (CompletionSpan(SPAN_KINDS.get(stripped.split()[0], SpanKind.ACTION), start, start + len(stripped)),)


def _render_earlier_action(entry: ContextRecord, inputs: AgentInput, render: RenderAction) -> str:
    """Render an earlier action in the current words.

    An edit of an earlier segment, whose records no longer exist, becomes its note.
    """
    act = entry.action
    if entry.in_segment:
        return act.written or render(act, inputs)
    if act.tool == PRUNE and entry.ok:
        act = Act(tool=WRITE, args={"note": act.args.get("note", "")})
    return render(act, inputs)


def build_context_index(inputs: AgentInput) -> EntityIndex:
    """Return the index of the entities in the order in which the context names them."""
    names = build_entity_index(inputs.question, parse_facts(inputs.summary))
    for entry in inputs.records:
        entity = entry.action.args.get("entity") if entry.action.tool not in EDIT_ACTIONS else None
        names = names.with_entities([str(entity)] if entity else [])
        names = names.with_entities(e for fact in list_record_facts(entry) for e in (fact.entity, *fact.values))
    return names


def _render_observation(entry: ContextRecord, entity_index: EntityIndex) -> str:
    if entry.finding is None:
        return DONE if entry.ok else FAILED
    if not entry.ok:
        return FAILED
    facts = list_record_facts(entry)
    return render_compact_values(facts[0].values, entity_index, closed=facts[0].closed) if facts else NONE


def _parse_edit(words: Sequence[str], inputs: AgentInput) -> Act | InvalidOutput:
    pruned = list(takewhile(lambda w: w != WRITE, words[1:])) if words[0] == PRUNE else []
    rest = words[1 + len(pruned) :] if words[0] == PRUNE else words
    facts: tuple[KnownFact, ...] | InvalidOutput = ()
    if rest:
        facts = parse_compact_facts(rest[1:], build_context_index(inputs), FORMAT_HELP)
    if isinstance(facts, InvalidOutput):
        return facts
    note = render_facts(facts) if rest else ""
    if words[0] == WRITE:
        return Act(tool=WRITE, args={"note": note})
    wrong = next((w for w in pruned if _parse_record_index(w) < 0), "")
    if wrong or not pruned:
        return InvalidOutput(f"{wrong[:20]!r} is no record; name records m0, m1 … after prune. {FORMAT_HELP}")
    return Act(tool=PRUNE, args={"delete_ids": [_find_record_id(w, inputs.records) for w in pruned], "note": note})


def _find_record_id(word: str, records: Sequence[ContextRecord]) -> str:
    """Return the id of a record by its word.

    A word without a record is returned unchanged and matches nothing.
    """
    index = _parse_record_index(word)
    return records[index].id if index < len(records) else word


def _parse_record_index(word: str) -> int:
    """Return the number in a word such as `m3`, or -1 if the word does not name a record."""
    digits = word[1:]
    is_record_word = word[:1] == "m" and digits.isascii() and digits.isdecimal() and len(digits) < 4
    return int(digits) if is_record_word and str(int(digits)) == digits and int(digits) < MAX_RECORDS else -1


COMPACT_FORMAT = PromptFormat("compact", render_compact_prompt, parse_action, find_spans, render_action)
