"""Streams of threads in a Valkey server that goes away and comes back."""

from uuid import UUID

from offing.bus.run_streams import FIRST_ID, RunStreams, StreamEvent, StreamSender
from offing.bus.stream_fences import Appended, BatchCounter
from offing.clock import new_id
from offing.core.run import FencingToken
from tests.api.test_live_bus import Valkey, valkey

__all__ = ["valkey"]

TENANT, THREAD, RUN = new_id(), new_id(), new_id()


async def test_events_of_an_outage_are_sent_afterwards_in_order(valkey: Valkey) -> None:
    async with RunStreams(valkey.url) as streams:
        sender = _send_as(streams, claim=1)
        sender.send(StreamEvent("values", b"1"))
        await sender.flush()
        valkey.kill()
        for number in (b"2", b"3"):
            sender.send(StreamEvent("values", number))
        await sender.settle()  # does not wait for the server
        result = await streams.append(
            TENANT, THREAD, new_id(), [StreamEvent("values", b"lost")], BatchCounter(1).next()
        )
        assert result is Appended.UNAVAILABLE
        valkey.start()
        sender.send(StreamEvent("values", b"4"))
        await sender.flush()
        entries = await streams.read_after(TENANT, THREAD, FIRST_ID)
    assert [entry.event.data for entry in entries] == [b"2", b"3", b"4"]  # the server forgot what it had


async def test_a_batch_whose_response_was_lost_is_appended_once(valkey: Valkey) -> None:
    run, batches, events = new_id(), BatchCounter(1), [StreamEvent("values", b"1")]
    async with RunStreams(valkey.url) as streams:
        batch = batches.next()
        for _ in range(2):
            assert await streams.append(TENANT, THREAD, run, events, batch) is Appended.ACCEPTED
        assert await streams.append(TENANT, THREAD, run, events, batches.next()) is Appended.ACCEPTED
        assert len([one async for one in streams.read_backwards(TENANT, THREAD, run)]) == 2


async def test_a_claim_adds_nothing_after_a_later_one_or_an_end(valkey: Valkey) -> None:
    run, ended = new_id(), new_id()
    async with RunStreams(valkey.url) as streams:
        earlier, later = _send_as(streams, claim=1, run=run), _send_as(streams, claim=1, run=run, epoch=1)
        earlier.send(StreamEvent("values", b"1"))
        await earlier.flush()
        assert await later.begin()
        earlier.send(StreamEvent("values", b"late"))
        await earlier.flush()
        later.send(StreamEvent("values", b"2"))
        await later.flush()
        values = [one.event.data async for one in streams.read_backwards(TENANT, THREAD, run)]
        assert values == [b"2", b"1"]
        await streams.append_end(TENANT, THREAD, ended, [StreamEvent("end", b"null")])
        result = await streams.append(TENANT, THREAD, ended, [StreamEvent("values", b"4")], BatchCounter(9).next())
        assert result is Appended.FENCED
        await streams.append_end(TENANT, THREAD, ended, [StreamEvent("end", b"null")])
        assert len([one async for one in streams.read_backwards(TENANT, THREAD, ended)]) == 1


def _send_as(streams: RunStreams, *, claim: int, run: UUID = RUN, epoch: int = 0) -> StreamSender:
    return StreamSender(streams, THREAD, FencingToken(TENANT, run, claim, epoch=epoch))
