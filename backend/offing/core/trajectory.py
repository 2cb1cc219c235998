"""Rules that read a run as training data: its outcome, its segments and their boundaries.

The rules are pure. The store applies them when it writes; exports apply them when they merge rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from offing.core.model import Message
from offing.core.run import RunStatus, StopReason


class Outcome(StrEnum):
    """How a rollout ended. Training treats each outcome differently."""

    ANSWERED = "answered"
    """The run ended on its own with an answer."""
    NO_ANSWER = "no_answer"
    """The run ended on its own without an answer."""
    TRUNCATED = "truncated"
    """A limit on turns, tokens, cost or time ended the run, whether or not it then had to answer."""
    VIOLATED = "violated"
    """The run broke a rule of its graph: its context was too long or an output could not be parsed."""
    INFRA_ERROR = "infra_error"
    """A provider, a worker or the platform failed.

    It carries no information about the policy and is never scored, not even with 0.
    """


class BoundaryReason(StrEnum):
    """Why a segment began."""

    ROOT = "root"
    FORK = "fork"
    COMPACTION = "compaction"
    """A summary replaced earlier messages."""
    MEMORY_EDIT = "memory_edit"
    WORKSPACE_RESET = "workspace_reset"
    """The prompt is rebuilt for this turn."""
    SUBAGENT = "subagent"
    TEMPLATE_BREAK = "template_break"
    """The text continues but its tokens do not.

    A template or a tokenizer renders the earlier messages differently.
    """
    REJECTED = "rejected"
    """A rejected completion is a separate segment, which is never continued."""


VIOLATION_REASONS = frozenset({StopReason.INVALID_OUTPUT, StopReason.CONTEXT_LIMIT})

TRUNCATION_REASONS = frozenset(
    {
        StopReason.SATURATED,
        StopReason.TURN_LIMIT,
        StopReason.TOKEN_LIMIT,
        StopReason.SPEND_LIMIT,
        StopReason.TIME_LIMIT,
        StopReason.FINISH_REQUESTED,
    }
)

INFRA_REASONS = frozenset(
    {
        StopReason.PROVIDER_DOWN,
        StopReason.TENANT_SPEND_LIMIT,
        StopReason.GRAPH_ERROR,
        StopReason.NO_PROGRESS,
        StopReason.CANCELLED,
    }
)


def classify_outcome(status: RunStatus, stop_reason: StopReason) -> Outcome:
    """Classify the outcome of a finished run for training."""
    if status is not RunStatus.DONE or stop_reason in INFRA_REASONS:
        return Outcome.INFRA_ERROR
    if stop_reason in VIOLATION_REASONS:
        return Outcome.VIOLATED
    if stop_reason in TRUNCATION_REASONS:
        return Outcome.TRUNCATED
    return Outcome.ANSWERED if stop_reason is StopReason.ANSWERED else Outcome.NO_ANSWER


@dataclass(frozen=True, slots=True)
class SegmentTail:
    """End of a role's latest segment."""

    segment: int
    position: int
    """Taken from the last role call of the segment."""
    seq: int
    """Taken from the last role call of the segment."""
    messages: tuple[Message, ...]
    """Prompt of its last role call."""
    completion: str
    token_ids: tuple[int, ...] | None
    """Prompt and completion ids of its last role call. `None` means that they are unknown."""


def find_boundary(
    tail: SegmentTail, messages: Sequence[Message], prompt_ids: Sequence[int] | None
) -> BoundaryReason | None:
    """Return why a prompt does not continue a segment. `None` means that it does.

    If token ids are known on both sides, only they decide: the new prompt must begin with exactly the
    tokens of the segment. Otherwise the messages decide.
    """
    if tail.token_ids is not None and prompt_ids is not None:
        if len(prompt_ids) >= len(tail.token_ids) and tuple(prompt_ids[: len(tail.token_ids)]) == tail.token_ids:
            return None
        return BoundaryReason.TEMPLATE_BREAK if is_text_continuation(tail, messages) else BoundaryReason.WORKSPACE_RESET
    same_kind = tail.token_ids is None and prompt_ids is None
    return None if same_kind and is_text_continuation(tail, messages) else BoundaryReason.WORKSPACE_RESET


def is_text_continuation(tail: SegmentTail, messages: Sequence[Message]) -> bool:
    """Return whether a prompt repeats a segment's messages and completion, and extends them."""
    message_count = len(tail.messages)
    if len(messages) <= message_count:
        return False
    assistant_message = messages[message_count]
    same = [(m.role, m.text) for m in messages[:message_count]] == [(m.role, m.text) for m in tail.messages]
    return same and assistant_message.role == "assistant" and assistant_message.text == tail.completion
