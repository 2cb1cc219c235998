"""Streams of threads in a Valkey server that goes away and comes back."""

from offing.bus.run_streams import FIRST_ID, RunStreams, StreamEvent, StreamSender
from offing.clock import new_id
from tests.api.test_live_bus import Valkey, valkey

__all__ = ["valkey"]

TENANT, THREAD, RUN = new_id(), new_id(), new_id()


async def test_events_of_an_outage_are_sent_afterwards_in_order(valkey: Valkey) -> None:
    async with RunStreams(valkey.url) as streams:
        sender = StreamSender(streams, TENANT, THREAD, RUN)
        sender.send(StreamEvent("values", b"1"))
        await sender.flush()
        valkey.kill()
        for number in (b"2", b"3"):
            sender.send(StreamEvent("values", number))
        assert not await streams.append(TENANT, THREAD, RUN, [StreamEvent("values", b"lost")])
        valkey.start()
        sender.send(StreamEvent("values", b"4"))
        await sender.flush()
        entries = await streams.read_after(TENANT, THREAD, FIRST_ID)
    assert [entry.event.data for entry in entries] == [b"2", b"3", b"4"]  # the server forgot what it had
