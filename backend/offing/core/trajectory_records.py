"""Records of a run as training data: its metadata, outcome, scores, role calls and tool calls.

The types depend on no table, no file format and not on numpy, so the API can use them without it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from offing.core.model import Message
from offing.core.provenance import NO_PROVENANCE
from offing.core.training_signal import TrainingSignal


@dataclass(frozen=True, slots=True)
class RewardScore:
    """A score of a run or a role call. Superseded scores are not included."""

    scorer: str
    scorer_version: str
    value: float | None
    """`None` means that scoring failed; `failure` gives the reason. It must never be read as 0."""
    failure: str = ""
    role_call_seq: int | None = None
    """Step number of the role call that was scored. `None` means the whole run."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The reference answer of a task.

    It is never shown to a run. An export contains it only on request.
    """

    answers: tuple[Any, ...] | None
    """Accepted answers. Empty means that the task cannot be answered, `None` that the correct answer is unknown."""
    evidence: tuple[Any, ...] = ()
    rubric: tuple[Any, ...] = ()
    """Criteria of a good report, each with text and weight. Empty means that the task has no rubric."""


@dataclass(frozen=True, slots=True)
class RunCost:
    """Resources that a run used."""

    turns: int
    """Turns of the graph's loop."""
    prompt_tokens: int
    """Token counts as reported by the engines, including failed attempts."""
    completion_tokens: int
    cost_usd: float
    """Cost in USD. 0 means that nothing was charged or that no price is known."""
    seconds: float
    """Working time in seconds, without waiting."""
    tool_calls: int
    """Number of finished tool calls."""


@dataclass(frozen=True, slots=True)
class TrajectoryMetadata:
    """Metadata of a run, shared by all its training rows.

    Fields that exist only for collected runs are `None` for an interactive run.
    """

    run_id: UUID
    kind: str
    """Kind of the run: `interactive` or `rollout`."""
    graph: str
    graph_version: str
    question: str
    seed: int
    status: str
    stop_reason: str | None
    outcome: str | None
    """Value of `core.trajectory.Outcome`."""
    reward: float | None
    """`None` means that the run has no reward. It must never be read as 0."""
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    finalized_at: datetime | None
    """Time at which outcome and reward became final."""
    group_id: UUID | None = None
    group_state: str | None = None
    """State of the group: `open`, `complete`, or `incomplete` if some rollouts were never finalized."""
    group_size: int | None = None
    rollout_batch_id: UUID | None = None
    task_id: UUID | None = None
    dataset: str = ""
    split: str = ""
    task_name: str = ""
    member: int | None = None
    attempt: int | None = None
    tags: tuple[str, ...] = ()
    scores: tuple[RewardScore, ...] = ()
    reference: Reference | None = None
    """`None` means that the reference was not requested or that the task has none."""
    cost: RunCost | None = None
    """`None` means that the cost is unknown."""


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """A segment: role calls of one role whose context only grows."""

    idx: int
    role: str
    boundary_reason: str
    """Value of `core.trajectory.BoundaryReason`: why the segment began."""
    parent_idx: int | None = None
    """Index of the role's previous segment. `None` means that this is its first."""
    shared_tokens: int | None = None
    """Number of tokens at the start that are shared with the previous segment.

    `None` means that token ids are unknown.
    """


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """Token ids of one role call. Per-token sequences have one entry per completion id."""

    offset: int
    """Number of tokens of the segment before the tokens that this prompt adds."""
    prompt_ids: Sequence[int]
    """Token ids of the whole prompt."""
    completion_ids: Sequence[int]
    logprobs: Sequence[float]
    loss_mask: Sequence[int]
    """1 where the policy sampled the token, 0 where the token was inserted."""
    entropy: Sequence[float] | None = None
    """Entropy in nats. `None` means that the engine did not report it."""


@dataclass(frozen=True, slots=True)
class LocatedSpan:
    """A labeled range of a completion in code points and, if token ids are known, in completion ids.

    Ends are exclusive.
    """

    kind: str
    start_char: int
    end_char: int
    start_token: int | None = None
    end_token: int | None = None


@dataclass(frozen=True, slots=True)
class RoleCallRecord:
    """One role call with its prompt, its completion and how it was sampled."""

    seq: int
    turn: int
    """Turn of the graph's loop, from 1. 0 means outside the loop."""
    segment_idx: int | None
    """Index of its segment. `None` means that the engine wrote no text."""
    position: int
    role: str
    engine: str
    model: str
    completion: str
    trainable: str
    """What the role call may be used for: `rl`, `sft` or `none`."""
    trainable_reason: str
    at: datetime
    messages: tuple[Message, ...] = ()
    """Messages of the whole prompt. Empty means that the engine needed no prompt.

    An earlier completion of the policy refers to the role call that wrote it.
    """
    tokens: TokenRecord | None = None
    """`None` means that the engine returned no token ids."""
    spans: tuple[LocatedSpan, ...] = ()
    sampling: Mapping[str, Any] = field(default_factory=dict[str, Any])
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    policy: str = ""
    """Policy version as NAME@VERSION. Empty means that no policy of this installation answered."""
    weights_sha256: str = ""
    tokenizer_sha256: str = ""
    template_sha256: str = ""
    engine_build: str = ""
    finish_reason: str = ""
    is_final: bool = False
    quarantine: str = ""
    """Why the role call is quarantined although it was recorded as trainable.

    Empty means that it is not quarantined.
    """
    checkpoint_id: str | None = None
    failed_attempts: tuple[Mapping[str, Any], ...] = ()
    """Failed attempts before this one. They are never trained."""
    is_accepted: bool = True
    """`False` means that the completion was rejected. It is never trained as an accepted one."""
    attempt: int = 1
    """Number of the attempt within its role call, from 1."""
    cached_prompt_tokens: int = 0
    """The part of `prompt_tokens` that the provider read from its cache. 0 also means unknown."""
    reasoning_tokens: int = 0
    """The part of `completion_tokens` that the model thought before it answered. 0 also means unknown."""
    problem: str = ""
    """Why the completion was rejected. Empty means that it was accepted."""

    def is_trainable_text(self, *, include_quarantined: bool = False) -> bool:
        """Return whether the text may be used for SFT.

        `include_quarantined` also accepts role calls in quarantine.
        """
        is_usable = bool(self.completion) and self.is_accepted and self.trainable != "none"
        return is_usable and (include_quarantined or not self.quarantine)


@dataclass(frozen=True, slots=True)
class ToolCallRecord:
    """A finished tool call."""

    seq: int
    turn: int
    tool: str
    args: Mapping[str, Any]
    content: Any
    status: str
    message: str
    at: datetime
    origin: str = str(NO_PROVENANCE.origin)
    """Origin of the tool result, in the notation of `core.provenance`."""
    trust: str = str(NO_PROVENANCE.trust)


@dataclass(frozen=True, slots=True)
class TextTrajectory:
    """A run as text, in the order in which it happened."""

    metadata: TrajectoryMetadata
    segments: tuple[SegmentInfo, ...]
    role_calls: tuple[RoleCallRecord, ...]
    tool_calls: tuple[ToolCallRecord, ...] = ()


class PreferenceSource(StrEnum):
    """What a preference between two completions comes from."""

    REWARD = "reward"
    """The rewards of two rollouts of one group."""
    RATING = "rating"
    """People's ratings of the reports of two runs."""
    CORRECTION = "correction"
    """The right answer that a person gave for a run."""


@dataclass(frozen=True, slots=True)
class PreferencePair:
    """Two completions for the same prompt of which one is preferred."""

    source: PreferenceSource
    group_id: UUID | None
    """Group of both rollouts. `None` if the source is no reward."""
    role: str
    """Empty for a correction, of which the prompt is the question and the completions are answers."""
    messages: tuple[Message, ...]
    chosen: str
    rejected: str
    chosen_reward: float | None
    """The reward, or the mean rating from -1 to 1. `None` for a correction, as in `rejected_reward`."""
    rejected_reward: float | None
    chosen_run_id: UUID | None
    """`None` means that no run wrote it: it is a corrected answer."""
    rejected_run_id: UUID
    signals: tuple[TrainingSignal, ...] = ()
    """The ratings of both runs, or the correction. Empty for rewards."""
