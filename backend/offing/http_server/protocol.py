# pyright: reportUnknownMemberType=false
"""uvicorn's h11 protocol with strict requests, time limits for what a client owes, and a limited number of clients."""

import asyncio
import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Literal

import h11
import orjson
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from offing.http_server.clients import Clients
from offing.http_server.requests import StrictConnection

Owed = Literal["head", "body"]
"""What a client has begun to send and not finished."""

ANSWERED_SECONDS = 5.0
"""How long a body may go on arriving whose request is answered. To close at once would lose the answer on its way."""


def protocol_for(clients: Clients) -> Callable[..., asyncio.Protocol]:
    """Return what uvicorn's `http` setting takes; all its connections are counted in `clients`."""

    logging.getLogger("uvicorn.error").addFilter(_is_news)

    def make(*args: Any, **more: Any) -> asyncio.Protocol:
        return GuardedProtocol(clients, *args, **more)

    return make


class GuardedProtocol(H11Protocol):
    """One connection."""

    conn: StrictConnection

    def __init__(self, clients: Clients, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.conn = StrictConnection()
        self.address = ""
        self._clients, self._limits = clients, clients.limits
        self._admitted = False
        self._owed: Owed | None = None
        self._answered = False
        """The request was answered before it had arrived whole."""
        self._since, self._arrived = 0.0, 0
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self._admitted = self._clients.admit(self)
        if not self._admitted:
            self._answer(503, "too_many_connections", "This server has as many connections as it takes.")
            return
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._clients.leave(self)
        for timer in (self._reading, self._writing):
            if timer is not None:
                timer.cancel()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._arrived += len(data)
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            return
        if self.conn.their_state is h11.SEND_BODY and self._reading is not None:
            self._answered = True
            self._reading.cancel()
            self._reading = self.loop.call_later(ANSWERED_SECONDS, self.transport.close)
        self._watch()

    # What the client owes ---------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Start, go on with or end the time that the client has."""
        owed = self._owes()
        if self.transport.is_closing() or owed == self._owed:
            return
        if self._reading is not None:
            self._reading.cancel()
        self._owed = owed
        if owed is None:
            self._clients.completed(self)
        elif not self._clients.began(self):
            self._answer(503, "too_many_connections", "Too many unfinished requests come from this address.")
        else:
            self._since, self._arrived = self.loop.time(), 0
            self._reading = self.loop.call_later(self._allowed(), self._overdue)

    def _owes(self) -> Owed | None:
        if self.conn.their_state is h11.SEND_BODY:
            return "body"
        begun = bool(self.conn.trailing_data[0]) or self._cycle() is None
        # Between two requests uvicorn's own time for idle connections runs.
        return "head" if self.conn.their_state is h11.IDLE and begun else None

    def _allowed(self) -> float:
        if self._owed == "head":
            return self._limits.head_seconds
        return self._limits.body_seconds + self._arrived / self._limits.body_rate

    def _overdue(self) -> None:
        if self.flow.read_paused:  # we are the ones who are slow
            self._since, self._arrived = self.loop.time(), 0
        left = self._since + self._allowed() - self.loop.time()
        if left > 0:
            self._reading = self.loop.call_later(left, self._overdue)
            return
        self._clients.report(f"closed: the {self._owed} of its request did not arrive in time", self.address)
        self._answer(408, "request_timeout", f"The {self._owed} of the request did not arrive in time.")

    def close_idle(self) -> bool:
        if self._owed != "head" and not self._answered:
            return False
        self._answer(408, "request_timeout", "Too many unfinished requests come from this address.")
        return True

    # What the client does not take ------------------------------------------------------------------------------------

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_taken(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def _expect_taken(self, waiting: int) -> None:
        self._writing = self.loop.call_later(self._limits.write_seconds, self._not_taken, waiting)

    def _not_taken(self, waiting: int) -> None:
        left = self.transport.get_write_buffer_size()
        if left < waiting:
            self._expect_taken(left)
            return
        self._clients.report("closed: it takes nothing of its answer", self.address)
        self.transport.abort()

    # Ends -------------------------------------------------------------------------------------------------------------

    def send_400_response(self, msg: str) -> None:
        fault = self.conn.fault
        self._clients.report(f"closed: {fault or msg}", self.address)
        self._answer(400, "bad_request", fault or "The request cannot be read.")

    def _answer(self, status: int, code: str, detail: str) -> None:
        """Close the connection, with a problem where a request is waiting for its answer."""
        self._clients.completed(self)
        asked = self.conn.their_state is not h11.IDLE or bool(self.conn.trailing_data[0]) or status == 503
        waiting = self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE)
        cut = self.conn.our_state is h11.SEND_BODY
        if (cycle := self._cycle()) is not None:
            cycle.disconnected = True
            cycle.message_event.set()
        if asked and waiting:
            self.transport.write(_problem(status, code, detail))
        self.transport.abort() if cut else self.transport.close()

    def _cycle(self) -> RequestResponseCycle | None:
        """Return the last request and its answer. `None` means that there was none."""
        return self.cycle


def _problem(status: int, code: str, detail: str) -> bytes:
    phrase = HTTPStatus(status).phrase
    named = {"type": f"urn:offing:problem:{code}", "title": phrase, "status": status, "detail": detail}
    body = orjson.dumps(named | {"field": None, "remedy": None})
    head = [
        f"HTTP/1.1 {status} {phrase}".encode(),
        b"content-type: application/problem+json",
        b"content-length: %d" % len(body),
        b"connection: close",
        *([b"retry-after: 5"] if status == 503 else []),
    ]
    return b"\r\n".join(head) + b"\r\n\r\n" + body


def _is_news(record: logging.LogRecord) -> bool:
    """Return whether a log line of uvicorn's says what is not counted and logged here."""
    return record.msg not in ("Invalid HTTP request received.", "Unsupported upgrade request.")
