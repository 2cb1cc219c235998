"""What a run leaves behind: its steps, in one append-only sequence.

The only home of step kinds. Timeline, event stream, replay and exports all read these rows and nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

Json = Mapping[str, Any]

TITLE_LIMIT = 160
"""Code points of a title or a detail; the full text is in the payload."""


class StepKind(StrEnum):
    QUEUED = "queued"
    """The run was accepted. Always seq 1."""
    STARTED = "started"
    """A worker took it for the first time."""
    RESUMED = "resumed"
    """Another worker went on after one was lost, or after a pause or a wait."""
    PAUSED = "paused"
    WAITING = "waiting"
    HUMAN = "human"
    """A person's message to the run."""
    QUESTION = "question"
    """What the run asks of a person."""
    ANSWER = "answer"
    """The answer to a question, as the run took it up."""
    ANALYSIS = "analysis"
    """Query analysis."""
    PLAN = "plan"
    """A planner's justification, context, sub-goal and tool."""
    COMMAND = "command"
    """An executor's validated tool call."""
    TOOL = "tool"
    """A finished tool call with its decision, arguments and observation."""
    MEMORY = "memory"
    """One structured memory record."""
    VERDICT = "verdict"
    """A verifier's analysis and explicit stop."""
    TURN = "turn"
    """A role call of a graph that has no kind of its own for it."""
    NOTE = "note"
    """Anything else that a graph wants on record."""
    REPORT = "report"
    """A version of the report."""
    ATTEMPT = "attempt"
    """A completion that no role could use, before the step of its call. Its tokens are in the turn of that seq."""
    FAILURE = "failure"
    """A call that gave no usable answer; the run may go on."""
    ENDED = "ended"
    """The run's last step."""


@dataclass(frozen=True, slots=True)
class CallKey:
    """What identifies a call of a node; the same on every replay.

    Derived from graph state, never from a database counter: superstep number, task path without ids, the digest of
    what is asked, and the ordinal among calls that ask the same.
    """

    superstep: int
    path: str
    ordinal: int
    digest: str = ""
    """Empty: the call was recorded before digests belonged to keys, and its ordinal counts all calls of its node."""


@dataclass(frozen=True, slots=True)
class StepDraft:
    """A step before it has its place in the sequence."""

    kind: StepKind
    title: str
    payload: Json = field(default_factory=dict[str, Any])
    label: str = ""
    """The word shown for it in a timeline: plan, search, read, verify. Empty: the kind."""
    detail: str = ""
    """A second line. Empty: none."""
    ok: bool = True
    ms: int | None = None
    """Wall milliseconds of the call behind it. None: not a call."""
    tokens: int = 0
    turn: int = 0
    """Turn of the graph's loop that it belongs to, from 1. 0: outside the loop."""
    key: CallKey | None = None
    untrains: int = 0
    """Seq of a role call that stays on record and is not trained, because of this step. 0: none."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step in its place. `seq` runs 1..n without a gap within a run."""

    seq: int
    kind: StepKind
    title: str
    payload: Json
    label: str
    detail: str
    ok: bool
    ms: int | None
    tokens: int
    turn: int
    at: datetime
    fence: int
    key: CallKey | None = None


def place_step(draft: StepDraft, seq: int, at: datetime, fence: int) -> Step:
    """Return the step that a draft becomes at `seq`."""
    return Step(
        seq=seq,
        kind=draft.kind,
        title=shortened(draft.title),
        payload=draft.payload,
        label=draft.label or draft.kind,
        detail=shortened(draft.detail),
        ok=draft.ok,
        ms=draft.ms,
        tokens=draft.tokens,
        turn=draft.turn,
        at=at,
        fence=fence,
        key=draft.key,
    )


def shortened(text: str, limit: int = TITLE_LIMIT) -> str:
    """One line of at most `limit` code points, with an ellipsis where something was left out."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"
