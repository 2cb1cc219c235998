"""The live publisher of a worker: sends steps, drafts and current actions to the bus in the background.

Steps of one run stay in order, and the end of a draft follows the step that replaces it. An action is published only
if it takes some time. The text of drafts is sent in larger parts than it arrives.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol
from uuid import UUID

from offing.cancellation import cancel_tasks
from offing.core.answer_draft import MAX_DRAFT_CHARS, MAX_DRAFTS_PER_RUN, AnswerDraft, DraftEnd, DraftPart
from offing.core.step import Step

MIN_ACTION_SECONDS = 0.25
"""Minimum duration of an action before it is published, in seconds."""

MAX_QUEUED_STEPS = 256
"""Maximum number of unsent steps per run. Subscribers read older ones from Postgres."""

DRAFT_INTERVAL_SECONDS, DRAFT_PART_CHARS = 0.1, 200
"""Text of a draft is sent after this time, or as soon as this many code points wait."""

RunKey = tuple[UUID, UUID]
"""Tenant id and run id."""


class LiveEventPublisher(Protocol):
    """Publishes live events of runs. It never raises."""

    async def publish_steps(self, tenant_id: UUID, run_id: UUID, steps: Sequence[Step], /) -> None: ...

    async def publish_action(
        self, tenant_id: UUID, run_id: UUID, text: str | None, started_at: datetime | None = None
    ) -> None: ...

    async def publish_draft(self, tenant_id: UUID, run_id: UUID, part: DraftPart, /) -> bool:
        """Return whether the part was accepted."""
        ...

    async def end_draft(self, tenant_id: UUID, run_id: UUID, end: DraftEnd, /) -> bool: ...


@dataclass(frozen=True, slots=True)
class RunLiveSink:
    """The live sink of one run."""

    publisher: LiveEventPublisher
    tenant_id: UUID
    run_id: UUID
    fence: int = 0
    shows_drafts: bool = False
    """Whether answers are shown while they are written."""

    async def publish_steps(self, steps: Sequence[Step], /) -> None:
        await self.publisher.publish_steps(self.tenant_id, self.run_id, steps)

    async def publish_action(self, text: str | None, /) -> None:
        await self.publisher.publish_action(self.tenant_id, self.run_id, text)

    async def publish_draft(self, part: DraftPart, /) -> None:
        part = replace(part, draft=replace(part.draft, fence=self.fence))
        await self.publisher.publish_draft(self.tenant_id, self.run_id, part)

    async def end_draft(self, call_id: str, /) -> None:
        await self.publisher.end_draft(self.tenant_id, self.run_id, DraftEnd(call_id, self.fence))


@dataclass(slots=True)
class _OpenDraft:
    """A draft whose answer is being written."""

    draft: AnswerDraft
    text: str = ""
    """Text that was passed to the bus."""
    waiting: list[str] = field(default_factory=list[str])
    waiting_chars: int = 0
    must_send_all: bool = True
    """Whether the next part must contain the whole text, because the bus has not accepted the parts before."""

    @property
    def was_sent(self) -> bool:
        return bool(self.text)

    def add(self, part: DraftPart) -> None:
        """Add text up to the maximum length of a draft."""
        room = MAX_DRAFT_CHARS - len(self.text) - self.waiting_chars
        self.waiting.append(part.text[:room])
        self.waiting_chars += len(self.waiting[-1])

    def take_part(self) -> DraftPart:
        """Return the next part to send."""
        offset, new = len(self.text), "".join(self.waiting)
        self.text, self.waiting, self.waiting_chars = self.text + new, [], 0
        return DraftPart(self.draft, 0, self.text) if self.must_send_all else DraftPart(self.draft, offset, new)


class LivePublisher:
    """Publishes the live events of one process. Its methods return immediately."""

    def __init__(self, bus: LiveEventPublisher) -> None:
        self._bus = bus
        self._steps: dict[RunKey, list[Step]] = {}
        self._actions: dict[RunKey, tuple[str | None, datetime | None]] = {}
        self._timers: dict[RunKey, asyncio.TimerHandle] = {}
        self._shown_runs: set[RunKey] = set()
        self._drafts: dict[RunKey, dict[str, _OpenDraft]] = {}
        self._draft_ends: list[tuple[RunKey, DraftEnd]] = []
        self._draft_timer: asyncio.TimerHandle | None = None
        self._has_events = asyncio.Event()
        self._sender = asyncio.create_task(self._send_until_cancelled())

    async def publish_steps(self, tenant_id: UUID, run_id: UUID, new: Sequence[Step]) -> None:
        waiting = self._steps.setdefault((tenant_id, run_id), [])
        waiting.extend(new)
        del waiting[:-MAX_QUEUED_STEPS]
        self._cancel_timer((tenant_id, run_id))
        self._set_action((tenant_id, run_id), None, None)
        self._has_events.set()

    async def publish_action(
        self, tenant_id: UUID, run_id: UUID, text: str | None, started_at: datetime | None = None
    ) -> None:
        watched = (tenant_id, run_id)
        self._cancel_timer(watched)
        if text is None:
            self._set_action(watched, None, started_at)
        else:
            begun = started_at or datetime.now(UTC)
            timer = asyncio.get_running_loop().call_later(MIN_ACTION_SECONDS, self._set_action, watched, text, begun)
            self._timers[watched] = timer

    async def publish_draft(self, tenant_id: UUID, run_id: UUID, part: DraftPart) -> bool:
        drafts = self._drafts.setdefault((tenant_id, run_id), {})
        if part.offset == 0 and (part.draft.call_id in drafts or len(drafts) < MAX_DRAFTS_PER_RUN):
            drafts[part.draft.call_id] = _OpenDraft(part.draft)
        open_draft = drafts.get(part.draft.call_id)
        if open_draft is None or open_draft.draft != part.draft:
            return False
        open_draft.add(part)
        if open_draft.waiting_chars >= DRAFT_PART_CHARS:
            self._has_events.set()
        elif self._draft_timer is None:
            self._draft_timer = asyncio.get_running_loop().call_later(DRAFT_INTERVAL_SECONDS, self._has_events.set)
        return True

    async def end_draft(self, tenant_id: UUID, run_id: UUID, end: DraftEnd) -> bool:
        run_key = (tenant_id, run_id)
        drafts = self._drafts.get(run_key, {})
        draft = drafts.pop(end.call_id, None)
        if not end.call_id or not drafts:
            self._drafts.pop(run_key, None)
        if not end.call_id or (draft is not None and draft.was_sent):
            self._draft_ends.append((run_key, end))
            self._has_events.set()
        return True

    async def close(self) -> None:
        """Send pending events, and stop."""
        if self._draft_timer is not None:
            self._draft_timer.cancel()
        await cancel_tasks([self._sender])
        await self._send_pending()

    def _cancel_timer(self, run_key: RunKey) -> None:
        """Cancel the pending publication of an action that has ended."""
        if timer := self._timers.pop(run_key, None):
            timer.cancel()

    def _set_action(self, run_key: RunKey, text: str | None, started_at: datetime | None) -> None:
        self._timers.pop(run_key, None)
        if text is None and run_key not in self._shown_runs:
            return
        self._shown_runs.add(run_key) if text else self._shown_runs.discard(run_key)
        self._actions[run_key] = (text, started_at)
        self._has_events.set()

    async def _send_until_cancelled(self) -> None:
        while True:
            await self._has_events.wait()
            self._has_events.clear()
            await self._send_pending()

    async def _send_pending(self) -> None:
        steps, self._steps = self._steps, {}
        doing, self._actions = self._actions, {}
        if self._draft_timer is not None:
            self._draft_timer.cancel()
            self._draft_timer = None
        for (tenant, run), new in steps.items():
            await self._bus.publish_steps(tenant, run, new)
        for (tenant, run), drafts in list(self._drafts.items()):
            for open_draft in [draft for draft in drafts.values() if draft.waiting_chars]:
                accepted = await self._bus.publish_draft(tenant, run, open_draft.take_part())
                open_draft.must_send_all = not accepted
        ends, self._draft_ends = self._draft_ends, []
        for (tenant, run), end in ends:
            await self._bus.end_draft(tenant, run, end)
        for (tenant, run), (text, since) in doing.items():
            await self._bus.publish_action(tenant, run, text, since)
