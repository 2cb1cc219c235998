"""Connections that a client leaves half done, and requests that are sent to be misunderstood, over raw sockets."""

import asyncio
import json
import logging
import socket
import time
from collections.abc import AsyncIterator, Generator
from contextlib import ExitStack, contextmanager

import pytest
from fastapi import Response

from offing.api import process
from offing.http_server import ClientLimits
from tests.api.conftest import PATIENCE, Api
from tests.api.sse import following

GET = b"GET /api/v1/health/live HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

SMUGGLED = {
    "a length and chunks": POST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + GET + b"\r\n",
    "two lengths": POST + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    "a folded line": POST + b"X-One: a\r\n b\r\nContent-Length: 2\r\n\r\n{}",
    "a bare LF": b"GET /api/v1/health/live HTTP/1.1\nHost: localhost\n\n",
    "a bare CR": GET + b"X-One: a\rX-Two: b\r\n\r\n",
    "a NUL": GET + b"X-One: a\0b\r\n\r\n",
    "a space before the colon": POST + b"Content-Length : 2\r\n\r\n{}",
    "another coding": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunks in HTTP/1.0": POST.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a second request": GET + b"\r\n" + POST + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
}


@pytest.fixture(autouse=True)
def short_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """ClientLimits that a test reaches in a second."""

    def limits(max_connections: int, max_half_open: int) -> ClientLimits:
        return ClientLimits(
            20,
            5,
            head_timeout_seconds=8.0,
            body_timeout_seconds=8.0,
            min_body_bytes_per_second=500,
            write_timeout_seconds=2.0,
        )

    monkeypatch.setattr(process, "ClientLimits", limits)


@contextmanager
def connected(api: Api) -> Generator[socket.socket]:
    host, port = api.base.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as client:
        yield client


def answer(client: socket.socket) -> bytes:
    """Everything until the server closes."""
    received = b""
    try:
        while part := client.recv(65536):
            received += part
    except ConnectionResetError:
        pass
    return received


async def send_raw(api: Api, request: bytes) -> bytes:
    """What a request is answered with, and that the connection is closed then."""

    def ask() -> bytes:
        with connected(api) as client:
            client.sendall(request)
            return answer(client)

    return await asyncio.to_thread(ask)


@pytest.mark.parametrize("request_bytes", SMUGGLED.values(), ids=SMUGGLED.keys())
async def test_an_ambiguous_request_gets_a_400_and_the_connection_is_closed(api: Api, request_bytes: bytes) -> None:
    received = await send_raw(api, request_bytes)
    *_, last = received.split(b"HTTP/1.1 ")
    head, _, body = last.partition(b"\r\n\r\n")
    assert head.startswith(b"400 Bad Request"), received
    assert b"connection: close" in head.lower()
    assert json.loads(body)["type"] == "urn:offing:problem:bad_request"
    assert received.count(b"200 OK") == request_bytes.startswith(GET + b"\r\nPOST")


async def test_requests_that_stay_half_sent_are_closed_and_do_not_keep_others_out(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(connected(api)) for _ in range(15)]
        for client in clients:
            client.sendall(GET)  # and no end
        assert (await api.nobody.get("/api/v1/health/live")).status_code == 200
        answers = await asyncio.to_thread(lambda: [answer(client) for client in clients])
    assert {received[:13] for received in answers} <= {b"HTTP/1.1 408 ", b""}  # nothing: none of it had been read yet
    assert sum(received.startswith(b"HTTP/1.1 408 ") for received in answers) >= 5
    lines = [record for record in caplog.records if record.name == "offing.http"]
    assert 1 <= len(lines) <= 3  # one for each kind, however many connections
    assert all(record.levelno == logging.WARNING and "127.0.0.1" in record.getMessage() for record in lines)


async def test_bytes_that_trickle_in_do_not_keep_a_head_open(api: Api) -> None:
    def trickle() -> float:
        with connected(api) as client:
            began = time.monotonic()
            client.sendall(GET)
            try:
                while time.monotonic() - began < PATIENCE:
                    client.sendall(b"X: y\r\n")
                    time.sleep(0.1)
            except OSError:
                pass
            return time.monotonic() - began

    assert await asyncio.to_thread(trickle) < PATIENCE


async def test_a_connection_on_which_nothing_comes_is_closed_without_a_word(api: Api) -> None:
    assert await send_raw(api, b"") == b""


async def test_a_body_that_stops_is_given_up(api: Api) -> None:
    key = f"Authorization: Bearer {api.keys['mine']}\r\n".encode()
    received = await send_raw(api, POST + key + b"Content-Length: 100\r\n\r\n{")
    assert received.startswith(b"HTTP/1.1 408 ")
    assert json.loads(received.partition(b"\r\n\r\n")[2])["type"] == "urn:offing:problem:request_timeout"


async def test_a_body_without_a_key_is_not_waited_for_and_keeps_nobody_out(api: Api) -> None:
    """More of them than an address may have in the middle of a request."""
    with ExitStack() as stack:
        clients = [stack.enter_context(connected(api)) for _ in range(15)]
        for client in clients:
            client.sendall(POST + b"Content-Length: 1000000\r\n\r\n{")
            client.settimeout(PATIENCE)
        heads = await asyncio.to_thread(lambda: [client.recv(12) for client in clients])
        assert heads == [b"HTTP/1.1 401"] * len(clients)
        await asyncio.sleep(1.1)  # the time for which a connection is young
        assert (await api.nobody.get("/api/v1/health/live")).status_code == 200
        ends = await asyncio.to_thread(lambda: [answer(client) for client in clients])
    assert all(b"Unauthorized" in end or b"unauthor" in end for end in ends), ends


async def test_an_upload_over_a_slow_line_arrives_however_long_it_takes(api: Api) -> None:
    """Three times as long as a body may stand still, at a rate that is enough."""

    async def slowly() -> AsyncIterator[bytes]:
        yield b'--x\r\nContent-Disposition: form-data; name="files"; filename="salt.txt"\r\n\r\n'
        for _ in range(15):
            await asyncio.sleep(0.2)
            yield b"Rivers carry salt into the sea. " * 128
        yield b"\r\n--x--\r\n"

    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    response = await api.http.post("/api/v1/library", content=slowly(), headers=headers)
    assert response.status_code in (200, 201), response.text


async def test_a_stream_and_a_waiting_call_outlast_every_limit(api: Api) -> None:
    run = await api.submit()
    async with following(api.http, f"/api/v1/runs/{run}/events") as stream:
        await stream.until(lambda s: s.seqs == [1])
        waited = await api.http.get(f"/api/v1/runs/{run}/wait", params={"timeout": 4})
        assert waited.status_code == 200
        assert not stream.closed


async def test_more_connections_than_there_may_be_are_told_so(api: Api) -> None:
    run = await api.submit()
    request = f"GET /api/v1/runs/{run}/events HTTP/1.1\r\nHost: localhost\r\n"
    request += f"Authorization: Bearer {api.keys['mine']}\r\n\r\n"
    with ExitStack() as stack:
        for _ in range(25):
            client = stack.enter_context(connected(api))
            client.sendall(request.encode())
        received = await send_raw(api, GET + b"\r\n")
        assert received.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 5" in received
    deadline = time.monotonic() + PATIENCE
    while not (await send_raw(api, GET + b"Connection: close\r\n\r\n")).startswith(b"HTTP/1.1 200"):
        assert time.monotonic() < deadline


async def test_a_client_that_takes_nothing_of_an_answer_is_dropped(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    async def large() -> Response:
        return Response(b"x" * 2**26)

    api.app.add_api_route("/large", large)
    with connected(api) as client:
        client.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        deadline = time.monotonic() + PATIENCE
        while "the client does not read its response" not in caplog.text:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)
