"""Webhooks of a tenant: store them, try them, and deliver events to them.

A delivery is attempted until the receiver accepts it, at most eight times. Because a process can stop between the
response and its record, an event may arrive more than once, each time with the same id.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit
from uuid import UUID

import orjson

from offing import environment
from offing.clock import new_id
from offing.core.errors import Conflict, InvalidInput, OffingError
from offing.core.webhook import (
    EVENT_KINDS,
    SECRET_BYTES,
    EventKind,
    RunEvent,
    build_body,
    build_headers,
    build_test_body,
    encode_secret,
    find_retry_delay,
)
from offing.models import key_file
from offing.models.key_file import EncryptedKey
from offing.services.tool_backends import parse_hosts
from offing.services.webhook_secrets import bind_secret
from offing.settings import Settings
from offing.storage import providers, run_events, webhooks
from offing.storage.pool import Database
from offing.storage.webhooks import AttemptResult, AttemptRow, ClaimedDelivery, WebhookRow
from offing.web.guard import AddressGuard, resolve_host
from offing.web.post import Poster, PostResult
from offing.web.url import InvalidUrl, parse_url

MAX_WEBHOOKS = 10
"""Maximum number of webhooks of a tenant."""
MAX_LISTED_ATTEMPTS = 50
MAX_CONCURRENT = 10
"""Maximum number of deliveries of a process at the same time."""
LEASE = timedelta(minutes=2)
"""Time after which another process attempts a delivery again. It is longer than an attempt can take."""


@dataclass(frozen=True, slots=True)
class WebhookRequest:
    """A webhook to store."""

    address: str
    events: Sequence[EventKind] = EVENT_KINDS
    web_ui: str = ""
    """Address of the web UI for links. Empty means that links have no host."""


@dataclass(frozen=True, slots=True)
class CreatedWebhook:
    """A new webhook. Its secret is available only here."""

    row: WebhookRow
    secret: str


def open_poster(settings: Settings) -> Poster:
    """Return a client that reaches public addresses and those that the operator allows for webhooks."""
    hosts = parse_hosts("OFFING_ALLOWED_WEBHOOK_HOSTS", settings.allowed_webhook_hosts)
    return Poster(AddressGuard(resolve_host, hosts))


async def add_webhook(
    database: Database,
    tenant_id: UUID,
    request: WebhookRequest,
    guard: AddressGuard,
    env: Mapping[str, str] = environment.VARIABLES,
    random_bytes: Callable[[int], bytes] = secrets.token_bytes,
) -> CreatedWebhook:
    """Store a webhook with a new secret.

    Raises InvalidInput for an address that may not be reached, and Conflict if there are too many webhooks or the key
    file cannot be used.
    """
    address = await check_address(request.address, guard)
    _check_web_ui(request.web_ui)
    if not request.events:
        raise InvalidInput("events", "no event is chosen", f"Choose of {', '.join(EVENT_KINDS)}.")
    secret, webhook_id = encode_secret(random_bytes(SECRET_BYTES)), new_id()
    async with database.transaction(tenant_id) as connection:
        await providers.lock_keys_shared(connection)
        if await webhooks.count_webhooks(connection) >= MAX_WEBHOOKS:
            raise Conflict(f"There are {MAX_WEBHOOKS} webhooks, which is the maximum.", "Remove one of them first.")
        sealed = key_file.open_key_ring(env).encrypt(secret, bind_secret(tenant_id, webhook_id))
        events = list(dict.fromkeys(request.events))
        row = WebhookRow(
            webhook_id, address, events, request.web_ui, sealed.key_id, sealed.ciphertext, datetime.now(UTC)
        )
        await webhooks.insert_webhook(connection, tenant_id, row)
        return CreatedWebhook(await webhooks.get_webhook(connection, webhook_id), secret)


async def list_webhooks(database: Database, tenant_id: UUID) -> Sequence[WebhookRow]:
    """Return the tenant's webhooks, oldest first."""
    async with database.transaction(tenant_id) as connection:
        return await webhooks.list_webhooks(connection)


async def remove_webhook(database: Database, tenant_id: UUID, webhook_id: UUID) -> None:
    """Delete a webhook with its waiting deliveries. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        await webhooks.delete_webhook(connection, webhook_id)


async def list_attempts(database: Database, tenant_id: UUID, webhook_id: UUID) -> Sequence[AttemptRow]:
    """Return the latest attempts of a webhook, newest first. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        await webhooks.get_webhook(connection, webhook_id)
        return await webhooks.list_attempts(connection, webhook_id, MAX_LISTED_ATTEMPTS)


async def try_webhook(
    database: Database,
    poster: Poster,
    tenant_id: UUID,
    webhook_id: UUID,
    env: Mapping[str, str] = environment.VARIABLES,
) -> PostResult:
    """Send a message that only tries the webhook, once. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        row = await webhooks.get_webhook(connection, webhook_id)
    event_id, now = new_id(), datetime.now(UTC)
    return await _send(poster, tenant_id, row, event_id, orjson.dumps(build_test_body(event_id, now)), env)


async def deliver_due(
    database: Database, poster: Poster, env: Mapping[str, str] = environment.VARIABLES, lease: timedelta = LEASE
) -> int:
    """Attempt the deliveries that are due, at most `MAX_CONCURRENT`, and return their number."""
    claimed = await webhooks.claim_deliveries(database, lease, MAX_CONCURRENT)
    await asyncio.gather(*(_deliver(database, poster, one, env) for one in claimed))
    return len(claimed)


async def _deliver(database: Database, poster: Poster, claimed: ClaimedDelivery, env: Mapping[str, str]) -> None:
    async with database.transaction(claimed.tenant_id) as connection:
        row = await webhooks.find_webhook(connection, claimed.webhook_id)
        event = await run_events.find_event(connection, claimed.event_id)
    if row is None or event is None:
        return  # a cascade has deleted the delivery
    started = time.monotonic()
    sent = await _send_event(poster, claimed.tenant_id, row, event, env)
    ms = round((time.monotonic() - started) * 1000)
    delay = find_retry_delay(claimed.attempts) if sent.problem else None
    async with database.transaction(claimed.tenant_id) as connection:
        await webhooks.end_attempt(connection, claimed, AttemptResult(sent.status, sent.problem, ms, delay))


async def _send_event(
    poster: Poster, tenant_id: UUID, row: WebhookRow, event: RunEvent, env: Mapping[str, str]
) -> PostResult:
    return await _send(poster, tenant_id, row, event.id, orjson.dumps(build_body(event, row.web_ui)), env)


async def _send(
    poster: Poster, tenant_id: UUID, row: WebhookRow, event_id: UUID, body: bytes, env: Mapping[str, str]
) -> PostResult:
    try:
        secret = read_secret(tenant_id, row, env)
    except OffingError as error:
        return PostResult(None, f"The secret of the webhook cannot be used. {error}")
    return await poster.post(row.address, build_headers(secret, event_id, datetime.now(UTC), body), body)


def read_secret(tenant_id: UUID, row: WebhookRow, env: Mapping[str, str]) -> str:
    """Return the secret of a webhook. Raises OffingError if the key file does not have its key."""
    sealed = EncryptedKey(row.key_id, row.secret_ciphertext)
    return key_file.read_key_ring(env).decrypt(sealed, bind_secret(tenant_id, row.id))


async def check_address(text: str, guard: AddressGuard, field: str = "address") -> str:
    """Return an address that may be reached now. It is checked again at each delivery. Raises InvalidInput."""
    parsed = parse_url(text.strip())
    if isinstance(parsed, InvalidUrl):
        raise InvalidInput(field, parsed.problem.rstrip("."), "Enter an address that begins with https://.")
    allowed = await guard.resolve_allowed(parsed.host, parsed.port)
    if isinstance(allowed, InvalidUrl):
        remedy = "Enter a public address, or ask the operator to add HOST:PORT to OFFING_ALLOWED_WEBHOOK_HOSTS."
        raise InvalidInput(field, f"{parsed.host} may not be reached", remedy)
    return parsed.url


def _check_web_ui(text: str) -> None:
    parts = urlsplit(text)
    if text and (parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment):
        raise InvalidInput("web_ui", "it is no address of a web UI", "Enter one such as https://offing.example.")
