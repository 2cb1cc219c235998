"""Page keys: where the next page of a list that is ordered by time begins, and their text in a cursor."""

import base64
import binascii
from datetime import datetime
from uuid import UUID

from offing.core.errors import InvalidInput

PageKey = tuple[datetime, UUID]
"""Time and id of the last record of a page."""


def render_page_cursor(page_key: PageKey) -> str:
    """Return a page key as an opaque text."""
    return base64.urlsafe_b64encode(f"{page_key[0].isoformat()} {page_key[1].hex}".encode()).decode().rstrip("=")


def parse_page_cursor(cursor: str | None) -> PageKey | None:
    """Parse a cursor of `render_page_cursor`. Raises InvalidInput for any other text."""
    if cursor is None:
        return None
    try:
        at, _, id = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode().partition(" ")
        page_key = datetime.fromisoformat(at), UUID(id)
    except (ValueError, binascii.Error):
        page_key = None
    if page_key is None or page_key[0].tzinfo is None or not 1970 <= page_key[0].year <= 9000:
        raise InvalidInput("cursor", "is not a cursor of this list", "Send `next` of the previous page unchanged.")
    return page_key


def render_number_cursor(page_key: tuple[int, UUID]) -> str:
    """Return the page key of a list that is ordered by a whole number as an opaque text."""
    return base64.urlsafe_b64encode(f"{page_key[0]} {page_key[1].hex}".encode()).decode().rstrip("=")


def parse_number_cursor(cursor: str | None) -> tuple[int, UUID] | None:
    """Parse a cursor of `render_number_cursor`. Raises InvalidInput for any other text."""
    if cursor is None:
        return None
    try:
        number, _, id = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode().partition(" ")
        page_key = int(number), UUID(id)
    except (ValueError, binascii.Error):
        page_key = None
    if page_key is None or not 0 <= page_key[0] < 1 << 63:
        raise InvalidInput("cursor", "is not a cursor of this list", "Send `next` of the previous page unchanged.")
    return page_key
