"""Print a trajectory by segment: each token with its loss mask and logprob, and spans in color."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from offing.cli.terminal import CONTROL_CHARS
from offing.core.trajectory_records import LocatedSpan, RoleCallRecord, SegmentInfo
from offing.services.token_texts import TokenTexts
from offing.services.trajectories import ReadableTrajectory

COLORS = {
    "plan": "magenta",
    "switch": "bright_red",
    "subgoal": "bright_blue",
    "kept": "blue",
    "action": "cyan",
    "memory_edit": "yellow",
    "think": "bright_black",
    "report": "bright_green",
    "summary": "bright_yellow",
    "answer": "green",
}


CONTROL_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
"""Replacement for a control character. It is one character long, so that spans keep their positions."""


def print_trajectory(console: Console, trajectory: ReadableTrajectory, turn: int | None) -> None:
    """Print the segments and role calls of a run. `turn` selects one turn of the loop; `None` means all."""
    _print_metadata(console, trajectory)
    heads = {head.idx: head for head in trajectory.trajectory.segments}
    started_segments: set[int] = set()
    for role_call in trajectory.trajectory.role_calls:
        if turn is not None and role_call.turn != turn:
            continue
        if role_call.segment_idx is not None and role_call.segment_idx not in started_segments:
            started_segments.add(role_call.segment_idx)
            _print_segment(console, heads[role_call.segment_idx])
        _print_role_call(console, role_call, trajectory.token_texts.get(role_call.seq))


def render_trajectory(trajectory: ReadableTrajectory) -> dict[str, Any]:
    """Return a trajectory as a JSON document, with arrays as lists."""
    document = asdict(trajectory.trajectory)
    for role_call, entry in zip(trajectory.trajectory.role_calls, document["role_calls"], strict=True):
        token_texts = trajectory.token_texts.get(role_call.seq)
        entry["token_texts"] = list(token_texts.completion) if token_texts else None
        if role_call.tokens is not None:
            entry["tokens"] = {
                "offset": role_call.tokens.offset,
                **{
                    name: list(getattr(role_call.tokens, name))
                    for name in ("prompt_ids", "completion_ids", "logprobs", "loss_mask")
                },
                "entropy": None if role_call.tokens.entropy is None else list(role_call.tokens.entropy),
            }
    return document


def _print_metadata(console: Console, trajectory: ReadableTrajectory) -> None:
    e = trajectory.trajectory.metadata
    console.print(
        f"run {e.run_id} · {e.graph} · {e.outcome or e.status} · reward {_render_value(e.reward)}", markup=False
    )
    for score in e.scores:
        about = f" of turn {score.role_call_seq}" if score.role_call_seq else ""
        console.print(f"  {score.scorer}{about}: {_render_value(score.value)} {score.failure}", markup=False)


def _print_segment(console: Console, segment: SegmentInfo) -> None:
    after = "" if segment.parent_idx is None else f" after segment {segment.parent_idx}"
    shared = "" if segment.shared_tokens is None else f", {segment.shared_tokens} tokens shared"
    console.print(
        f"\nsegment {segment.idx} · {segment.role} · {segment.boundary_reason}{after}{shared}",
        style="bold",
        markup=False,
    )


def _print_role_call(console: Console, role_call: RoleCallRecord, token_texts: TokenTexts | None) -> None:
    about = [
        f"turn {role_call.turn}",
        f"step {role_call.seq}",
        role_call.role,
        role_call.policy or role_call.model or role_call.engine,
    ]
    about += [role_call.trainable + (f" ({role_call.trainable_reason})" if role_call.trainable_reason else "")]
    if role_call.quarantine:
        about.append(f"IN QUARANTINE: {role_call.quarantine}")
    if role_call.failed_attempts:
        about.append(f"{len(role_call.failed_attempts)} failed attempts before it")
    console.print(" · ".join(about), style="dim", markup=False)
    console.print(_render_completion(role_call))
    if role_call.tokens is not None:
        new = len(role_call.tokens.prompt_ids) - role_call.tokens.offset
        console.print(
            f"{role_call.tokens.offset} repeated tokens, {new} new, {len(role_call.tokens.completion_ids)} sampled"
        )
        console.print(_build_token_table(role_call, token_texts))


def _render_completion(role_call: RoleCallRecord) -> Text:
    """Return the completion with its spans in color."""
    text = Text(CONTROL_CHARS.sub(CONTROL_REPLACEMENT, role_call.completion))
    for span in role_call.spans:
        text.stylize(COLORS.get(span.kind, ""), span.start_char, span.end_char)
    return text


def _build_token_table(role_call: RoleCallRecord, token_texts: TokenTexts | None) -> Table:
    table = Table("n", "id", "piece", "mask", "log-prob", "entropy", "span", box=None, pad_edge=False)
    tokens = role_call.tokens
    assert tokens is not None
    for n, id in enumerate(tokens.completion_ids):
        kind = _span_kind_at(role_call.spans, n)
        token_text = CONTROL_CHARS.sub(CONTROL_REPLACEMENT, token_texts.completion[n]) if token_texts else ""
        entropy = "" if tokens.entropy is None else f"{tokens.entropy[n]:.4f}"
        mask = "1" if tokens.loss_mask[n] else "0"
        color = COLORS.get(kind, "")
        table.add_row(
            str(n), str(id), Text(token_text, color), mask, f"{tokens.logprobs[n]:.5f}", entropy, Text(kind, color)
        )
    return table


def _span_kind_at(spans: Sequence[LocatedSpan], token: int) -> str:
    for span in spans:
        if span.start_token is not None and span.end_token is not None and span.start_token <= token < span.end_token:
            return span.kind
    return ""


def _render_value(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"
