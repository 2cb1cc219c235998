"""API schemas of notifications and webhooks, and their serializers."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import AwareDatetime, Field

from offing.api.schemas.base import ApiModel, Page
from offing.core.webhook import EVENT_KINDS, EventKind
from offing.services.notifications import MAX_COUNTED, NotificationList
from offing.services.webhooks import CreatedWebhook, WebhookRequest
from offing.storage.run_events import RunEventRow
from offing.storage.webhooks import AttemptRow, WebhookRow
from offing.web.post import PostResult


class NotificationOut(ApiModel):
    """A run waits for a person, has ended or has failed."""

    id: UUID
    kind: EventKind
    run_id: UUID
    title: str = Field(description="Title that a person gave the run, or the beginning of its question.")
    created_at: datetime
    read_at: datetime | None = Field(description="null: unread.")
    request: int | None = Field(description="Number of the input request that the run waits for. null: none.")


class NotificationPage(Page):
    items: list[NotificationOut]
    unread_count: int = Field(description=f"Number of unread notifications, at most {MAX_COUNTED}.")


class ReadNotificationsIn(ApiModel):
    """Which notifications a person has seen."""

    id: UUID | None = Field(default=None, description="null: all up to `until`.")
    until: AwareDatetime | None = Field(default=None, description="null: now.")


class WebhookIn(ApiModel):
    """A webhook to store."""

    address: str = Field(
        min_length=1, max_length=2048, description="Public address, or one that the operator allows for webhooks."
    )
    events: Annotated[list[EventKind], Field(min_length=1, max_length=len(EVENT_KINDS))] = Field(
        default=list(EVENT_KINDS), description="Events to send."
    )
    web_ui: str = Field(
        default="", max_length=500, description="Address of the web UI, for links. Empty: links without a host."
    )


class WebhookOut(ApiModel):
    """A stored webhook, without its secret."""

    id: UUID
    address: str
    events: list[EventKind]
    web_ui: str
    created_at: datetime


class CreatedWebhookOut(ApiModel):
    """A new webhook with its secret, which is returned only here."""

    webhook: WebhookOut
    secret: str = Field(description="Signs each message, in the form of Standard Webhooks.")


class WebhookAttemptOut(ApiModel):
    """An attempt to deliver an event."""

    event_id: UUID = Field(description="Id of the event, which is the same in each attempt.")
    kind: EventKind
    run_id: UUID
    number: int
    at: datetime
    status: int | None = Field(description="Status of the response. null: there was none.")
    problem: str = Field(description="Why it was not delivered. Empty: it was.")
    ms: int
    next_attempt_at: datetime | None = Field(description="null: the event was delivered, or it was given up.")


class WebhookTestOut(ApiModel):
    """How a message that tries a webhook was received."""

    status: int | None = Field(description="Status of the response. null: there was none.")
    problem: str = Field(description="Why it was not accepted. Empty: it was.")


def serialize_notifications(listed: NotificationList) -> NotificationPage:
    items = [_serialize_notification(row) for row in listed.items]
    return NotificationPage(items=items, next=listed.next_cursor, unread_count=listed.unread_count)


def _serialize_notification(row: RunEventRow) -> NotificationOut:
    return NotificationOut(
        id=row.id,
        kind=row.kind,
        run_id=row.run_id,
        title=row.title,
        created_at=row.created_at,
        read_at=row.read_at,
        request=row.request_seq,
    )


def build_webhook_request(body: WebhookIn) -> WebhookRequest:
    return WebhookRequest(body.address, body.events, body.web_ui)


def serialize_webhook(row: WebhookRow) -> WebhookOut:
    return WebhookOut(
        id=row.id, address=row.address, events=list(row.events), web_ui=row.web_ui, created_at=row.created_at
    )


def serialize_created_webhook(created: CreatedWebhook) -> CreatedWebhookOut:
    return CreatedWebhookOut(webhook=serialize_webhook(created.row), secret=created.secret)


def serialize_attempt(row: AttemptRow) -> WebhookAttemptOut:
    return WebhookAttemptOut(
        event_id=row.event_id,
        kind=row.kind,
        run_id=row.run_id,
        number=row.number,
        at=row.at,
        status=row.status,
        problem=row.problem,
        ms=row.ms,
        next_attempt_at=row.next_attempt_at,
    )


def serialize_webhook_test(result: PostResult) -> WebhookTestOut:
    return WebhookTestOut(status=result.status, problem=result.problem)
