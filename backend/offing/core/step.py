"""Steps: the append-only record of a run.

The timeline, the event stream, replays and exports read only these records.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from offing.core.step_codes import StepSummary

JsonObject = Mapping[str, Any]

MAX_TITLE_CHARS = 160
"""Maximum number of code points of a title or a detail; the full text is in the payload."""


class StepKind(StrEnum):
    QUEUED = "queued"
    """The run was accepted. Always step 1."""
    STARTED = "started"
    """A worker claimed the run for the first time."""
    RESUMED = "resumed"
    """A worker continued the run after a worker crashed, or after a pause or a wait."""
    PAUSED = "paused"
    WAITING = "waiting"
    USER_MESSAGE = "user_message"
    """A user message to the run."""
    INPUT_REQUEST = "input_request"
    """An input request of the run."""
    INPUT_RESPONSE = "input_response"
    """The response to an input request, recorded when the run consumes it."""
    ANALYSIS = "analysis"
    """The analysis of the question."""
    PLAN = "plan"
    """A planner's justification, context, subgoal and tool."""
    TOOL_CALL = "tool_call"
    """An executor's validated tool call."""
    TOOL_RESULT = "tool_result"
    """A finished tool call with its decision, arguments and result."""
    MEMORY = "memory"
    """One structured memory record."""
    VERIFICATION = "verification"
    """A verifier's analysis and its decision whether to stop."""
    ROLE_CALL = "role_call"
    """A role call without a specific step kind."""
    NOTE = "note"
    """A record of any other kind by the graph."""
    REPORT = "report"
    """A version of the report."""
    REJECTED_COMPLETION = "rejected_completion"
    """A rejected completion, recorded before the step of its call.

    Its tokens are in the role call with this step number.
    """
    FAILURE = "failure"
    """A call without a usable response. The run may continue."""
    ENDED = "ended"
    """The last step of the run."""


@dataclass(frozen=True, slots=True)
class CallKey:
    """Identity of a call of a node; it is the same on every replay.

    It is derived from graph state, never from a database counter: superstep number, task path without
    ids, digest of the request, and ordinal among calls with the same request.
    """

    superstep: int
    path: str
    ordinal: int
    digest: str = ""
    """Digest of the request.

    Empty means that the call was recorded before keys had digests; its ordinal then counts all calls of
    its node.
    """
    node: str = field(default="", compare=False)
    """The node of the run's own graph, if it was started with `Send`, so that the path does not name it.

    It is no part of the identity and is not read back. Empty means that the path names it.
    """


@dataclass(frozen=True, slots=True)
class StepDraft:
    """A step before it has a number."""

    kind: StepKind
    title: str
    payload: JsonObject = field(default_factory=dict[str, Any])
    label: str = ""
    """Word shown in the timeline: plan, search, read, verify. Empty means the kind."""
    detail: str = ""
    """Second line in the timeline. Empty means none."""
    ok: bool = True
    ms: int | None = None
    """Duration of the call in milliseconds of wall time. `None` means that the step is not a call."""
    tokens: int = 0
    turn: int = 0
    """Turn of the graph's loop, from 1. 0 means outside the loop."""
    call_key: CallKey | None = None
    excluded_role_call_seq: int = 0
    """Step number of a role call that this step excludes from training. It stays on record. 0 means none."""


@dataclass(frozen=True, slots=True)
class Step:
    """A recorded step. Within a run, `seq` counts from 1 without gaps."""

    seq: int
    kind: StepKind
    title: str
    payload: JsonObject
    label: str
    detail: str
    ok: bool
    ms: int | None
    tokens: int
    turn: int
    at: datetime
    fence: int
    call_key: CallKey | None = None
    summary: StepSummary | None = None
    """What the step says, if its payload was left out. Otherwise `None`, and `summarize_step` reads it."""


def step_from_draft(draft: StepDraft, seq: int, at: datetime, fence: int) -> Step:
    """Return the step with number `seq` for a draft."""
    return Step(
        seq=seq,
        kind=draft.kind,
        title=shorten_line(draft.title),
        payload=draft.payload,
        label=draft.label or draft.kind,
        detail=shorten_line(draft.detail),
        ok=draft.ok,
        ms=draft.ms,
        tokens=draft.tokens,
        turn=draft.turn,
        at=at,
        fence=fence,
        call_key=draft.call_key,
    )


def shorten_line(text: str, max_chars: int = MAX_TITLE_CHARS) -> str:
    """Return text as one line of at most `max_chars` code points, with an ellipsis if it was cut."""
    line = " ".join(text.split())
    return line if len(line) <= max_chars else line[: max_chars - 1].rstrip() + "…"
