"""A run as training data on the wire, and how it is made from what the service returns."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from offing.api.schemas import Wire
from offing.core.episode import SpanAt, Talk, Tokens
from offing.services.pieces import Pieces
from offing.services.trajectories import Trajectory


class TrajectorySpanOut(Wire):
    """A stretch of a completion; ends are excluded."""

    kind: str
    start_char: int = Field(description="Code point of the completion.")
    end_char: int
    start_token: int | None = Field(description="Completion id. null: ids are not known.")
    end_token: int | None


class TrajectoryTokensOut(Wire):
    """A turn's ids. Lists about the completion have an entry a completion id."""

    offset: int = Field(description="Tokens of the segment before prompt_ids.")
    prompt_ids: list[int] = Field(description="What this turn's prompt adds to its segment.")
    prompt_pieces: list[str] | None = Field(description="What they decode to. null: no tokenizer is at hand.")
    completion_ids: list[int]
    completion_pieces: list[str] | None
    logprobs: list[float] = Field(description="Of the distribution sampled from, natural logarithm.")
    mask: list[bool] = Field(description="true: sampled by the policy.")
    entropy: list[float] | None = Field(description="Nats. null: not given.")


class TrajectoryMessageOut(Wire):
    role: str
    text: str
    turn: int = Field(description="Seq of the turn that said it. 0: the text stands for itself.")


class TrajectoryTurnOut(Wire):
    """One role call."""

    seq: int = Field(description="Of its step.")
    turn: int = Field(description="Of the graph's loop, from 1. 0: outside the loop.")
    segment: int | None = Field(description="null: the engine wrote no text.")
    place: int = Field(description="In its segment, from 0.")
    role: str
    engine: str
    model: str
    policy: str = Field(description="NAME@VERSION. Empty: no policy of ours.")
    messages: list[TrajectoryMessageOut]
    completion: str
    spans: list[TrajectorySpanOut]
    tokens: TrajectoryTokensOut | None = Field(description="null: the engine gave no ids.")
    trainable: str = Field(description="rl, sft or none.")
    trainable_reason: str
    quarantine: str = Field(description="Why it may not be trained. Empty: it may.")
    sampling: dict[str, Any]
    finish: str
    done: bool = Field(description="The role ended the run with it.")
    failed_attempts: int = Field(description="Requests before it that gave no accepted answer.")
    prompt_tokens: int
    completion_tokens: int
    usd: float
    checkpoint_id: str | None
    at: datetime


class TrajectorySegmentOut(Wire):
    """Turns of one role whose context only grows."""

    idx: int
    role: str
    fracture: str = Field(description="Why it began.")
    parent: int | None
    parent_tokens: int | None


class TrajectoryScoreOut(Wire):
    scorer: str
    scorer_version: str
    value: float | None = Field(description="null: there is none, see failure.")
    failure: str
    turn: int | None = Field(description="Seq of the turn that it is about. null: the run.")


class TrajectoryOut(Wire):
    """A run's segments, and a page of its turns."""

    run_id: UUID
    kind: str
    graph: str
    outcome: str | None
    reward: float | None
    group_id: UUID | None
    member: int | None
    attempt: int | None
    scores: list[TrajectoryScoreOut]
    segments: list[TrajectorySegmentOut]
    turns: list[TrajectoryTurnOut]
    next: int | None = Field(description="`after` of the next page of turns. null: this was the last.")


def trajectory_out(found: Trajectory) -> TrajectoryOut:
    episode = found.dialogue.episode
    return TrajectoryOut(
        run_id=episode.run,
        kind=episode.kind,
        graph=episode.graph,
        outcome=episode.outcome,
        reward=episode.reward,
        group_id=episode.group,
        member=episode.member,
        attempt=episode.attempt,
        scores=[TrajectoryScoreOut(**_fields(s, TrajectoryScoreOut)) for s in episode.scores],
        segments=[TrajectorySegmentOut(**_fields(s, TrajectorySegmentOut)) for s in found.dialogue.segments],
        turns=[_turn(talk, found.pieces.get(talk.seq)) for talk in found.dialogue.turns],
        next=found.following,
    )


SAME = frozenset(TrajectoryTurnOut.model_fields) - {
    *("turn", "messages", "spans", "tokens", "sampling", "failed_attempts")
}
"""What a turn says in the same words."""


def _turn(talk: Talk, pieces: Pieces | None) -> TrajectoryTurnOut:
    return TrajectoryTurnOut(
        turn=talk.number,
        messages=[TrajectoryMessageOut(role=m.role, text=m.text, turn=m.turn) for m in talk.messages],
        spans=[_span(span) for span in talk.spans],
        tokens=None if talk.tokens is None else _tokens(talk.tokens, pieces),
        sampling=dict(talk.sampling),
        failed_attempts=len(talk.failed_attempts),
        **{name: getattr(talk, name) for name in SAME},
    )


def _span(span: SpanAt) -> TrajectorySpanOut:
    return TrajectorySpanOut(**_fields(span, TrajectorySpanOut))


def _tokens(tokens: Tokens, pieces: Pieces | None) -> TrajectoryTokensOut:
    return TrajectoryTokensOut(
        offset=tokens.offset,
        prompt_ids=list(tokens.prompt[tokens.offset :]),
        prompt_pieces=_listed(pieces.prompt[tokens.offset :]) if pieces else None,
        completion_ids=list(tokens.completion),
        completion_pieces=_listed(pieces.completion) if pieces else None,
        logprobs=list(tokens.logprobs),
        mask=[bool(bit) for bit in tokens.mask],
        entropy=None if tokens.entropy is None else list(tokens.entropy),
    )


def _listed(pieces: Sequence[str]) -> list[str]:
    return list(pieces)


def _fields(value: object, shape: type[Wire]) -> dict[str, Any]:
    return {name: getattr(value, name) for name in shape.model_fields}


EXAMPLE: dict[str, Any] = {
    "run_id": "01980000-0000-7000-8000-00000000000a",
    "kind": "rollout",
    "graph": "memact",
    "outcome": "answered",
    "reward": 1.0,
    "group_id": "01980000-0000-7000-8000-00000000000f",
    "member": 0,
    "attempt": 1,
    "scores": [{"scorer": "exact_match", "scorer_version": "1", "value": 1.0, "failure": "", "turn": None}],
    "segments": [{"idx": 0, "role": "agent", "fracture": "root", "parent": None, "parent_tokens": None}],
    "turns": [
        {
            "seq": 3,
            "turn": 1,
            "segment": 0,
            "place": 0,
            "role": "agent",
            "engine": "policy",
            "model": "planner@1",
            "policy": "planner@1",
            "messages": [{"role": "user", "text": "Who?", "turn": 0}],
            "completion": "Bo",
            "spans": [{"kind": "answer", "start_char": 0, "end_char": 2, "start_token": 0, "end_token": 2}],
            "tokens": {
                "offset": 0,
                "prompt_ids": [5, 6],
                "prompt_pieces": ["Who", "?"],
                "completion_ids": [7, 2],
                "completion_pieces": ["Bo", "<end>"],
                "logprobs": [-0.25, -0.001],
                "mask": [True, True],
                "entropy": [0.6, 0.01],
            },
            "trainable": "rl",
            "trainable_reason": "",
            "quarantine": "",
            "sampling": {"temperature": 1.0},
            "finish": "stop",
            "done": True,
            "failed_attempts": 0,
            "prompt_tokens": 2,
            "completion_tokens": 2,
            "usd": 0.0,
            "checkpoint_id": None,
            "at": "2026-11-21T09:00:00Z",
        }
    ],
    "next": None,
}
"""Of TrajectoryOut, for the OpenAPI document."""
