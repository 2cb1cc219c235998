"""Complete runs in the Agent Trajectory Interchange Format 1.8, one JSON document per line.

A role call is an agent step with the token ids of the whole prompt. A tool call is a separate
step without a model call. Data for which the format has no field (masks, spans, versions,
segments, components of the reward) is stored under `extra`.
"""

from collections.abc import Iterable
from dataclasses import asdict
from functools import partial
from typing import Any, BinaryIO

import orjson

from offing.core.trajectory_records import RoleCallRecord, SegmentInfo, TextTrajectory, ToolCallRecord
from offing.exports.chat import build_tool_list
from offing.exports.format import ExportOptions, Format, RecordUnit, Sink
from offing.exports.json_lines import JsonLinesSink
from offing.exports.row_values import trajectory_metadata_columns

ATIF_VERSION = "ATIF-v1.8"

REPEATED_FIELDS = frozenset({"messages", "completion", "tokens", "spans", "failed_attempts", "at", "cost_usd", "model"})


def create_sink(file: BinaryIO, options: ExportOptions) -> Sink:
    return JsonLinesSink(file, partial(build_documents, options))


def build_documents(options: ExportOptions, trajectory: TextTrajectory) -> Iterable[dict[str, Any]]:
    """Yield the document of one run.

    It is complete; quarantined role calls are marked in their step.
    """
    episode, turns = trajectory.metadata, trajectory.role_calls
    models = {turn.policy or turn.model for turn in turns} - {""}
    heads = {head.idx: head for head in trajectory.segments}
    messages = [
        *((t.seq, _build_agent_step(t, heads)) for t in turns),
        *((u.seq, _build_tool_step(u)) for u in trajectory.tool_calls),
    ]
    steps = [
        _build_user_step(episode.question, episode.created_at.isoformat()),
        *(s for _, s in sorted(messages, key=_order_key)),
    ]
    yield {
        "schema_version": ATIF_VERSION,
        "session_id": str(episode.run_id),
        "trajectory_id": str(episode.run_id),
        "agent": {
            "name": f"offing/{episode.graph}",
            "version": episode.graph_version,
            **({"model_name": next(iter(models))} if len(models) == 1 else {}),
            "tool_definitions": build_tool_list(trajectory.tool_calls),
        },
        "steps": [{"step_id": nth, **step} for nth, step in enumerate(steps, 1)],
        "final_metrics": _build_final_metrics(trajectory, len(steps)),
        "extra": {
            **trajectory_metadata_columns(episode),
            "segments": [asdict(head) for head in trajectory.segments],
            "include_quarantined": options.include_quarantined,
        },
    }


def _order_key(step: tuple[int, dict[str, Any]]) -> int:
    return step[0]


def _build_user_step(question: str, timestamp: str) -> dict[str, Any]:
    return {"source": "user", "message": question, "timestamp": timestamp}


def _build_agent_step(role_call: RoleCallRecord, segments: dict[int, SegmentInfo]) -> dict[str, Any]:
    extra: dict[str, Any] = {n: getattr(role_call, n) for n in RoleCallRecord.__slots__ if n not in REPEATED_FIELDS}
    extra["spans"] = [asdict(span) for span in role_call.spans]
    extra["failed_attempts"] = list(role_call.failed_attempts)
    extra["boundary_reason"] = (
        segments[role_call.segment_idx].boundary_reason
        if role_call.segment_idx in segments and not role_call.position
        else None
    )
    step = {"source": "agent", "message": role_call.completion, "timestamp": role_call.at.isoformat(), "extra": extra}
    if role_call.segment_idx is None:
        return {**step, "llm_call_count": 0}
    attempts = 1 + len(role_call.failed_attempts)
    model = role_call.policy or role_call.model
    return {
        **step,
        **({"model_name": model} if model else {}),
        "llm_call_count": attempts if role_call.engine in ("litellm", "policy") else 0,
        **({"metrics": _build_metrics(role_call)} if role_call.engine in ("litellm", "policy") else {}),
    }


def _build_metrics(role_call: RoleCallRecord) -> dict[str, Any]:
    metrics: dict[str, Any] = {
        "prompt_tokens": role_call.prompt_tokens,
        "completion_tokens": role_call.completion_tokens,
        "cost_usd": role_call.cost_usd,
    }
    if role_call.cached_prompt_tokens:
        metrics["cached_tokens"] = role_call.cached_prompt_tokens
    if role_call.tokens is not None:
        tokens = role_call.tokens
        entropy = None if tokens.entropy is None else list(tokens.entropy)
        versions = [{"policy": role_call.policy, "start": 0, "end": len(tokens.completion_ids)}]
        metrics |= {
            "prompt_token_ids": list(tokens.prompt_ids),
            "completion_token_ids": list(tokens.completion_ids),
            "logprobs": list(tokens.logprobs),
            "extra": {"loss_mask": list(tokens.loss_mask), "entropy": entropy, "version_spans": versions},
        }
    return metrics


def _build_tool_step(tool_call: ToolCallRecord) -> dict[str, Any]:
    call = f"call-{tool_call.seq}"
    content = tool_call.content if isinstance(tool_call.content, str) else orjson.dumps(tool_call.content).decode()
    about = {
        "status": tool_call.status,
        "message": tool_call.message,
        "origin": tool_call.origin,
        "trust": tool_call.trust,
    }
    return {
        "source": "agent",
        "message": "",
        "timestamp": tool_call.at.isoformat(),
        "llm_call_count": 0,
        "tool_calls": [{"tool_call_id": call, "function_name": tool_call.tool, "arguments": dict(tool_call.args)}],
        "observation": {"results": [{"source_call_id": call, "content": content, "extra": about}]},
        "extra": {"seq": tool_call.seq, "turn": tool_call.turn},
    }


def _build_final_metrics(trajectory: TextTrajectory, steps: int) -> dict[str, Any]:
    return {
        "total_prompt_tokens": sum(turn.prompt_tokens for turn in trajectory.role_calls),
        "total_completion_tokens": sum(turn.completion_tokens for turn in trajectory.role_calls),
        "total_cost_usd": sum(turn.cost_usd for turn in trajectory.role_calls),
        "total_steps": steps,
        "extra": {
            "reward": trajectory.metadata.reward,
            "scores": [asdict(score) for score in trajectory.metadata.scores],
        },
    }


FORMAT = Format("atif", RecordUnit.TRAJECTORY, "whole runs in the Agent Trajectory Interchange Format", create_sink)
