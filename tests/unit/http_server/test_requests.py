"""Which requests are read at all."""

import h11
import pytest

from offing.http_server.requests import MAX_HEAD_BYTES, StrictConnection, find_fault

HEAD = b"POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\n"

AMBIGUOUS = {
    "a length and chunks": b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    "chunks and a length": b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
    "two equal lengths": b"Content-Length: 5\r\nContent-Length: 5\r\n",
    "two lengths": b"Content-Length: 5\r\nContent-Length: 6\r\n",
    "two lengths in one": b"Content-Length: 5, 5\r\n",
    "a length with a sign": b"Content-Length: +5\r\n",
    "a negative length": b"Content-Length: -5\r\n",
    "a length in hexadecimal": b"Content-Length: 0x5\r\n",
    "a length with an underscore": b"Content-Length: 1_0\r\n",
    "an endless length": b"Content-Length: " + b"9" * 40 + b"\r\n",
    "an empty length": b"Content-Length:\r\n",
    "another coding": b"Transfer-Encoding: gzip\r\n",
    "two codings": b"Transfer-Encoding: gzip, chunked\r\n",
    "chunks twice": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    "chunks in quotes": b'Transfer-Encoding: "chunked"\r\n',
    "chunks with a tab inside": b"Transfer-Encoding: chun\tked\r\n",
    "identity": b"Transfer-Encoding: identity\r\n",
    "a space before the colon": b"Content-Length : 5\r\n",
    "a tab before the colon": b"Transfer-Encoding\t: chunked\r\n",
    "a folded line": b"X-One: a\r\n b\r\nContent-Length: 5\r\n",
    "a folded length": b"Content-Length:\r\n 5\r\n",
    "a line that begins with a space": b" Content-Length: 5\r\n",
    "a bare LF": b"X-One: a\nContent-Length: 5\r\n",
    "a bare CR": b"X-One: a\rContent-Length: 5\r\n",
    "a NUL": b"X-One: a\0b\r\n",
    "a vertical tab": b"X-One: a\x0bb\r\n",
    "a name with a NUL": b"Content\0-Length: 5\r\n",
    "a name in brackets": b"(Content-Length): 5\r\n",
    "no colon": b"Content-Length 5\r\n",
    "no name": b": 5\r\n",
}

REQUEST_LINES = [
    b"GET  / HTTP/1.1",
    b"GET / HTTP/1.1 ",
    b" GET / HTTP/1.1",
    b"GET /a b HTTP/1.1",
    b"GET / HTTP/1.2",
    b"GET / HTTP/2.0",
    b"GET / http/1.1",
    b"GET /",
    b"GET\t/\tHTTP/1.1",
    b"GET /\0 HTTP/1.1",
    b"GET /\xff HTTP/1.1",
    b"",
]


def drain(connection: StrictConnection) -> None:
    """Reads all that has arrived."""
    while connection.next_event() not in (h11.NEED_DATA, h11.PAUSED):
        pass


def send_chunks(connection: StrictConnection, chunk: bytes, count: int) -> None:
    for _ in range(count):
        connection.receive_data(chunk)
        drain(connection)


@pytest.mark.parametrize("headers", AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
def test_a_request_that_two_servers_may_understand_in_two_ways_is_rejected(headers: bytes) -> None:
    connection = StrictConnection()
    connection.receive_data(HEAD + headers + b"\r\nabcde")
    with pytest.raises(h11.RemoteProtocolError):
        drain(connection)


@pytest.mark.parametrize("line", REQUEST_LINES)
def test_a_request_line_is_read_strictly(line: bytes) -> None:
    assert find_fault(line + b"\r\nHost: localhost\r\n\r\n")


def test_chunks_need_the_version_that_has_them() -> None:
    headers = b"\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert find_fault(b"POST / HTTP/1.0" + headers)
    assert find_fault(b"POST / HTTP/1.1" + headers) is None


def test_ordinary_requests_pass_however_they_are_cut() -> None:
    request = HEAD + b"Content-Length: 5\r\nX-Any: caf\xe9 \x80\r\nX-Empty:\r\nAccept:*/*\r\n\r\nabcde"
    for cut in range(len(request)):
        assert find_fault(request[:cut]) is None, cut
        connection = StrictConnection()
        events: list[object] = []
        for part in (request[:cut], request[cut:]):
            if part:
                connection.receive_data(part)
            while (event := connection.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
                events.append(event)
        content = b"".join(bytes(event.data) for event in events if isinstance(event, h11.Data))
        assert (type(events[0]), type(events[-1]), content) == (h11.Request, h11.EndOfMessage, b"abcde")


def test_a_second_request_on_the_connection_is_read_as_strictly() -> None:
    connection = StrictConnection()
    connection.receive_data(HEAD + b"\r\n" + HEAD + AMBIGUOUS["a length and chunks"] + b"\r\nabcde")
    assert isinstance(connection.next_event(), h11.Request)
    assert isinstance(connection.next_event(), h11.EndOfMessage)
    assert connection.next_event() is h11.PAUSED
    connection.send(h11.Response(status_code=204, headers=[]))
    connection.send(h11.EndOfMessage())
    connection.start_next_cycle()
    with pytest.raises(h11.RemoteProtocolError, match="both present"):
        connection.next_event()


def test_a_head_without_an_end_is_rejected() -> None:
    assert find_fault(HEAD + b"X: " + b"a" * MAX_HEAD_BYTES)


def test_chunks_that_carry_more_than_they_contain_are_rejected() -> None:
    connection = StrictConnection()
    connection.receive_data(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    assert isinstance(connection.next_event(), h11.Request)
    with pytest.raises(h11.RemoteProtocolError, match="more framing than content"):
        send_chunks(connection, b"1;" + b"x" * 10_000 + b"\r\na\r\n", 100)


def test_small_chunks_pass() -> None:
    connection = StrictConnection()
    connection.receive_data(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    assert isinstance(connection.next_event(), h11.Request)
    send_chunks(connection, b"1\r\na\r\n", 100_000)
