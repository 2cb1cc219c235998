"""Which requests are read at all. Stricter than h11, which repairs what two servers may understand in two ways.

A proxy and the server behind it that disagree about where a request ends let a client smuggle a second one past the
proxy. So nothing that is ambiguous is repaired: it is refused and the connection is closed.
"""

import re

import h11

MAX_HEAD = 64 * 1024
"""Bytes of a request line with its headers."""

MAX_FRAMING = 2 * MAX_HEAD
"""Bytes of a head, chunk sizes and extensions that a request may have beyond `FRAMING_RATIO` times its content."""

FRAMING_RATIO = 8

_REQUEST_LINE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+ [\x21-\x7e]+ HTTP/1\.[01]")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t\x20-\x7e\x80-\xff]*)")
_LENGTH = re.compile(rb"[0-9]{1,18}")


def find_fault(buffered: bytes) -> str | None:
    """Return what is wrong with the head of a request, as far as it has arrived. `None` means nothing so far."""
    head, ending, _ = buffered.partition(b"\r\n\r\n")
    if len(head) > MAX_HEAD:
        return f"The request line and headers have more than {MAX_HEAD} bytes."
    lines = head.split(b"\r\n")
    whole = lines if ending else lines[:-1]
    if any(b"\n" in line or b"\r" in line or b"\0" in line for line in whole):
        return "A line ends without CR LF, or contains CR, LF or NUL."
    if not ending and (b"\n" in lines[-1] or b"\r" in lines[-1][:-1] or b"\0" in lines[-1]):
        return "A line ends without CR LF, or contains CR, LF or NUL."
    return _fault_of(whole) if ending else None


def _fault_of(lines: list[bytes]) -> str | None:
    if not _REQUEST_LINE.fullmatch(lines[0]):
        return "The request line is not `METHOD target HTTP/1.1`."
    found = [_HEADER.fullmatch(line) for line in lines[1:]]
    if any(header is None for header in found):
        return "A header is not `Name: value` on one line."
    headers = [(header[1].lower(), header[2].strip(b" \t")) for header in found if header is not None]
    lengths = [value for name, value in headers if name == b"content-length"]
    codings = [value for name, value in headers if name == b"transfer-encoding"]
    if len(lengths) > 1 or any(not _LENGTH.fullmatch(length) for length in lengths):
        return "Content-Length is not one whole number."
    if codings and lengths:
        return "Content-Length and Transfer-Encoding are both present."
    if codings and ([coding.lower() for coding in codings] != [b"chunked"] or lines[0].endswith(b"HTTP/1.0")):
        return "Transfer-Encoding is not `chunked` alone, in HTTP/1.1."
    return None


class StrictConnection(h11.Connection):
    """The server's end of one connection. Raises RemoteProtocolError where h11 would repair a request."""

    fault = ""
    """What was wrong with the request, in a sentence. Empty when h11 refused it, or nothing was wrong."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER, MAX_HEAD)
        self._received, self._content = 0, 0  # bytes of the current request, and those of its body's content

    def receive_data(self, data: bytes) -> None:
        self._received += len(data)
        super().receive_data(data)

    def next_event(self) -> "h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]":
        if self.their_state is h11.IDLE:
            buffered = self.trailing_data[0]
            self._refuse(find_fault(buffered))
            self._received, self._content = len(buffered), 0
        event = super().next_event()
        if isinstance(event, h11.Data):
            self._content += len(event.data)
        if self.their_state is h11.SEND_BODY and self._framing() > MAX_FRAMING + FRAMING_RATIO * self._content:
            self._refuse("The chunks of the body carry more than they contain.")
        return event

    def _framing(self) -> int:
        """Return how many bytes of the current request were not content: its head, chunk sizes and extensions."""
        return self._received - len(self.trailing_data[0]) - self._content

    def _refuse(self, fault: str | None) -> None:
        if fault is not None:
            self.fault = fault
            raise h11.RemoteProtocolError(fault, error_status_hint=400)
