"""A run as training data, without its tokens: where it belongs, how it ended, what it scored, what was said.

The only home of these shapes. Knows no table, no file format and no numpy, so that the page can be served without it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from offing.core.model import Message
from offing.core.provenance import NOBODY


@dataclass(frozen=True, slots=True)
class Score:
    """One opinion of a scorer; an opinion that was superseded is not here."""

    scorer: str
    scorer_version: str
    value: float | None
    """None: there is none; `failure` says why. Never to be read as 0."""
    failure: str = ""
    turn: int | None = None
    """Seq of the turn that it is about. None: the whole run."""


@dataclass(frozen=True, slots=True)
class References:
    """What the task's answer should have been. Never shown to a run, and in an export only when asked for."""

    answers: tuple[Any, ...]
    """Accepted answers. Empty: the task cannot be answered."""
    evidence: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Cost:
    """What a run took."""

    turns: int
    """Of the graph's loop."""
    prompt_tokens: int
    """By the engines' counts, failed attempts included."""
    completion_tokens: int
    usd: float
    """0: nothing was charged, or no price is known."""
    seconds: float
    """Of a worker's time, without waiting."""
    tool_calls: int
    """Finished ones."""


@dataclass(frozen=True, slots=True)
class Episode:
    """Everything of a run that all its rows share. What a plain run has not, because nobody collected it, is None."""

    run: UUID
    kind: str
    """ask or rollout."""
    graph: str
    graph_version: str
    question: str
    seed: int
    status: str
    stop_reason: str | None
    outcome: str | None
    """`core.trajectory.Outcome`."""
    reward: float | None
    """None: not scored. Never to be read as 0."""
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    settled_at: datetime | None
    """When outcome and reward became final."""
    group: UUID | None = None
    group_state: str | None = None
    """open, complete, or short: some members never became final."""
    group_size: int | None = None
    batch: UUID | None = None
    task: UUID | None = None
    dataset: str = ""
    split: str = ""
    task_name: str = ""
    member: int | None = None
    attempt: int | None = None
    tags: tuple[str, ...] = ()
    scores: tuple[Score, ...] = ()
    references: References | None = None
    """None: not asked for, or the task has none."""
    cost: Cost | None = None
    """None: not known."""


@dataclass(frozen=True, slots=True)
class SegmentHead:
    """Turns of one role whose context only grows."""

    idx: int
    role: str
    fracture: str
    """`core.trajectory.Fracture`: why it began."""
    parent: int | None = None
    """The role's segment before. None: its first."""
    parent_tokens: int | None = None
    """Tokens shared with it at the start. None: ids are not known."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """One turn's ids. Per-token sequences have an entry a completion id."""

    offset: int
    """Tokens of the segment before what this turn's prompt adds."""
    prompt: Sequence[int]
    """The whole prompt."""
    completion: Sequence[int]
    logprobs: Sequence[float]
    mask: Sequence[int]
    """1: sampled by the policy. 0: put there by something else."""
    entropy: Sequence[float] | None = None
    """Nats. None: not given."""


@dataclass(frozen=True, slots=True)
class SpanAt:
    """A stretch of a completion in code points and, where ids are known, in completion ids; ends excluded."""

    kind: str
    start_char: int
    end_char: int
    start_token: int | None = None
    end_token: int | None = None


@dataclass(frozen=True, slots=True)
class Talk:
    """One role call as it was said."""

    seq: int
    number: int
    """Turn of the graph's loop, from 1. 0: outside the loop."""
    segment: int | None
    """None: the engine wrote no text."""
    place: int
    role: str
    engine: str
    model: str
    completion: str
    trainable: str
    """rl, sft or none."""
    trainable_reason: str
    at: datetime
    messages: tuple[Message, ...] = ()
    """The whole prompt; what the policy said before carries the turn that said it. Empty: the engine needed none."""
    tokens: Tokens | None = None
    """None: the engine gave no ids."""
    spans: tuple[SpanAt, ...] = ()
    sampling: Mapping[str, Any] = field(default_factory=dict[str, Any])
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float = 0.0
    policy: str = ""
    """NAME@VERSION. Empty: no policy of ours."""
    weights_sha256: str = ""
    tokenizer_sha256: str = ""
    template_sha256: str = ""
    engine_build: str = ""
    finish: str = ""
    done: bool = False
    quarantine: str = ""
    """Why it may not be trained although it was recorded as trainable. Empty: it may."""
    checkpoint_id: str | None = None
    failed_attempts: tuple[Mapping[str, Any], ...] = ()
    """Requests that gave no accepted answer, before this one; never part of what is trained."""
    accepted: bool = True
    """False: no role could use it; it is never trained as accepted."""
    attempt: int = 1
    """Of its role call."""
    problem: str = ""
    """Why no role could use it. Empty: one did."""

    def teaches(self, *, quarantined: bool = False) -> bool:
        """Whether its text may be imitated. `quarantined`: also where the record is in doubt."""
        known = bool(self.completion) and self.accepted and self.trainable != "none"
        return known and (quarantined or not self.quarantine)


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A finished tool call."""

    seq: int
    number: int
    tool: str
    args: Mapping[str, Any]
    content: Any
    status: str
    message: str
    at: datetime
    origin: str = str(NOBODY.origin)
    """Where the observation came from, as `core.provenance` writes it."""
    trust: str = str(NOBODY.trust)


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A run as text, in its own order."""

    episode: Episode
    segments: tuple[SegmentHead, ...]
    turns: tuple[Talk, ...]
    tools: tuple[ToolUse, ...] = ()


@dataclass(frozen=True, slots=True)
class Preference:
    """Two answers of one group to the very same prompt, of which one led to more."""

    group: UUID
    role: str
    messages: tuple[Message, ...]
    chosen: str
    rejected: str
    chosen_reward: float
    rejected_reward: float
    chosen_run: UUID
    rejected_run: UUID
