"""Conversations as JSON lines for supervised fine-tuning, one per segment.

Messages that must not be trained on remain as context with `"weight": 0`, as in common
fine-tuning formats. A segment in which no answer may be trained on is left out. Failed attempts
are left out.
"""

from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO

from offing.core.model import Message
from offing.core.trajectory_records import RoleCallRecord, SegmentInfo, TextTrajectory, ToolCallRecord
from offing.exports.format import ExportOptions, Format, RecordUnit, Sink
from offing.exports.json_lines import JsonLinesSink
from offing.exports.row_values import trajectory_metadata_columns


def create_sink(file: BinaryIO, options: ExportOptions) -> Sink:
    return JsonLinesSink(file, lambda dialogue: build_conversations(dialogue, options))


def build_conversations(trajectory: TextTrajectory, options: ExportOptions) -> Iterable[dict[str, Any]]:
    """Yield one conversation per segment.

    It consists of the last prompt, which contains the earlier messages, and the answer to it.
    """
    teaching = {
        t.seq: t.is_trainable_text(include_quarantined=options.include_quarantined) for t in trajectory.role_calls
    }
    heads = {head.idx: head for head in trajectory.segments}
    shared = {**trajectory_metadata_columns(trajectory.metadata), "tools": build_tool_list(trajectory.tool_calls)}
    for turns in _group_by_segment(trajectory.role_calls):
        if any(teaching[t.seq] for t in turns):
            yield {**_build_conversation(heads[turns[0].segment_idx or 0], turns, teaching), **shared}


def build_tool_list(tool_calls: Sequence[ToolCallRecord]) -> list[dict[str, Any]]:
    """Return the tools that the run called as function definitions.

    The parameters are those of the recorded calls.
    """
    tools: dict[str, dict[str, Any]] = {}
    for use in tool_calls:
        parameters = {name: {"type": _json_type(value)} for name, value in use.args.items()}
        schema = tools.setdefault(use.tool, {})
        schema.update(parameters)
    return [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": parameters}}}
        for name, parameters in tools.items()
    ]


def build_message_list(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return [{"role": message.role, "content": message.text} for message in messages]


def _build_conversation(
    segment: SegmentInfo, role_calls: Sequence[RoleCallRecord], trained: dict[int, bool]
) -> dict[str, Any]:
    last = role_calls[-1]
    messages = [_weighted_message(message, trained) for message in last.messages]
    answer = Message("assistant", (last.completion,), turn=last.seq)
    return {
        "messages": [*messages, _weighted_message(answer, trained)],
        "role": segment.role,
        "segment_idx": segment.idx,
        "boundary_reason": segment.boundary_reason,
        "turns": [turn.turn for turn in role_calls],
        "policies": [turn.policy for turn in role_calls],
        "quarantine": [turn.quarantine for turn in role_calls if turn.quarantine],
    }


def _weighted_message(message: Message, trained: dict[int, bool]) -> dict[str, Any]:
    document: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.role == "assistant":
        document["weight"] = int(trained.get(message.turn, False))
    return document


def _group_by_segment(role_calls: Sequence[RoleCallRecord]) -> list[list[RoleCallRecord]]:
    """Group the role calls that have text by segment, in the order in which the segments begin."""
    groups: dict[int, list[RoleCallRecord]] = {}
    for turn in role_calls:
        if turn.segment_idx is not None:
            groups.setdefault(turn.segment_idx, []).append(turn)
    return list(groups.values())


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


FORMAT = Format("jsonl_chat", RecordUnit.TRAJECTORY, "conversations for imitation", create_sink)
