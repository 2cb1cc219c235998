"""The answers of a run while models write them, for a terminal."""

from dataclasses import dataclass, field
from uuid import UUID

from offing.bus.live import LiveBus
from offing.cli.terminal import ProgressPrinter
from offing.core.answer_draft import DraftChange, DraftPart, DraftTracker


@dataclass(slots=True)
class DraftView:
    """Shows the draft that grew last. Without a terminal it shows nothing."""

    bus: LiveBus
    tenant_id: UUID
    run_id: UUID
    progress: ProgressPrinter
    _tracker: DraftTracker = field(default_factory=DraftTracker)
    _drafts: dict[str, DraftPart] = field(default_factory=dict[str, DraftPart])
    """The draft of each call, as one part from its beginning."""

    async def apply(self, change: DraftChange) -> None:
        """Show a change of a draft."""
        if not self.progress.is_terminal:
            return
        changes = self._tracker.apply(change)
        if changes is None:
            changes = self._tracker.synchronize(await self.bus.list_drafts(self.tenant_id, self.run_id))
        for new in changes:
            self._show(new)

    def _show(self, change: DraftChange) -> None:
        if not isinstance(change, DraftPart):
            self._drafts.pop(change.call_id, None)
            return self.progress.show_status("working")
        call_id = change.draft.call_id
        before = self._drafts[call_id].text if change.offset and call_id in self._drafts else ""
        self._drafts[call_id] = DraftPart(change.draft, 0, before + change.text)
        self.progress.show_draft(change.draft, before + change.text)
