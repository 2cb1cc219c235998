"""A trajectory on a terminal, segment by segment: every token with its mask and log-probability, spans in colour."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from offing.cli.terminal import CONTROL
from offing.core.episode import SegmentHead, SpanAt, Talk
from offing.services.pieces import Pieces
from offing.services.trajectories import Trajectory

COLOURS = {
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


UNREADABLE = "\N{REPLACEMENT CHARACTER}"
"""Stands for what could steer a terminal; one for one, so that spans stay where they are."""


def say(console: Console, found: Trajectory, turn: int | None) -> None:
    """Print a run's rows. `turn`: of the graph's loop; None: all of them."""
    _say_episode(console, found)
    heads = {head.idx: head for head in found.dialogue.segments}
    begun: set[int] = set()
    for talk in found.dialogue.turns:
        if turn is not None and talk.number != turn:
            continue
        if talk.segment is not None and talk.segment not in begun:
            begun.add(talk.segment)
            _say_segment(console, heads[talk.segment])
        _say_turn(console, talk, found.pieces.get(talk.seq))


def as_document(found: Trajectory) -> dict[str, Any]:
    """A trajectory as JSON; arrays as lists."""
    document = asdict(found.dialogue)
    for talk, turn in zip(found.dialogue.turns, document["turns"], strict=True):
        pieces = found.pieces.get(talk.seq)
        turn["pieces"] = list(pieces.completion) if pieces else None
        if talk.tokens is not None:
            turn["tokens"] = {
                "offset": talk.tokens.offset,
                **{name: list(getattr(talk.tokens, name)) for name in ("prompt", "completion", "logprobs", "mask")},
                "entropy": None if talk.tokens.entropy is None else list(talk.tokens.entropy),
            }
    return document


def _say_episode(console: Console, found: Trajectory) -> None:
    e = found.dialogue.episode
    console.print(f"run {e.run} · {e.graph} · {e.outcome or e.status} · reward {_said(e.reward)}", markup=False)
    for score in e.scores:
        about = f" of turn {score.turn}" if score.turn else ""
        console.print(f"  {score.scorer}{about}: {_said(score.value)} {score.failure}", markup=False)


def _say_segment(console: Console, head: SegmentHead) -> None:
    after = "" if head.parent is None else f" after segment {head.parent}"
    shared = "" if head.parent_tokens is None else f", {head.parent_tokens} tokens shared"
    console.print(f"\nsegment {head.idx} · {head.role} · {head.fracture}{after}{shared}", style="bold", markup=False)


def _say_turn(console: Console, talk: Talk, pieces: Pieces | None) -> None:
    about = [f"turn {talk.number}", f"step {talk.seq}", talk.role, talk.policy or talk.model or talk.engine]
    about += [talk.trainable + (f" ({talk.trainable_reason})" if talk.trainable_reason else "")]
    if talk.quarantine:
        about.append(f"IN QUARANTINE: {talk.quarantine}")
    if talk.failed_attempts:
        about.append(f"{len(talk.failed_attempts)} failed attempts before it")
    console.print(" · ".join(about), style="dim", markup=False)
    console.print(_coloured(talk))
    if talk.tokens is not None:
        new = len(talk.tokens.prompt) - talk.tokens.offset
        console.print(f"{talk.tokens.offset} tokens as before, {new} new, {len(talk.tokens.completion)} sampled")
        console.print(_token_table(talk, pieces))


def _coloured(talk: Talk) -> Text:
    """The completion, with what its stretches are."""
    text = Text(CONTROL.sub(UNREADABLE, talk.completion))
    for span in talk.spans:
        text.stylize(COLOURS.get(span.kind, ""), span.start_char, span.end_char)
    return text


def _token_table(talk: Talk, pieces: Pieces | None) -> Table:
    table = Table("n", "id", "piece", "mask", "log-prob", "entropy", "span", box=None, pad_edge=False)
    tokens = talk.tokens
    assert tokens is not None
    for n, id in enumerate(tokens.completion):
        kind = _kind_at(talk.spans, n)
        piece = CONTROL.sub(UNREADABLE, pieces.completion[n]) if pieces else ""
        entropy = "" if tokens.entropy is None else f"{tokens.entropy[n]:.4f}"
        mask = "1" if tokens.mask[n] else "0"
        colour = COLOURS.get(kind, "")
        table.add_row(
            str(n), str(id), Text(piece, colour), mask, f"{tokens.logprobs[n]:.5f}", entropy, Text(kind, colour)
        )
    return table


def _kind_at(spans: Sequence[SpanAt], token: int) -> str:
    for span in spans:
        if span.start_token is not None and span.end_token is not None and span.start_token <= token < span.end_token:
            return span.kind
    return ""


def _said(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"
