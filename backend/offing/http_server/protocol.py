# pyright: reportUnknownMemberType=false
"""uvicorn's h11 protocol with strict requests, client time limits and a limited number of connections."""

import asyncio
import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Literal

import h11
import orjson
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from offing.http_server.clients import ClientRegistry
from offing.http_server.joined_writes import JoiningTransport
from offing.http_server.requests import StrictConnection

PendingPart = Literal["head", "body"]
"""The part of a request that a client has begun to send and not completed."""

CLOSE_TIMEOUT_SECONDS = 5.0
"""Maximum time in which the remainder of a body may arrive after its request was answered. Closing at once
could lose the response.
"""


def build_protocol(clients: ClientRegistry) -> Callable[..., asyncio.Protocol]:
    """Return a value for uvicorn's `http` setting. Its connections are counted in `clients`."""

    logging.getLogger("uvicorn.error").addFilter(_is_unreported)

    def make(*args: Any, **more: Any) -> asyncio.Protocol:
        return GuardedProtocol(clients, *args, **more)

    return make


class GuardedProtocol(H11Protocol):
    """Connection with time limits."""

    conn: StrictConnection

    def __init__(self, clients: ClientRegistry, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.conn = StrictConnection()
        self.address = ""
        self._clients, self._limits = clients, clients.limits
        self._admitted = False
        self._owed: PendingPart | None = None
        self._answered = False
        """Whether the request was answered before it had arrived completely."""
        self._upgraded = False
        """Whether the connection is one of uvicorn's WebSocket protocol now."""
        self._since, self._arrived = 0.0, 0
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(JoiningTransport(transport, self.loop))
        self.address = self.client[0] if self.client else ""
        self._admitted = self._clients.admit(self)
        if not self._admitted:
            self._respond_and_close(
                503, "too_many_connections", "This server has reached its maximum number of connections."
            )
            return
        self._update_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._clients.remove(self)
        for timer in (self._reading, self._writing):
            if timer is not None:
                timer.cancel()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Hand the connection over to uvicorn's WebSocket protocol. It still counts until it ends."""
        super().handle_websocket_upgrade(event)
        upgraded: Any = self.transport.get_protocol()
        lose = upgraded.connection_lost

        def connection_lost(exc: Exception | None) -> None:
            lose(exc)
            self._clients.remove(self)

        upgraded.connection_lost = connection_lost
        self._upgraded = True
        self._clients.request_ended(self)
        if self._reading is not None:
            self._reading.cancel()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._arrived += len(data)
        super().data_received(data)
        self._update_timer()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            return
        if self.conn.their_state is h11.SEND_BODY and self._reading is not None:
            self._answered = True
            self._reading.cancel()
            self._reading = self.loop.call_later(CLOSE_TIMEOUT_SECONDS, self.transport.close)
        self._update_timer()

    # Time limits for sending
    # ----------------------------------------------------------------------------------

    def _update_timer(self) -> None:
        """Start, continue or stop the timer for the client."""
        owed = self._pending_part()
        if self._upgraded or self.transport.is_closing() or owed == self._owed:
            return
        if self._reading is not None:
            self._reading.cancel()
        self._owed = owed
        if owed is None:
            self._clients.request_ended(self)
        elif not self._clients.request_started(self):
            self._respond_and_close(503, "too_many_connections", "This address has too many unfinished requests.")
        else:
            self._since, self._arrived = self.loop.time(), 0
            self._reading = self.loop.call_later(self._allowed_seconds(), self._handle_timeout)

    def _pending_part(self) -> PendingPart | None:
        if self.conn.their_state is h11.SEND_BODY:
            return "body"
        has_begun = bool(self.conn.trailing_data[0]) or self._current_cycle() is None
        # Between two requests uvicorn's own keep-alive timeout applies.
        return "head" if self.conn.their_state is h11.IDLE and has_begun else None

    def _allowed_seconds(self) -> float:
        if self._owed == "head":
            return self._limits.head_timeout_seconds
        return self._limits.body_timeout_seconds + self._arrived / self._limits.min_body_bytes_per_second

    def _handle_timeout(self) -> None:
        if self.flow.read_paused:  # the server is the slow side
            self._since, self._arrived = self.loop.time(), 0
        remaining_seconds = self._since + self._allowed_seconds() - self.loop.time()
        if remaining_seconds > 0:
            self._reading = self.loop.call_later(remaining_seconds, self._handle_timeout)
            return
        self._clients.log_action(f"closed: the {self._owed} of its request did not arrive in time", self.address)
        self._respond_and_close(408, "request_timeout", f"The {self._owed} of the request did not arrive in time.")

    def close_idle(self) -> bool:
        if self._owed != "head" and not self._answered:
            return False
        self._respond_and_close(408, "request_timeout", "This address has too many unfinished requests.")
        return True

    # Time limits for reading
    # ----------------------------------------------------------------------------------

    def pause_writing(self) -> None:
        super().pause_writing()
        self._start_write_timer(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def _start_write_timer(self, waiting: int) -> None:
        self._writing = self.loop.call_later(self._limits.write_timeout_seconds, self._handle_write_timeout, waiting)

    def _handle_write_timeout(self, waiting: int) -> None:
        unsent_bytes = self.transport.get_write_buffer_size()
        if unsent_bytes < waiting:
            self._start_write_timer(unsent_bytes)
            return
        self._clients.log_action("closed: the client does not read its response", self.address)
        self.transport.abort()

    # Closing
    # --------------------------------------------------------------------------------------------------

    def send_400_response(self, msg: str) -> None:
        fault = self.conn.fault
        self._clients.log_action(f"closed: {fault or msg}", self.address)
        self._respond_and_close(400, "bad_request", fault or "The request cannot be read.")

    def _respond_and_close(self, status: int, code: str, detail: str) -> None:
        """Close the connection. A request that waits for its response gets a problem document."""
        self._clients.request_ended(self)
        has_request = self.conn.their_state is not h11.IDLE or bool(self.conn.trailing_data[0]) or status == 503
        waiting = self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE)
        cut = self.conn.our_state is h11.SEND_BODY
        if (cycle := self._current_cycle()) is not None:
            cycle.disconnected = True
            cycle.message_event.set()
        if has_request and waiting:
            self.transport.write(_render_problem(status, code, detail))
        self.transport.abort() if cut else self.transport.close()

    def _current_cycle(self) -> RequestResponseCycle | None:
        """Return the last request with its response. `None` means that there was none."""
        return self.cycle


def _render_problem(status: int, code: str, detail: str) -> bytes:
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


def _is_unreported(record: logging.LogRecord) -> bool:
    """Return whether a log line of uvicorn's reports something that is not counted and logged here."""
    return record.msg not in ("Invalid HTTP request received.", "Unsupported upgrade request.")
