"""Webhooks of single runs, which LangGraph's clients name: the run with its values, sent at its end, whatever the end.

A delivery is stored in the transaction that ends the run. It is attempted as those of the tenant's own webhooks are:
until the receiver accepts it, at most eight times, to addresses that the guard allows. If the tenant has a webhook
with the same scheme, host and port, the message is signed with its secret.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from offing import environment
from offing.core.errors import InvalidInput, NotFound, OffingError
from offing.core.webhook import build_headers, find_retry_delay
from offing.core.webhook_rules import WebhookRules
from offing.kernel.langgraph_json import dump_json
from offing.sdk import Graph
from offing.services import langgraph_states
from offing.services.langgraph_run_json import describe_failure, render_run
from offing.services.langgraph_states import ThreadGraph, UnreadableStateError
from offing.services.webhooks import LEASE, MAX_CONCURRENT, read_secret
from offing.storage import langgraph_runs, run_webhooks, webhooks
from offing.storage.langgraph_runs import LangGraphRunRow
from offing.storage.pool import Database
from offing.storage.run_webhooks import ClaimedRunWebhook
from offing.storage.webhooks import AttemptResult, WebhookRow
from offing.web.guard import add_ports
from offing.web.post import Poster, PostResult


async def deliver_due(
    database: Database,
    poster: Poster,
    graphs: Mapping[str, Graph],
    read_rules: Callable[[], WebhookRules] = WebhookRules,
    env: Mapping[str, str] = environment.VARIABLES,
    lease: timedelta = LEASE,
) -> int:
    """Attempt the deliveries that are due, at most `MAX_CONCURRENT`, and return their number.

    `read_rules` returns the rules of a project, and raises InvalidInput if they cannot be read.
    """
    claimed = await run_webhooks.claim_run_webhooks(database, lease, MAX_CONCURRENT)
    await asyncio.gather(*(_deliver(database, poster, graphs, one, read_rules, env) for one in claimed))
    return len(claimed)


async def _deliver(
    database: Database,
    poster: Poster,
    graphs: Mapping[str, Graph],
    claimed: ClaimedRunWebhook,
    read_rules: Callable[[], WebhookRules],
    env: Mapping[str, str],
) -> None:
    try:
        body = dump_json(await build_message(database, graphs, claimed, datetime.now(UTC)))
    except NotFound:
        return  # the run was deleted, and its delivery with it
    try:
        rules = read_rules()
        sent = await _send_by_rules(database, poster, claimed, body, rules, env)
    except InvalidInput as error:
        rules, sent = WebhookRules(), PostResult(None, str(error))
    delay = find_retry_delay(claimed.attempts) if sent.problem and not rules.is_disabled else None
    async with database.transaction(claimed.tenant_id) as connection:
        result = AttemptResult(sent.status, sent.problem, 0, delay)
        await run_webhooks.end_attempt(connection, claimed.run_id, result)


async def build_message(
    database: Database, graphs: Mapping[str, Graph], claimed: ClaimedRunWebhook, now: datetime
) -> dict[str, Any]:
    """Return the message of an ended run: the run as its clients see it, with its values. Raises NotFound."""
    async with database.transaction(claimed.tenant_id) as connection:
        run = await langgraph_runs.get_run(connection, claimed.run_id)
        started_at, ended_at = await run_webhooks.find_times(connection, run.id)
        checkpoint = await run_webhooks.find_last_checkpoint(connection, run.thread_id, run.id)
    message = {
        **render_run(run),
        "run_started_at": started_at,
        "run_ended_at": ended_at,
        "webhook_sent_at": now,
        "values": await _load_values(database, graphs, claimed, run, checkpoint),
    }
    if (failure := describe_failure(run)) is not None:
        message["error"] = failure
    return message


async def _load_values(
    database: Database,
    graphs: Mapping[str, Graph],
    claimed: ClaimedRunWebhook,
    run: LangGraphRunRow,
    checkpoint: str | None,
) -> Any:
    """Return the values that the run left.

    `None` means that it wrote none, or that its graph is not installed here or fails to compute them.
    """
    if checkpoint is None or run.graph not in graphs:
        return None
    thread = ThreadGraph(claimed.tenant_id, run.thread_id, graphs[run.graph])
    try:
        return (await langgraph_states.get_state(database, thread, {"checkpoint_id": checkpoint})).values
    except UnreadableStateError:  # the log has it
        return None


async def _send_by_rules(
    database: Database,
    poster: Poster,
    claimed: ClaimedRunWebhook,
    body: bytes,
    rules: WebhookRules,
    env: Mapping[str, str],
) -> PostResult:
    """Send the message if the project's rules still allow its address. Raises InvalidInput for a header."""
    if rules.is_disabled:
        return PostResult(None, "http.disable_webhooks of the project is set.")
    if problem := rules.find_problem(claimed.address):
        return PostResult(None, f"{problem}.")
    headers = rules.resolve_headers(env)
    if not rules.allowed_ports:
        return await _send(database, poster, claimed, body, headers, env)
    async with replace(poster, guard=add_ports(poster.guard, rules.allowed_ports)) as widened:
        return await _send(database, widened, claimed, body, headers, env)


async def _send(
    database: Database,
    poster: Poster,
    claimed: ClaimedRunWebhook,
    body: bytes,
    own: Mapping[str, str],
    env: Mapping[str, str],
) -> PostResult:
    """Send the message with the project's own headers, and signed if the tenant has a secret for the receiver."""
    async with database.transaction(claimed.tenant_id) as connection:
        registered = await webhooks.list_webhooks(connection)
    signer = next((one for one in registered if _origin(one.address) == _origin(claimed.address)), None)
    try:
        headers: Mapping[str, str] = {} if signer is None else _sign(claimed, signer, body, env)
    except OffingError as error:
        return PostResult(None, f"The secret of the webhook cannot be used. {error}")
    return await poster.post(claimed.address, {**own, **headers}, body)


def _sign(claimed: ClaimedRunWebhook, signer: WebhookRow, body: bytes, env: Mapping[str, str]) -> Mapping[str, str]:
    secret = read_secret(claimed.tenant_id, signer, env)
    return build_headers(secret, claimed.event_id, datetime.now(UTC), body)


def _origin(address: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(address)
    return parts.scheme, parts.hostname, parts.port
