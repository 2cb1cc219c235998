"""The live drafts of role calls: what viewers see of an answer before it is recorded."""

from dataclasses import dataclass, field
from typing import Any

from offing.core.answer_draft import AnswerDraft, DraftPart
from offing.core.partial_answer import PartialAnswer
from offing.core.step import CallKey, StepKind
from offing.kernel.run_store import LiveSink
from offing.sdk import Role
from offing.telemetry.redaction import redact
from offing.telemetry.stream_redaction import StreamRedactor

HIDDEN_STEP_KINDS = frozenset({StepKind.TOOL_CALL})
"""Step kinds of roles whose answers are for programs. They have no drafts."""

CHECKED_WITHOUT_SOURCES = frozenset({StepKind.PLAN, StepKind.ANALYSIS, StepKind.VERIFICATION})
"""Step kinds of answers that are no part of a report. The text of every other role counts as unverified."""


@dataclass(slots=True)
class RoleDraftWriter:
    """The text listener of one role call. It passes readable text without secrets to the viewers of the run."""

    sink: LiveSink
    call_id: str
    role: str
    label: str
    is_unverified: bool
    _attempt: int = 0
    _answer: PartialAnswer = field(default_factory=PartialAnswer)
    _redactor: StreamRedactor = field(default_factory=StreamRedactor)
    _sent_chars: int = 0

    async def begin_attempt(self, number: int) -> None:
        """Start the draft of an attempt. The draft of an earlier attempt is withdrawn."""
        await self.end()
        self._attempt, self._sent_chars = number, 0
        self._answer, self._redactor = PartialAnswer(), StreamRedactor()

    async def add_text(self, text: str) -> None:
        """Add text of the answer as it arrived."""
        clean = self._redactor.feed(self._answer.feed(text))
        if clean:
            draft = AnswerDraft(self.call_id, 0, self._attempt, self.role, self.label, self.is_unverified)
            await self.sink.publish_draft(DraftPart(draft, self._sent_chars, clean))
            self._sent_chars += len(clean)

    async def end(self) -> None:
        """Remove the draft from all viewers: its answer is recorded, or its attempt is lost."""
        if self._sent_chars:
            self._sent_chars = 0
            await self.sink.end_draft(self.call_id)


def create_draft_writer(sink: LiveSink, role: Role[Any, Any], key: CallKey) -> RoleDraftWriter | None:
    """Return the text listener of a role call. `None` means that the call has no draft."""
    if not sink.shows_drafts or role.step_kind in HIDDEN_STEP_KINDS:
        return None
    is_unverified = role.step_kind not in CHECKED_WITHOUT_SOURCES
    return RoleDraftWriter(sink, render_call_id(key), role.name, redact(role.label), is_unverified)


def render_call_id(key: CallKey) -> str:
    """Return a short text that identifies a call in its run."""
    return f"{key.superstep}/{key.path}/{key.ordinal}/{key.digest[:12]}"
