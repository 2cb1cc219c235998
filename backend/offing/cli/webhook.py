"""`offing webhook`: addresses to which events of runs are sent."""

import sys
from collections.abc import Mapping, Sequence
from uuid import UUID

from cyclopts import App
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from offing import environment
from offing.cli.id_suffix import select_match
from offing.cli.options import Json
from offing.cli.show import run_with_database
from offing.cli.terminal import print_json, strip_control
from offing.core.errors import InvalidInput
from offing.core.webhook import EVENT_KINDS, EventKind
from offing.settings import load_settings
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.webhooks import WebhookRow
from offing.web.post import PostResult

app = App(name="webhook", help="Addresses to which events of runs are sent: add, list, test, remove.")


@app.command
def add(address: str, *, event: tuple[EventKind, ...] = EVENT_KINDS, web_ui: str = "", json: Json = False) -> int:
    """Send events of runs to an address. Prints the secret that signs the messages, once.

    Parameters
    ----------
    address
        A public address, or one whose HOST:PORT is in OFFING_ALLOWED_WEBHOOK_HOSTS.
    event
        An event to send. Repeat the option for several. Default: all.
    web_ui
        Address of the web UI for the links in messages. Default: links without a host.
    json
        Print only JSON on standard output.
    """
    from offing.services import webhooks
    from offing.services.webhooks import CreatedWebhook, WebhookRequest

    async def work(database: Database) -> CreatedWebhook:
        async with webhooks.open_poster(load_settings()) as poster:
            request = WebhookRequest(address, event, web_ui)
            return await webhooks.add_webhook(database, LOCAL_TENANT, request, poster.guard, _environment())

    created = run_with_database(work)
    if json:
        return print_json({**_describe(created.row), "secret": created.secret})
    print(created.secret)
    print("It signs each message. Store it now. It cannot be shown again.", file=sys.stderr)
    return 0


@app.command(name="list")
def list_webhooks(*, json: Json = False) -> int:
    """List the webhooks, without their secrets."""
    rows = run_with_database(_list_rows)
    if json:
        return print_json([_describe(row) for row in rows])
    table = Table("webhook", "address", "events", box=None)
    for row in rows:
        table.add_row(str(row.id)[-8:], escape(strip_control(row.address)), ", ".join(row.events))
    Console(soft_wrap=True).print(table)
    return 0


@app.command(name="test")
def run_test(webhook: str) -> int:
    """Send a message of the kind webhook.test once. Exits with 1 if it is not accepted.

    Parameters
    ----------
    webhook
        The id of a webhook, or its last characters.
    """
    from offing.services import webhooks

    async def work(database: Database) -> PostResult:
        chosen = await _select(database, webhook)
        async with webhooks.open_poster(load_settings()) as poster:
            return await webhooks.try_webhook(database, poster, LOCAL_TENANT, chosen.id, _environment())

    result = run_with_database(work)
    print(result.problem or f"The message was accepted with status {result.status}.")
    return 1 if result.problem else 0


@app.command
def remove(webhook: str) -> int:
    """Delete a webhook with the deliveries that wait for it.

    Parameters
    ----------
    webhook
        The id of a webhook, or its last characters.
    """
    from offing.services import webhooks

    async def work(database: Database) -> WebhookRow:
        chosen = await _select(database, webhook)
        await webhooks.remove_webhook(database, LOCAL_TENANT, chosen.id)
        return chosen

    print(f"No more events are sent to {strip_control(run_with_database(work).address)}.")
    return 0


async def _list_rows(database: Database) -> Sequence[WebhookRow]:
    from offing.services import webhooks

    return await webhooks.list_webhooks(database, LOCAL_TENANT)


async def _select(database: Database, text: str) -> WebhookRow:
    if not text:
        raise InvalidInput("WEBHOOK", "it is empty", "Name one of `offing webhook list`.")
    rows = [row for row in await _list_rows(database) if str(row.id).endswith(text.lower())]
    return select_match("webhook", "webhooks", text, rows)


def _describe(row: WebhookRow) -> dict[str, UUID | str | list[EventKind]]:
    return {
        "id": row.id,
        "address": row.address,
        "events": list(row.events),
        "web_ui": row.web_ui,
        "created_at": row.created_at.isoformat(),
    }


def _environment() -> Mapping[str, str]:
    """Return the environment with OFFING_HOME from the settings, so that all commands use the same files."""
    return {**environment.VARIABLES, "OFFING_HOME": str(load_settings().home)}
