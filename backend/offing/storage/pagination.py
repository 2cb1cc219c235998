"""Page keys: where the next page of a list begins, and their text in a cursor."""

import base64
import binascii
from datetime import datetime
from uuid import UUID

from offing.core.errors import InvalidInput

PageKey = tuple[datetime, UUID]
"""Time and id of the last record of a page."""

NumberKey = tuple[int, UUID]
"""Number and id of the last record of a page of a list that is ordered by a whole number."""


def render_page_cursor(page_key: PageKey) -> str:
    """Return a page key as an opaque text."""
    return encode_cursor(f"{page_key[0].isoformat()} {page_key[1].hex}".encode())


def parse_page_cursor(cursor: str | None) -> PageKey | None:
    """Parse a cursor of `render_page_cursor`. Raises InvalidInput for any other text."""
    if cursor is None:
        return None
    at, _, id = decode_cursor(cursor).partition(b" ")
    try:
        return parse_time(at.decode()), UUID(id.decode())
    except ValueError:
        raise unknown_cursor() from None


def render_number_cursor(page_key: NumberKey) -> str:
    """Return the page key of a list that is ordered by a whole number as an opaque text."""
    return encode_cursor(f"{page_key[0]} {page_key[1].hex}".encode())


def parse_number_cursor(cursor: str | None) -> NumberKey | None:
    """Parse a cursor of `render_number_cursor`. Raises InvalidInput for any other text."""
    if cursor is None:
        return None
    number, _, id = decode_cursor(cursor).partition(b" ")
    try:
        page_key = int(number), UUID(id.decode())
    except ValueError:
        raise unknown_cursor() from None
    if not 0 <= page_key[0] < 1 << 63:
        raise unknown_cursor()
    return page_key


def encode_cursor(content: bytes) -> str:
    """Return the content of a cursor as an opaque text for a URL."""
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def decode_cursor(cursor: str) -> bytes:
    """Return the content of a text of `encode_cursor`. Raises InvalidInput for a text that is none."""
    try:
        return base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    except (ValueError, binascii.Error):
        raise unknown_cursor() from None


def parse_time(text: str) -> datetime:
    """Parse the time in a cursor. Raises ValueError for another text, and for a time that no record can have."""
    at = datetime.fromisoformat(text)
    if at.tzinfo is None or not 1970 <= at.year <= 9000:
        raise ValueError(text)
    return at


def unknown_cursor() -> InvalidInput:
    """Return the error for a text that no page of the list has returned."""
    return InvalidInput("cursor", "is not a cursor of this list", "Send `next` of the previous page unchanged.")
