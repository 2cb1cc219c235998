"""API schemas of a run as training data, and their serializers."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from offing.api.schemas.base import ApiModel
from offing.core.trajectory_records import LocatedSpan, RewardScore, RoleCallRecord, SegmentInfo, TokenRecord
from offing.services.token_texts import TokenTexts
from offing.services.trajectories import ReadableTrajectory


class TrajectorySpanOut(ApiModel):
    """A labeled range of a completion. The end is excluded."""

    kind: str
    start_char: int = Field(description="First code point of the span in the completion.")
    end_char: int
    start_token: int | None = Field(
        description="Index of the first completion id of the span. null: the ids are not known."
    )
    end_token: int | None


class TrajectoryTokensOut(ApiModel):
    """The token ids of a role call. Lists about the completion have one entry per completion id."""

    offset: int = Field(description="Number of tokens in the segment before prompt_ids.")
    prompt_ids: list[int] = Field(description="Token ids that the prompt of this role call adds to its segment.")
    prompt_token_texts: list[str] | None = Field(description="Texts of prompt_ids. null: no tokenizer is available.")
    completion_ids: list[int]
    completion_token_texts: list[str] | None
    logprobs: list[float] = Field(description="Natural logarithms, from the distribution that was sampled from.")
    loss_mask: list[bool] = Field(description="true: sampled by the policy.")
    entropy: list[float] | None = Field(description="In nats. null: not recorded.")


class TrajectoryMessageOut(ApiModel):
    role: str
    text: str
    role_call_seq: int = Field(description="Seq of the role call that wrote this message. 0: no role call wrote it.")


class TrajectoryRoleCallOut(ApiModel):
    """One role call."""

    seq: int = Field(description="Seq of the step.")
    turn: int = Field(description="Turn of the graph's loop, from 1. 0: outside the loop.")
    segment: int | None = Field(description="null: the engine did not write text.")
    position: int = Field(description="Index in the segment, from 0.")
    role: str
    engine: str
    model: str
    policy: str = Field(description="NAME@VERSION. Empty: not answered by a registered policy.")
    messages: list[TrajectoryMessageOut]
    completion: str
    spans: list[TrajectorySpanOut]
    tokens: TrajectoryTokensOut | None = Field(description="null: the engine returned no token ids.")
    trainable: str = Field(description="rl, sft or none.")
    trainable_reason: str
    quarantine: str = Field(description="Why the role call must not be used for training. Empty: it can be used.")
    sampling: dict[str, Any]
    finish_reason: str
    ends_run: bool = Field(description="Whether the role ended the run with this call.")
    failed_attempts: int = Field(description="Number of earlier requests whose answers were not accepted.")
    prompt_tokens: int
    completion_tokens: int
    cached_prompt_tokens: int = Field(
        description="Part of prompt_tokens that the provider read from its cache. 0 also means unknown."
    )
    reasoning_tokens: int = Field(
        description="Part of completion_tokens that the model thought before its answer. 0 also means unknown."
    )
    cost_usd: float
    checkpoint_id: str | None
    at: datetime


class TrajectorySegmentOut(ApiModel):
    """Role calls of one role whose context only grows."""

    index: int
    role: str
    boundary_reason: str = Field(description="Why the segment began.")
    parent_index: int | None
    shared_tokens: int | None


class TrajectoryScoreOut(ApiModel):
    scorer: str
    scorer_version: str
    value: float | None = Field(description="null: the scorer failed; see `failure`.")
    failure: str
    role_call_seq: int | None = Field(description="Seq of the scored role call. null: the score applies to the run.")


class TrajectoryOut(ApiModel):
    """The segments of a run, and a page of its role calls."""

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
    role_calls: list[TrajectoryRoleCallOut]
    next: int | None = Field(description="`after` of the next page of role calls. null: this is the last page.")


def serialize_trajectory(trajectory: ReadableTrajectory) -> TrajectoryOut:
    episode = trajectory.trajectory.metadata
    return TrajectoryOut(
        run_id=episode.run_id,
        kind=episode.kind,
        graph=episode.graph,
        outcome=episode.outcome,
        reward=episode.reward,
        group_id=episode.group_id,
        member=episode.member,
        attempt=episode.attempt,
        scores=[_serialize_score(s) for s in episode.scores],
        segments=[_serialize_segment(s) for s in trajectory.trajectory.segments],
        role_calls=[
            _serialize_role_call(talk, trajectory.token_texts.get(talk.seq))
            for talk in trajectory.trajectory.role_calls
        ],
        next=trajectory.next_after,
    )


def _serialize_role_call(role_call: RoleCallRecord, token_texts: TokenTexts | None) -> TrajectoryRoleCallOut:
    return TrajectoryRoleCallOut(
        turn=role_call.turn,
        messages=[TrajectoryMessageOut(role=m.role, text=m.text, role_call_seq=m.turn) for m in role_call.messages],
        spans=[_serialize_span(span) for span in role_call.spans],
        tokens=None if role_call.tokens is None else _serialize_tokens(role_call.tokens, token_texts),
        sampling=dict(role_call.sampling),
        failed_attempts=len(role_call.failed_attempts),
        seq=role_call.seq,
        segment=role_call.segment_idx,
        position=role_call.position,
        role=role_call.role,
        engine=role_call.engine,
        model=role_call.model,
        policy=role_call.policy,
        completion=role_call.completion,
        trainable=role_call.trainable,
        trainable_reason=role_call.trainable_reason,
        quarantine=role_call.quarantine,
        finish_reason=role_call.finish_reason,
        ends_run=role_call.is_final,
        prompt_tokens=role_call.prompt_tokens,
        completion_tokens=role_call.completion_tokens,
        cached_prompt_tokens=role_call.cached_prompt_tokens,
        reasoning_tokens=role_call.reasoning_tokens,
        cost_usd=role_call.cost_usd,
        checkpoint_id=role_call.checkpoint_id,
        at=role_call.at,
    )


def _serialize_span(span: LocatedSpan) -> TrajectorySpanOut:
    return TrajectorySpanOut(
        kind=span.kind,
        start_char=span.start_char,
        end_char=span.end_char,
        start_token=span.start_token,
        end_token=span.end_token,
    )


def _serialize_segment(segment: SegmentInfo) -> TrajectorySegmentOut:
    return TrajectorySegmentOut(
        index=segment.idx,
        role=segment.role,
        boundary_reason=segment.boundary_reason,
        parent_index=segment.parent_idx,
        shared_tokens=segment.shared_tokens,
    )


def _serialize_score(score: RewardScore) -> TrajectoryScoreOut:
    return TrajectoryScoreOut(
        scorer=score.scorer,
        scorer_version=score.scorer_version,
        value=score.value,
        failure=score.failure,
        role_call_seq=score.role_call_seq,
    )


def _serialize_tokens(tokens: TokenRecord, token_texts: TokenTexts | None) -> TrajectoryTokensOut:
    return TrajectoryTokensOut(
        offset=tokens.offset,
        prompt_ids=list(tokens.prompt_ids[tokens.offset :]),
        prompt_token_texts=_list_texts(token_texts.prompt[tokens.offset :]) if token_texts else None,
        completion_ids=list(tokens.completion_ids),
        completion_token_texts=_list_texts(token_texts.completion) if token_texts else None,
        logprobs=list(tokens.logprobs),
        loss_mask=[bool(bit) for bit in tokens.loss_mask],
        entropy=None if tokens.entropy is None else list(tokens.entropy),
    )


def _list_texts(texts: Sequence[str]) -> list[str]:
    return list(texts)


TRAJECTORY_EXAMPLE: dict[str, Any] = {
    "run_id": "01980000-0000-7000-8000-00000000000a",
    "kind": "rollout",
    "graph": "memact",
    "outcome": "answered",
    "reward": 1.0,
    "group_id": "01980000-0000-7000-8000-00000000000f",
    "member": 0,
    "attempt": 1,
    "scores": [{"scorer": "exact_match", "scorer_version": "1", "value": 1.0, "failure": "", "role_call_seq": None}],
    "segments": [{"index": 0, "role": "agent", "boundary_reason": "root", "parent_index": None, "shared_tokens": None}],
    "role_calls": [
        {
            "seq": 3,
            "turn": 1,
            "segment": 0,
            "position": 0,
            "role": "agent",
            "engine": "policy",
            "model": "planner@1",
            "policy": "planner@1",
            "messages": [{"role": "user", "text": "Who?", "role_call_seq": 0}],
            "completion": "Bo",
            "spans": [{"kind": "answer", "start_char": 0, "end_char": 2, "start_token": 0, "end_token": 2}],
            "tokens": {
                "offset": 0,
                "prompt_ids": [5, 6],
                "prompt_token_texts": ["Who", "?"],
                "completion_ids": [7, 2],
                "completion_token_texts": ["Bo", "<end>"],
                "logprobs": [-0.25, -0.001],
                "loss_mask": [True, True],
                "entropy": [0.6, 0.01],
            },
            "trainable": "rl",
            "trainable_reason": "",
            "quarantine": "",
            "sampling": {"temperature": 1.0},
            "finish_reason": "stop",
            "ends_run": True,
            "failed_attempts": 0,
            "prompt_tokens": 2,
            "completion_tokens": 2,
            "cached_prompt_tokens": 0,
            "reasoning_tokens": 0,
            "cost_usd": 0.0,
            "checkpoint_id": None,
            "at": "2026-11-21T09:00:00Z",
        }
    ],
    "next": None,
}
"""Example of TrajectoryOut for the OpenAPI document."""
