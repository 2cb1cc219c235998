"""Whole runs in the Agent Trajectory Interchange Format, version 1.8: one document a line.

A role call is an agent's step with the whole prompt's ids; a tool call is a step of its own, made without a model. What
the format has no place for - masks, spans, versions, segments, parts of the reward - is under `extra`.
"""

from collections.abc import Iterable
from dataclasses import asdict
from functools import partial
from typing import Any, BinaryIO

import orjson

from offing.core.episode import Dialogue, SegmentHead, Talk, ToolUse
from offing.exports.chat import tool_list
from offing.exports.format import Options, Sink
from offing.exports.lines import Lines
from offing.exports.plain import episode_columns

VERSION = "ATIF-v1.8"

SAID_AGAIN = frozenset({"messages", "completion", "tokens", "spans", "failed_attempts", "at", "usd", "model"})


def open_sink(file: BinaryIO, options: Options) -> Sink:
    return Lines(file, partial(documents, options))


def documents(options: Options, dialogue: Dialogue) -> Iterable[dict[str, Any]]:
    """One run. Nothing of it is left out; what is in doubt says so in its step."""
    episode, turns = dialogue.episode, dialogue.turns
    models = {turn.policy or turn.model for turn in turns} - {""}
    heads = {head.idx: head for head in dialogue.segments}
    told = [*((t.seq, _said(t, heads)) for t in turns), *((u.seq, _used(u)) for u in dialogue.tools)]
    steps = [_asked(episode.question, episode.created_at.isoformat()), *(s for _, s in sorted(told, key=_place))]
    yield {
        "schema_version": VERSION,
        "session_id": str(episode.run),
        "trajectory_id": str(episode.run),
        "agent": {
            "name": f"offing/{episode.graph}",
            "version": episode.graph_version,
            **({"model_name": next(iter(models))} if len(models) == 1 else {}),
            "tool_definitions": tool_list(dialogue.tools),
        },
        "steps": [{"step_id": nth, **step} for nth, step in enumerate(steps, 1)],
        "final_metrics": _totals(dialogue, len(steps)),
        "extra": {
            **episode_columns(episode),
            "segments": [asdict(head) for head in dialogue.segments],
            "quarantined_asked_for": options.quarantined,
        },
    }


def _place(told: tuple[int, dict[str, Any]]) -> int:
    return told[0]


def _asked(question: str, at: str) -> dict[str, Any]:
    return {"source": "user", "message": question, "timestamp": at}


def _said(turn: Talk, heads: dict[int, SegmentHead]) -> dict[str, Any]:
    extra: dict[str, Any] = {n: getattr(turn, n) for n in Talk.__slots__ if n not in SAID_AGAIN}
    extra["spans"] = [asdict(span) for span in turn.spans]
    extra["failed_attempts"] = list(turn.failed_attempts)
    extra["fracture"] = heads[turn.segment].fracture if turn.segment in heads and not turn.place else None
    step = {"source": "agent", "message": turn.completion, "timestamp": turn.at.isoformat(), "extra": extra}
    if turn.segment is None:
        return {**step, "llm_call_count": 0}
    attempts = 1 + len(turn.failed_attempts)
    model = turn.policy or turn.model
    return {
        **step,
        **({"model_name": model} if model else {}),
        "llm_call_count": attempts if turn.engine in ("litellm", "policy") else 0,
        **({"metrics": _metrics(turn)} if turn.engine in ("litellm", "policy") else {}),
    }


def _metrics(turn: Talk) -> dict[str, Any]:
    metrics: dict[str, Any] = {
        "prompt_tokens": turn.prompt_tokens,
        "completion_tokens": turn.completion_tokens,
        "cost_usd": turn.usd,
    }
    if turn.tokens is not None:
        tokens = turn.tokens
        entropy = None if tokens.entropy is None else list(tokens.entropy)
        versions = [{"policy": turn.policy, "start": 0, "end": len(tokens.completion)}]
        metrics |= {
            "prompt_token_ids": list(tokens.prompt),
            "completion_token_ids": list(tokens.completion),
            "logprobs": list(tokens.logprobs),
            "extra": {"mask": list(tokens.mask), "entropy": entropy, "version_spans": versions},
        }
    return metrics


def _used(use: ToolUse) -> dict[str, Any]:
    call = f"call-{use.seq}"
    content = use.content if isinstance(use.content, str) else orjson.dumps(use.content).decode()
    about = {"status": use.status, "message": use.message, "origin": use.origin, "trust": use.trust}
    return {
        "source": "agent",
        "message": "",
        "timestamp": use.at.isoformat(),
        "llm_call_count": 0,
        "tool_calls": [{"tool_call_id": call, "function_name": use.tool, "arguments": dict(use.args)}],
        "observation": {"results": [{"source_call_id": call, "content": content, "extra": about}]},
        "extra": {"seq": use.seq, "number": use.number},
    }


def _totals(dialogue: Dialogue, steps: int) -> dict[str, Any]:
    return {
        "total_prompt_tokens": sum(turn.prompt_tokens for turn in dialogue.turns),
        "total_completion_tokens": sum(turn.completion_tokens for turn in dialogue.turns),
        "total_cost_usd": sum(turn.usd for turn in dialogue.turns),
        "total_steps": steps,
        "extra": {"reward": dialogue.episode.reward, "scores": [asdict(score) for score in dialogue.episode.scores]},
    }
