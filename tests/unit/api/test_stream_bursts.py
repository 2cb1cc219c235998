"""How many events of a stream are sent together."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from offing.api.feed import FeedEvent, KeepAlive, StepFeedEvent
from offing.api.streams import EventStream
from offing.core.step import Step, StepDraft, StepKind, step_from_draft

RUN = UUID(int=1)


def a_step(seq: int) -> Step:
    return step_from_draft(StepDraft(StepKind.NOTE, f"Step {seq}"), seq, datetime(2026, 1, 1, tzinfo=UTC), fence=1)


async def bodies_of(events: Sequence[FeedEvent]) -> list[bytes]:
    """The chunks that a client gets for these events, in order."""
    bodies: list[bytes] = []

    async def feed() -> AsyncGenerator[FeedEvent]:
        for event in events:
            yield event

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body" and message["body"]:
            bodies.append(message["body"])

    await EventStream(feed(), KeepAlive(), ExitStack()).stream_response(send)
    return bodies


async def test_steps_that_follow_one_another_at_once_are_sent_together_and_in_order() -> None:
    events = [StepFeedEvent(RUN, a_step(seq), is_followed=seq not in (3, 5)) for seq in range(1, 6)]
    _, first, second = await bodies_of(events)
    assert [line for line in first.splitlines() if line.startswith(b"id")] == [b"id: 1", b"id: 2", b"id: 3"]
    assert [line for line in second.splitlines() if line.startswith(b"id")] == [b"id: 4", b"id: 5"]


async def test_a_step_that_nothing_follows_is_sent_at_once() -> None:
    bodies = await bodies_of([StepFeedEvent(RUN, a_step(1)), StepFeedEvent(RUN, a_step(2)), KeepAlive()])
    assert len(bodies) == 4
