"""Rows, runs and preferences with valid defaults; a test states only what matters to it."""

import io
import struct
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from offing.core.model import Message
from offing.core.packed_segment import PackedSegment, PackedSpans, PackedTurns
from offing.core.training_rows import TrainingRow, build_rows
from offing.core.trajectory_records import (
    LocatedSpan,
    Reference,
    RewardScore,
    RoleCallRecord,
    RunCost,
    SegmentInfo,
    TextTrajectory,
    TokenRecord,
    ToolCallRecord,
    TrajectoryMetadata,
)
from offing.exports.format import FORMATS, ExportOptions

NOW = datetime(2026, 1, 1, 12, 30, 15, 123456, UTC)

RUN, GROUP, TASK = (UUID(int=n) for n in (1, 2, 3))


def trajectory_metadata(**changes: Any) -> TrajectoryMetadata:
    defaults: dict[str, Any] = {
        "run_id": RUN, "kind": "rollout", "graph": "memact", "graph_version": "v", "question": "Who is Ana's “aunt”?",
        "seed": -7, "status": "done", "stop_reason": "answered", "outcome": "answered", "reward": 0.1,
        "created_at": NOW, "started_at": NOW, "ended_at": None, "finalized_at": NOW, "group_id": GROUP,
        "group_state": "complete", "group_size": 4, "rollout_batch_id": None, "task_id": TASK,
        "dataset": "world", "split": "train", "task_name": "q1", "member": 0, "attempt": 2, "tags": ("hard",),
        "scores": (RewardScore("f1", "2", 0.1), RewardScore("judge", "1", None, "no answer", 5)),
        "cost": RunCost(7, 900, 80, 0.0125, 3.5, 4),
    }  # fmt: skip
    return TrajectoryMetadata(**(defaults | changes))


def packed(
    *turns: tuple[Sequence[int], Sequence[int]],
    offsets: Sequence[int] | None = None,
    masks: Sequence[Sequence[bool]] | None = None,
    spans: Sequence[tuple[int, str, int, int]] = (),
    **changes: Any,
) -> PackedSegment:
    """A segment of (prompt ids, completion ids) a turn, each continuing from all before it unless `offsets` says so.

    `spans`: place among the turns, kind, first completion id, completion id after the last.
    """
    n, ends = len(turns), [0]
    for prompt, completion in turns:
        ends.append(ends[-1] + len(prompt) + len(completion))
    sampled = sum(len(c) for _, c in turns)
    bits = masks or [[True] * len(c) for _, c in turns]
    defaults: dict[str, Any] = {
        "segment_info": SegmentInfo(0, "planner", "root"),
        "turns": many_turns(n),
        "trainable": ("rl",) * n,
        "tokenizer_sha256": ("tok",) * n,
        "template_sha256": ("tpl",) * n,
        "offsets": tuple(offsets or ends[:-1]),
        "prompt_counts": tuple(len(p) for p, _ in turns),
        "completion_counts": tuple(len(c) for _, c in turns),
        "entropy_counts": (0,) * n,
        "token_ids": b"".join(int24(*p, *c) for p, c in turns),
        "logprobs": float32(*(-(k + 1) / 8 for k in range(sampled))),
        "entropy": b"",
        "loss_mask": b"".join(packed_bits(b) for b in bits),
        "spans": PackedSpans(tuple(3 + position for position, *_ in spans), *tuple(zip(*spans, strict=True))[1:]),
    }
    return PackedSegment(**(defaults | changes))


def many_turns(n: int, **changes: Any) -> PackedTurns:
    defaults: dict[str, Any] = {
        "seq": tuple(range(3, 3 + n)),
        "turn": tuple(range(1, n + 1)), "temperature": (0.7,) * n, "top_p": (None,) * n,
        "policy": ("planner@3",) * n, "weights_sha256": ("w",) * n, "engine_build": ("e",) * n,
        "finish_reason": ("stop",) * n,
        "is_final": (False,) * n, "checkpoint_id": (None,) * n, "state_key": ("s",) * n, "action_key": ("a",) * n,
        "quarantine": ("",) * n,
    }  # fmt: skip
    return PackedTurns(**(defaults | changes))


def a_row(**changes: Any) -> TrainingRow:
    """Two turns with an odd number of completion ids, a token that was not sampled, entropy in one turn alone."""
    segment = packed(
        ((11, 12), (13, 14, 2)),
        ((15,), (16, 2)),
        masks=((True, True, True), (False, True)),
        entropy=float16(0.5, 0.25, 0.125),
        entropy_counts=(3, 0),
        spans=((0, "plan", 0, 1), (0, "action", 1, 3)),
    )
    return build_rows(trajectory_metadata(**changes), segment)[0]


def a_dialogue(**changes: Any) -> TextTrajectory:
    """Two segments: one of two turns with a tool call between them, and one of text alone."""
    first = a_role_call(3, "look up Ana", messages=(Message("system", ("be brief",)), Message("user", ("Who?",))))
    text = Message("assistant", ("look up Ana",), turn=3)
    second = a_role_call(5, "Bo", position=1, messages=(*first.messages, text, Message("user", ("Ana: Bo",))))
    third = a_role_call(7, "", segment_idx=None, engine="extractive", trainable="none", tokens=None)
    tool = ToolCallRecord(
        4, 1, "look_up", {"entity": "Ana", "deep": True}, {"values": ["Bo"]}, "ok", "", NOW, "web:example.org"
    )
    heads = (SegmentInfo(0, "planner", "root"),)
    defaults: dict[str, Any] = {
        "metadata": trajectory_metadata(),
        "segments": heads,
        "role_calls": (first, second, third),
        "tool_calls": (tool,),
    }
    return TextTrajectory(**(defaults | changes))


def a_role_call(seq: int, completion: str, **changes: Any) -> RoleCallRecord:
    defaults: dict[str, Any] = {
        "seq": seq, "turn": seq // 2, "segment_idx": 0, "position": 0, "role": "planner", "engine": "policy",
        "model": "tiny", "completion": completion, "trainable": "rl", "trainable_reason": "", "at": NOW,
        "tokens": TokenRecord(0, (1, 2), (3, 4), (-0.5, -0.25), (1, 1), (0.5, 0.5)), "policy": "planner@3",
        "spans": (LocatedSpan("action", 0, 2, 0, 1),), "prompt_tokens": 2, "completion_tokens": 2, "cost_usd": 0.01,
        "failed_attempts": ({"text": "{broken", "failure": "invalid_output"},),
    }  # fmt: skip
    return RoleCallRecord(**(defaults | changes))


def with_references(episode: TrajectoryMetadata | None = None) -> TrajectoryMetadata:
    return trajectory_metadata(reference=Reference(("Bo", "Bo B."), ()))


def written(name: str, units: Sequence[Any], options: ExportOptions | None = None) -> bytes:
    """What a format makes of these units."""
    file = io.BytesIO()
    sink = FORMATS[name].create_sink(file, options or ExportOptions())
    sink.write(units)
    sink.close()
    return file.getvalue()


def saved(folder: Path, name: str, units: Sequence[Any], options: ExportOptions | None = None) -> Path:
    path = folder / f"export.{name}"
    path.write_bytes(written(name, units, options))
    return path


def int24(*values: int) -> bytes:
    return b"".join(value.to_bytes(3, "little") for value in values)


def float16(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}e", *values)


def float32(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def packed_bits(bits: Sequence[bool]) -> bytes:
    return sum(1 << n for n, bit in enumerate(bits) if bit).to_bytes((len(bits) + 7) // 8, "little")
