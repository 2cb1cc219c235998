"""How a run reads as training data: outcomes, segments, and when a turn continues one.

Pure rules over values; the store applies them when it writes, and exports when they merge rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from offing.core.model import Message
from offing.core.run import RunStatus, StopReason


class Outcome(StrEnum):
    """How a rollout ended; kept apart, because each is trained in its own way."""

    ANSWERED = "answered"
    """It gave an answer of its own accord."""
    DONE = "done"
    """It ended of its own accord without one."""
    TRUNCATED = "truncated"
    """A limit on turns, tokens, money or time cut it off, whether or not it then had to answer."""
    VIOLATED = "violated"
    """It broke a rule of its flow: a context too long, or output that could not be read."""
    INFRA_ERROR = "infra_error"
    """It says nothing about the policy: a provider, a worker or the platform failed. Never scored, never a zero."""


class Fracture(StrEnum):
    """Why a segment began."""

    ROOT = "root"
    FORK = "fork"
    COMPACTION = "compaction"
    """A summary took the place of what it tells."""
    MEMORY_EDIT = "memory_edit"
    WORKSPACE_RESET = "workspace_reset"
    """The prompt is built anew for this turn."""
    SUBAGENT = "subagent"
    TEMPLATE_BREAK = "template_break"
    """The text goes on, but its tokens do not: a template or a tokenizer renders what was said in another way."""
    REJECTED = "rejected"
    """A completion that no role could use stands by itself: nothing goes on from it."""


VIOLATIONS = frozenset({StopReason.INVALID_OUTPUT, StopReason.CONTEXT_LIMIT})

CUTS = frozenset(
    {
        StopReason.TURN_LIMIT,
        StopReason.TOKEN_LIMIT,
        StopReason.SPEND_LIMIT,
        StopReason.TIME_LIMIT,
        StopReason.ASKED_TO_WRITE,
    }
)

FAULTS = frozenset(
    {
        StopReason.PROVIDER_DOWN,
        StopReason.TENANT_SPEND_LIMIT,
        StopReason.GRAPH_ERROR,
        StopReason.NO_PROGRESS,
        StopReason.CANCELLED,
    }
)


def outcome_of(status: RunStatus, reason: StopReason) -> Outcome:
    """What a finished run was, for training."""
    if status is not RunStatus.DONE or reason in FAULTS:
        return Outcome.INFRA_ERROR
    if reason in VIOLATIONS:
        return Outcome.VIOLATED
    if reason in CUTS:
        return Outcome.TRUNCATED
    return Outcome.ANSWERED if reason is StopReason.ANSWERED else Outcome.DONE


@dataclass(frozen=True, slots=True)
class Tail:
    """Where a role's latest segment ends."""

    segment: int
    place: int
    """Of its last turn."""
    seq: int
    """Of its last turn."""
    messages: tuple[Message, ...]
    """That turn's prompt."""
    completion: str
    ids: tuple[int, ...] | None
    """Prompt and completion ids of that turn. None: not known."""


def goes_on(tail: Tail, messages: Sequence[Message], ids: Sequence[int] | None) -> Fracture | None:
    """Whether a prompt continues a segment. None: it does; else why not, as far as the prompts show.

    With ids on both sides only they decide: the new prompt must begin with the very tokens of the segment.
    """
    if tail.ids is not None and ids is not None:
        if len(ids) >= len(tail.ids) and tuple(ids[: len(tail.ids)]) == tail.ids:
            return None
        return Fracture.TEMPLATE_BREAK if text_goes_on(tail, messages) else Fracture.WORKSPACE_RESET
    same_kind = tail.ids is None and ids is None
    return None if same_kind and text_goes_on(tail, messages) else Fracture.WORKSPACE_RESET


def text_goes_on(tail: Tail, messages: Sequence[Message]) -> bool:
    """Whether a prompt repeats a segment's messages, what was answered included, and adds to them."""
    known = len(tail.messages)
    if len(messages) <= known:
        return False
    said = messages[known]
    same = [(m.role, m.text) for m in messages[:known]] == [(m.role, m.text) for m in tail.messages]
    return same and said.role == "assistant" and said.text == tail.completion
