"""The live publisher sends drafts in larger parts. A failing bus neither delays a run nor loses text."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from offing.clock import new_id
from offing.core.answer_draft import MAX_DRAFT_CHARS, MAX_DRAFTS_PER_RUN, AnswerDraft, DraftEnd, DraftPart
from offing.core.step import Step
from offing_workers.live_publisher import DRAFT_INTERVAL_SECONDS, LivePublisher, RunLiveSink

TENANT, RUN = new_id(), new_id()

DRAFT = AnswerDraft("call", fence=2, attempt=1, role="planner")


@dataclass
class Bus:
    """Keeps what it is sent. Rejects parts while `is_failing`, and answers after `seconds`."""

    sent: list[DraftPart | DraftEnd] = field(default_factory=list[DraftPart | DraftEnd])
    is_failing: bool = False
    seconds: float = 0.0

    async def publish_steps(self, tenant_id: UUID, run_id: UUID, steps: Sequence[Step], /) -> None: ...

    async def publish_action(
        self, tenant_id: UUID, run_id: UUID, text: str | None, started_at: datetime | None = None
    ) -> None: ...

    async def publish_draft(self, tenant_id: UUID, run_id: UUID, part: DraftPart, /) -> bool:
        await asyncio.sleep(self.seconds)
        if not self.is_failing:
            self.sent.append(part)
        return not self.is_failing

    async def end_draft(self, tenant_id: UUID, run_id: UUID, end: DraftEnd, /) -> bool:
        self.sent.append(end)
        return True


async def until(expected: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not expected():  # noqa: ASYNC110  the publisher has no event for this
            await asyncio.sleep(0.01)


async def write(sink: RunLiveSink, text: str, offset: int = 0, size: int = 5) -> None:
    for start in range(0, len(text), size):
        await sink.publish_draft(DraftPart(DRAFT, offset + start, text[start : start + size]))


async def test_text_is_sent_in_larger_parts_and_its_end_follows() -> None:
    bus = Bus()
    publisher = LivePublisher(bus)
    sink = RunLiveSink(publisher, TENANT, RUN, fence=2, shows_drafts=True)
    await write(sink, "x" * 1000)
    await until(lambda: sum(len(part.text) for part in bus.sent if isinstance(part, DraftPart)) == 1000)
    await write(sink, "y" * 50, offset=1000)
    await asyncio.sleep(3 * DRAFT_INTERVAL_SECONDS)
    await sink.end_draft("call")
    await until(lambda: bus.sent[-1] == DraftEnd("call", 2))
    parts = [part for part in bus.sent if isinstance(part, DraftPart)]
    assert [(part.offset, part.text) for part in parts] == [(0, "x" * 1000), (1000, "y" * 50)]
    await publisher.close()


async def test_after_a_failure_the_whole_text_is_sent_again() -> None:
    bus = Bus(is_failing=True)
    publisher = LivePublisher(bus)
    sink = RunLiveSink(publisher, TENANT, RUN, fence=2)
    await write(sink, "a" * 300)
    await asyncio.sleep(0.05)
    bus.is_failing = False
    await write(sink, "b" * 300, offset=300)
    await until(lambda: bool(bus.sent))
    assert bus.sent[0] == DraftPart(DRAFT, 0, "a" * 300 + "b" * 300)
    await publisher.close()


async def test_a_slow_bus_does_not_delay_the_writer() -> None:
    publisher = LivePublisher(Bus(seconds=30))
    sink = RunLiveSink(publisher, TENANT, RUN, fence=2)
    async with asyncio.timeout(10):
        await write(sink, "a" * 20_000, size=20)
        await asyncio.sleep(0.05)
        await write(sink, "b" * 20_000, offset=20_000, size=20)
    publisher._sender.cancel()  # pyright: ignore[reportPrivateUsage]


async def test_text_and_number_of_drafts_are_bounded() -> None:
    bus = Bus()
    publisher = LivePublisher(bus)
    sink = RunLiveSink(publisher, TENANT, RUN, fence=2)
    await write(sink, "a" * (MAX_DRAFT_CHARS + 500), size=1000)
    for number in range(MAX_DRAFTS_PER_RUN + 3):
        await sink.publish_draft(DraftPart(AnswerDraft(f"call {number}", 2, 1, "planner"), 0, "text"))
    await asyncio.sleep(3 * DRAFT_INTERVAL_SECONDS)
    parts = [part for part in bus.sent if isinstance(part, DraftPart)]
    assert sum(len(part.text) for part in parts if part.draft == DRAFT) == MAX_DRAFT_CHARS
    assert len({part.draft.call_id for part in parts}) == MAX_DRAFTS_PER_RUN
    await publisher.close()


async def test_a_draft_that_was_never_sent_needs_no_end() -> None:
    bus = Bus()
    publisher = LivePublisher(bus)
    sink = RunLiveSink(publisher, TENANT, RUN, fence=2)
    await sink.publish_draft(DraftPart(DRAFT, 0, "short"))
    await sink.end_draft("call")
    await asyncio.sleep(3 * DRAFT_INTERVAL_SECONDS)
    assert bus.sent == []
    await publisher.close()
