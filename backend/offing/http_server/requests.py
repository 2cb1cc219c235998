"""Strict request parsing. It rejects what h11 would repair and two servers may read differently.

If a proxy and the server behind it disagree about where a request ends, a client can smuggle a
second request past the proxy (request smuggling). So an ambiguous request is never repaired: it is
rejected and the connection is closed.
"""

import re

import h11

MAX_HEAD_BYTES = 64 * 1024
"""Maximum size of a request line with its headers."""

MAX_FRAMING_BYTES = 2 * MAX_HEAD_BYTES
"""Maximum bytes of a head, chunk sizes and extensions beyond `MIN_CONTENT_RATIO` times the content."""

MIN_CONTENT_RATIO = 8

_REQUEST_LINE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+ [\x21-\x7e]+ HTTP/1\.[01]")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t\x20-\x7e\x80-\xff]*)")
_LENGTH = re.compile(rb"[0-9]{1,18}")


def find_fault(buffered: bytes) -> str | None:
    """Return what is wrong with the head of a request that has partly arrived.

    `None` means no error so far.
    """
    head, ending, _ = buffered.partition(b"\r\n\r\n")
    if len(head) > MAX_HEAD_BYTES:
        return f"The request line and headers have more than {MAX_HEAD_BYTES} bytes."
    lines = head.split(b"\r\n")
    whole = lines if ending else lines[:-1]
    if any(b"\n" in line or b"\r" in line or b"\0" in line for line in whole):
        return "A line ends without CR LF, or contains CR, LF or NUL."
    if not ending and (b"\n" in lines[-1] or b"\r" in lines[-1][:-1] or b"\0" in lines[-1]):
        return "A line ends without CR LF, or contains CR, LF or NUL."
    return _find_line_fault(whole) if ending else None


def _find_line_fault(lines: list[bytes]) -> str | None:
    if not _REQUEST_LINE.fullmatch(lines[0]):
        return "The request line is not `METHOD target HTTP/1.1`."
    matches = [_HEADER.fullmatch(line) for line in lines[1:]]
    if any(header is None for header in matches):
        return "A header is not `Name: value` on one line."
    headers = [(header[1].lower(), header[2].strip(b" \t")) for header in matches if header is not None]
    lengths = [value for name, value in headers if name == b"content-length"]
    codings = [value for name, value in headers if name == b"transfer-encoding"]
    if len(lengths) > 1 or any(not _LENGTH.fullmatch(length) for length in lengths):
        return "Content-Length is not a single integer."
    if codings and lengths:
        return "Content-Length and Transfer-Encoding are both present."
    if codings and ([coding.lower() for coding in codings] != [b"chunked"] or lines[0].endswith(b"HTTP/1.0")):
        return "Transfer-Encoding is not `chunked` alone, in HTTP/1.1."
    return None


class StrictConnection(h11.Connection):
    """Server side of one connection. Raises RemoteProtocolError where h11 would repair a request."""

    fault = ""
    """What was wrong with the request, as a sentence. Empty if h11 rejected it or nothing was wrong."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER, MAX_HEAD_BYTES)
        self._received, self._content = 0, 0  # bytes of the current request, and bytes of its content

    def receive_data(self, data: bytes) -> None:
        self._received += len(data)
        super().receive_data(data)

    def next_event(self) -> "h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]":
        if self.their_state is h11.IDLE:
            buffered = self.trailing_data[0]
            self._reject(find_fault(buffered))
            self._received, self._content = len(buffered), 0
        event = super().next_event()
        if isinstance(event, h11.Data):
            self._content += len(event.data)
        if (
            self.their_state is h11.SEND_BODY
            and self._count_framing_bytes() > MAX_FRAMING_BYTES + MIN_CONTENT_RATIO * self._content
        ):
            self._reject("The chunks of the body have more framing than content.")
        return event

    def _count_framing_bytes(self) -> int:
        """Count the bytes of the current request that are not content: its head, chunk sizes and extensions."""
        return self._received - len(self.trailing_data[0]) - self._content

    def _reject(self, fault: str | None) -> None:
        if fault is not None:
            self.fault = fault
            raise h11.RemoteProtocolError(fault, error_status_hint=400)
