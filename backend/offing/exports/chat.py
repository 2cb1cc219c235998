"""Conversations as JSON lines, for imitation: one a segment, as far as it was said.

What may not be imitated stays as context with `"weight": 0`, as fine-tuning formats know it; a segment whose every
answer is of that kind is left out. Failed attempts are in none.
"""

from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO

from offing.core.episode import Dialogue, SegmentHead, Talk, ToolUse
from offing.core.model import Message
from offing.exports.format import Options, Sink
from offing.exports.lines import Lines
from offing.exports.plain import episode_columns


def open_sink(file: BinaryIO, options: Options) -> Sink:
    return Lines(file, lambda dialogue: conversations(dialogue, options))


def conversations(dialogue: Dialogue, options: Options) -> Iterable[dict[str, Any]]:
    """Each segment's last prompt with the answer to it, which repeats all that was said before."""
    teaching = {t.seq: t.teaches(quarantined=options.quarantined) for t in dialogue.turns}
    heads = {head.idx: head for head in dialogue.segments}
    shared = {**episode_columns(dialogue.episode), "tools": tool_list(dialogue.tools)}
    for turns in _by_segment(dialogue.turns):
        if any(teaching[t.seq] for t in turns):
            yield {**_conversation(heads[turns[0].segment or 0], turns, teaching), **shared}


def tool_list(uses: Sequence[ToolUse]) -> list[dict[str, Any]]:
    """The tools that the run called, as function definitions; their parameters are those that were given."""
    found: dict[str, dict[str, Any]] = {}
    for use in uses:
        parameters = {name: {"type": _json_type(value)} for name, value in use.args.items()}
        known = found.setdefault(use.tool, {})
        known.update(parameters)
    return [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": parameters}}}
        for name, parameters in found.items()
    ]


def message_list(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return [{"role": message.role, "content": message.text} for message in messages]


def _conversation(head: SegmentHead, turns: Sequence[Talk], teaching: dict[int, bool]) -> dict[str, Any]:
    last = turns[-1]
    said = [_weighed(message, teaching) for message in last.messages]
    answer = Message("assistant", (last.completion,), turn=last.seq)
    return {
        "messages": [*said, _weighed(answer, teaching)],
        "role": head.role,
        "segment": head.idx,
        "fracture": head.fracture,
        "turns": [turn.number for turn in turns],
        "policies": [turn.policy for turn in turns],
        "quarantine": [turn.quarantine for turn in turns if turn.quarantine],
    }


def _weighed(message: Message, teaching: dict[int, bool]) -> dict[str, Any]:
    document: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.role == "assistant":
        document["weight"] = int(teaching.get(message.turn, False))
    return document


def _by_segment(turns: Sequence[Talk]) -> list[list[Talk]]:
    """Turns that have text, segment by segment in the order in which they began."""
    found: dict[int, list[Talk]] = {}
    for turn in turns:
        if turn.segment is not None:
            found.setdefault(turn.segment, []).append(turn)
    return list(found.values())


def _json_type(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"
