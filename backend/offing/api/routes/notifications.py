"""Routes for notifications of runs, and for webhooks that send them to other programs."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Response

from offing.api.auth import CurrentCaller
from offing.api.dependencies import Deps
from offing.api.routes.responses import BODY_TOO_LARGE, describe_problems
from offing.api.schemas.notifications import (
    CreatedWebhookOut,
    NotificationPage,
    ReadNotificationsIn,
    WebhookAttemptOut,
    WebhookIn,
    WebhookOut,
    WebhookTestOut,
    build_webhook_request,
    serialize_attempt,
    serialize_created_webhook,
    serialize_notifications,
    serialize_webhook,
    serialize_webhook_test,
)
from offing.api.strict_route import StrictRoute
from offing.services import notifications, webhooks

router = APIRouter(tags=["notifications"], route_class=StrictRoute)

WEBHOOK_NOT_FOUND = describe_problems(_404="There is no such webhook.")


@router.get("/notifications")
async def list_notifications(
    caller: CurrentCaller,
    deps: Deps,
    cursor: Annotated[str | None, Query(max_length=200, description="`next` of the previous page.")] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> NotificationPage:
    """List which runs wait for a person, have ended or have failed, newest first, for 90 days."""
    return serialize_notifications(
        await notifications.list_notifications(deps.database, caller.tenant_id, cursor, limit)
    )


@router.post("/notifications/read", status_code=204, responses=BODY_TOO_LARGE)
async def read_notifications(caller: CurrentCaller, deps: Deps, body: ReadNotificationsIn) -> Response:
    """Mark a notification as read, or all up to a time."""
    await notifications.mark_read(deps.database, caller.tenant_id, body.id, body.until)
    return Response(status_code=204)


@router.get("/webhooks")
async def list_webhooks(caller: CurrentCaller, deps: Deps) -> list[WebhookOut]:
    """List your tenant's webhooks, at most 10, without their secrets."""
    return [serialize_webhook(row) for row in await webhooks.list_webhooks(deps.database, caller.tenant_id)]


@router.post(
    "/webhooks",
    status_code=201,
    responses=BODY_TOO_LARGE
    | describe_problems(_409="There are too many webhooks, or the key file of this installation cannot be used."),
)
async def add_webhook(caller: CurrentCaller, deps: Deps, body: WebhookIn) -> CreatedWebhookOut:
    """Add a webhook. Its secret is returned once, and encrypted where it is stored."""
    created = await webhooks.add_webhook(
        deps.database, caller.tenant_id, build_webhook_request(body), deps.poster.guard
    )
    return serialize_created_webhook(created)


@router.delete("/webhooks/{webhook_id}", status_code=204, responses=WEBHOOK_NOT_FOUND)
async def delete_webhook(caller: CurrentCaller, deps: Deps, webhook_id: UUID) -> Response:
    """Delete a webhook with the deliveries that wait for it."""
    await webhooks.remove_webhook(deps.database, caller.tenant_id, webhook_id)
    return Response(status_code=204)


@router.post("/webhooks/{webhook_id}/test", responses=WEBHOOK_NOT_FOUND)
async def run_webhook_test(caller: CurrentCaller, deps: Deps, webhook_id: UUID) -> WebhookTestOut:
    """Send a message of the kind `webhook.test` once, and say how it was received. Takes at most 10 seconds."""
    return serialize_webhook_test(await webhooks.try_webhook(deps.database, deps.poster, caller.tenant_id, webhook_id))


@router.get("/webhooks/{webhook_id}/attempts", responses=WEBHOOK_NOT_FOUND)
async def list_webhook_attempts(caller: CurrentCaller, deps: Deps, webhook_id: UUID) -> list[WebhookAttemptOut]:
    """List the latest 50 attempts to deliver events to a webhook, newest first."""
    return [serialize_attempt(row) for row in await webhooks.list_attempts(deps.database, caller.tenant_id, webhook_id)]
