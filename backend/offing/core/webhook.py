"""The messages of webhooks: their body, their signature and the times of their attempts. The functions are pure.

The form is that of Standard Webhooks (https://www.standardwebhooks.com), for which there are libraries in most
languages. A message may arrive more than once. Its id stays the same, so a receiver can recognize it.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, get_args
from uuid import UUID

EventKind = Literal["run.waiting", "run.done", "run.failed", "run.cancelled"]
EVENT_KINDS: tuple[EventKind, ...] = get_args(EventKind)

TEST_KIND = "webhook.test"
"""Kind of a message that a person sends to try a webhook."""

SECRET_PREFIX = "whsec_"
SECRET_BYTES = 32

MAX_TITLE_CHARS = 200

RETRY_DELAYS = tuple(timedelta(seconds=one) for one in (10, 60, 300, 1_800, 7_200, 21_600, 43_200))
"""Time from a failed attempt to the next. After the last one, a delivery is given up, 21 hours after the first."""


@dataclass(frozen=True, slots=True)
class RunEvent:
    """What happened to a run, as the body of a message describes it."""

    id: UUID
    kind: str
    created_at: datetime
    run_id: UUID
    status: str
    stop_reason: str | None
    """`None` while the run has not ended."""
    title: str
    """Title that a person gave, or the beginning of the question."""


def build_body(event: RunEvent, web_ui: str) -> dict[str, Any]:
    """Return the body of a message. It has no text of a report. `web_ui` is the address of the web UI, or empty."""
    data = {
        "run_id": str(event.run_id),
        "status": event.status,
        "stop_reason": event.stop_reason,
        "title": event.title[:MAX_TITLE_CHARS],
        "link": f"{web_ui.rstrip('/')}/runs/{event.run_id}",
    }
    return {"type": event.kind, "id": str(event.id), "timestamp": event.created_at.isoformat(), "data": data}


def build_test_body(event_id: UUID, now: datetime) -> dict[str, Any]:
    """Return the body of a message that only tries the webhook."""
    return {"type": TEST_KIND, "id": str(event_id), "timestamp": now.isoformat(), "data": {}}


def build_headers(secret: str, event_id: UUID, sent_at: datetime, body: bytes) -> Mapping[str, str]:
    """Return the headers with which a receiver checks that a message is genuine and recent."""
    timestamp = str(int(sent_at.timestamp()))
    signature = sign(secret, str(event_id), timestamp, body)
    return {"webhook-id": str(event_id), "webhook-timestamp": timestamp, "webhook-signature": signature}


def sign(secret: str, event_id: str, timestamp: str, body: bytes) -> str:
    """Return the signature: HMAC-SHA256 over id, timestamp and body, separated by dots."""
    signed = f"{event_id}.{timestamp}.".encode() + body
    digest = hmac.new(_decode_secret(secret), signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def encode_secret(random_bytes: bytes) -> str:
    """Return a secret in the form that libraries for receivers expect."""
    return SECRET_PREFIX + base64.b64encode(random_bytes).decode()


def find_retry_delay(attempts: int) -> timedelta | None:
    """Return the time until the next attempt after `attempts` failed ones. `None` means that it is given up."""
    return RETRY_DELAYS[attempts - 1] if 0 < attempts <= len(RETRY_DELAYS) else None


def _decode_secret(secret: str) -> bytes:
    try:
        return base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error:
        return secret.encode()
