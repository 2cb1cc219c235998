"""Answer drafts: the text of role calls while it is written. They are shown live and never recorded."""

from collections.abc import Sequence
from dataclasses import dataclass, field

MAX_DRAFT_CHARS = 100_000
"""Maximum number of code points of a draft. Later text of the answer is not shown until the answer is recorded."""

MAX_DRAFTS_PER_RUN = 16
"""Maximum number of drafts of one run at a time. Drafts of further parallel calls are not shown."""


@dataclass(frozen=True, slots=True)
class AnswerDraft:
    """The draft of one attempt of a role call. It has no text of its own."""

    call_id: str
    """Identifies the role call in its run. It is the same on replay."""
    fence: int
    """Number of the claim that writes the draft. A draft of a later claim replaces those of earlier ones."""
    attempt: int
    """Number of the attempt in the claim, from 1."""
    role: str
    label: str = ""
    """Word in the timeline. Empty means that there is none."""
    is_unverified: bool = False
    """Whether the text may become part of a report, and its claims are checked only when it is complete."""


@dataclass(frozen=True, slots=True)
class DraftPart:
    """Text that continues a draft."""

    draft: AnswerDraft
    offset: int
    """Number of code points of the draft before this text. At 0 the text replaces any earlier draft of the call."""
    text: str


@dataclass(frozen=True, slots=True)
class DraftEnd:
    """The end of a draft: its answer was recorded, or its attempt was lost."""

    call_id: str
    """Empty means all drafts of earlier claims."""
    fence: int


DraftChange = DraftPart | DraftEnd


@dataclass(slots=True)
class DraftTracker:
    """Which drafts of one run a viewer has, and how much of each.

    Changes may arrive twice, in an old version, or with gaps. The viewer gets each text once and in order.
    """

    fence: int = 0
    """The latest claim that was seen. Changes of earlier claims are ignored."""
    _open: dict[str, tuple[AnswerDraft, int]] = field(default_factory=dict[str, tuple[AnswerDraft, int]])
    """Draft and length of its text by call."""

    def apply(self, change: DraftChange) -> list[DraftChange] | None:
        """Return what a change means for the viewer. `None` means that text before it is missing."""
        if isinstance(change, DraftEnd):
            return self._apply_end(change)
        if change.draft.fence < self.fence:
            return []
        ends = self._begin_claim(change.draft.fence)
        call_id, start = change.draft.call_id, change.offset
        draft, length = self._open.get(call_id, (None, 0))
        if draft is not None and change.draft.attempt < draft.attempt:
            return ends
        if draft != change.draft:
            length = 0
        if start > length:
            return None
        new = DraftPart(change.draft, length, change.text[length - start :])
        self._open[call_id] = change.draft, length + len(new.text)
        return [*ends, new] if new.text else ends

    def synchronize(self, drafts: Sequence[DraftPart]) -> list[DraftChange]:
        """Return the changes that lead to these drafts, which are complete from their beginning."""
        current = [part for part in drafts if part.draft.fence >= self.fence]
        call_ids = {part.draft.call_id for part in current}
        changes: list[DraftChange] = [self._remove(call_id) for call_id in list(self._open) if call_id not in call_ids]
        return changes + [change for part in current for change in self.apply(part) or ()]

    def _apply_end(self, end: DraftEnd) -> list[DraftChange]:
        if end.fence < self.fence:
            return []
        ends = self._begin_claim(end.fence)
        return [*ends, self._remove(end.call_id)] if end.call_id in self._open else ends

    def _begin_claim(self, fence: int) -> list[DraftChange]:
        """End all drafts of earlier claims."""
        is_new, self.fence = fence > self.fence, fence
        return [self._remove(call_id) for call_id in list(self._open)] if is_new else []

    def _remove(self, call_id: str) -> DraftEnd:
        del self._open[call_id]
        return DraftEnd(call_id, self.fence)
