"""Streams of threads in a Valkey server that goes away and comes back."""

from uuid import UUID

from offing.bus.live import LiveBus
from offing.bus.run_streams import RunStreams, StreamReader, StreamSender
from offing.bus.stream_fences import Appended, BatchCounter
from offing.bus.stream_messages import FIRST_ID, KeptEvent, StreamEvent, StreamMessage
from offing.clock import new_id
from offing.core.run import FencingToken
from tests.api.test_live_bus import Valkey, patient, valkey

__all__ = ["patient", "valkey"]

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


async def test_a_reader_takes_events_from_messages_that_follow_each_other(valkey: Valkey) -> None:
    async with RunStreams(valkey.url) as streams, LiveBus(valkey.url) as bus:
        batches, reader = BatchCounter(1), _open_reader(streams)
        async with bus.subscribe_stream(TENANT, THREAD) as notices:
            data = '{"text":"\\n✓"}'.encode()
            for number in range(3):
                events = [StreamEvent("values", data, number), StreamEvent("custom|a", b"[]", number)]
                await streams.append(TENANT, THREAD, RUN, events, batches.next())
            read = list[KeptEvent]()
            while len(read) < 6:
                notice = await notices.next(5)
                if isinstance(notice, StreamMessage):
                    assert notice.follows(reader.last_id)
                    await streams.delete_events(
                        TENANT, THREAD, [one.id for one in notice.events]
                    )  # so that no read helps
                    read += await reader.read(notice)
                    assert await reader.read(notice) == []  # the same message again
    assert [one.event for one in read[:2]] == [StreamEvent("values", data, 0), StreamEvent("custom|a", b"[]", 0)]
    assert {(one.run_id, one.claim) for one in read} == {(RUN, 1)}


async def test_a_reader_that_missed_a_message_reads_the_stream(valkey: Valkey) -> None:
    async with RunStreams(valkey.url) as streams:
        batches, run = BatchCounter(1), new_id()
        for number in (b"1", b"2", b"3"):
            await streams.append(TENANT, THREAD, run, [StreamEvent("values", number)], batches.next())
        entries = await streams.read_after(TENANT, THREAD, FIRST_ID)
        later = StreamMessage(entries[1].id, [entries[2]])
        assert [one.event.data for one in await _open_reader(streams).read(later)] == [b"1", b"2", b"3"]
        assert [one.event.data for one in await _open_reader(streams, entries[0].id).read(later)] == [b"2", b"3"]
        assert [one.event.data for one in await _open_reader(streams, entries[1].id).read(later)] == [b"3"]
        unknown = StreamMessage("", [entries[2]])
        assert [one.event.data for one in await _open_reader(streams).read(unknown)] == [b"1", b"2", b"3"]


async def test_events_that_are_too_large_for_a_message_are_read(valkey: Valkey) -> None:
    large = [StreamEvent("values", b"1"), StreamEvent("values", b'"%s"' % (b"a" * 9000))]
    async with (
        RunStreams(valkey.url) as streams,
        LiveBus(valkey.url) as bus,
        bus.subscribe_stream(TENANT, THREAD) as notices,
    ):
        await streams.append(TENANT, THREAD, RUN, large, BatchCounter(1).next())
        while not isinstance(notice := await notices.next(5), StreamMessage):
            pass
        assert notice.events == []
        assert [one.event for one in await _open_reader(streams).read(notice)] == large


def _open_reader(streams: RunStreams, last_id: str = FIRST_ID) -> StreamReader:
    return StreamReader(streams, TENANT, THREAD, last_id)
