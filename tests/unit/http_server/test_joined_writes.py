"""Writes of one turn of the event loop leave together."""

import asyncio

from offing.http_server.joined_writes import MAX_JOINED_BYTES, JoiningTransport


class Recorder(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent.append(bytes(data))

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return 0


def opened() -> tuple[Recorder, JoiningTransport]:
    recorder = Recorder()
    return recorder, JoiningTransport(recorder, asyncio.get_running_loop())


async def test_writes_of_one_turn_are_one_write() -> None:
    recorder, joining = opened()
    for part in (b"head", b"", b"body", b"end"):
        joining.write(part)
    assert recorder.sent == []
    assert joining.get_write_buffer_size() == 11
    await asyncio.sleep(0)
    assert recorder.sent == [b"headbodyend"]
    joining.write(b"next")
    await asyncio.sleep(0)
    assert recorder.sent == [b"headbodyend", b"next"]


async def test_what_was_written_is_sent_before_the_connection_closes() -> None:
    recorder, joining = opened()
    joining.write(b"all")
    joining.close()
    assert (recorder.sent, recorder.closed) == ([b"all"], True)
    await asyncio.sleep(0)
    assert recorder.sent == [b"all"]


async def test_an_aborted_connection_sends_nothing_more() -> None:
    recorder, joining = opened()
    joining.write(b"all")
    joining.abort()
    await asyncio.sleep(0)
    assert recorder.sent == []


async def test_much_at_once_is_sent_at_once_so_that_the_flow_control_sees_it() -> None:
    recorder, joining = opened()
    joining.write(b"x" * (MAX_JOINED_BYTES + 1))
    assert len(recorder.sent) == 1
