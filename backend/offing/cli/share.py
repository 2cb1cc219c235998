"""`offing share`: links under which a report can be read without an account."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from uuid import UUID

from cyclopts import App
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from offing.cli.id_suffix import select_match
from offing.cli.options import Flag, Json
from offing.cli.show import get_run_id, run_with_database
from offing.cli.terminal import print_json, strip_control
from offing.core.errors import InvalidInput
from offing.local.api_address import get_web_url
from offing.settings import load_settings
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.report_shares import ShareRow

app = App(name="share", help="Links under which a report can be read without an account: create, list, revoke.")

MAX_LISTED = 200
MAX_DAYS = 366


@app.default
def create(
    run: str,
    *,
    days: int = 30,
    label: str = "",
    no_question: Flag = False,
    url: str | None = None,
    json: Json = False,
) -> int:
    """Create a link to the latest report of a run. The link shows this version, also when a later one is written.

    Anyone who has the link can read the report until it expires or is revoked. It is printed once.

    Parameters
    ----------
    run
        A run id, or the last characters of an id.
    days
        Days until the link expires, at most 366.
    label
        What the link is for. Readers do not see it.
    no_question
        Do not show the question of the run.
    url
        URL of the web UI for readers, such as `https://offing.example`. Default: the web UI of `offing up`.
    json
        Print only JSON on standard output.
    """
    from offing.services import report_shares
    from offing.services.report_shares import CreatedShare, ShareRequest

    if not 1 <= days <= MAX_DAYS:
        raise InvalidInput("--days", f"{days} is out of range", f"Use 1 to {MAX_DAYS}.")

    async def work(database: Database) -> CreatedShare:
        expires_at = datetime.now(UTC) + timedelta(days=days)
        run_id = await get_run_id(database, run)
        request = ShareRequest(run_id, None, expires_at, label, not no_question)
        return await report_shares.create_share(database, LOCAL_TENANT, request)

    created = run_with_database(work)
    address = f"{(url or get_web_url(load_settings())).rstrip('/')}{created.path}"
    if json:
        return print_json({**_describe(created.row), "url": address})
    print(address)
    until = f"{created.row.expires_at:%Y-%m-%d %H:%M} UTC"
    print(f"It shows version {created.row.report_version} until {until}. It cannot be shown again.", file=sys.stderr)
    return 0


@app.command(name="list")
def list_shares(run: str | None = None, *, json: Json = False) -> int:
    """List the links of a run, or the latest 200 of all runs, with how often they were opened.

    Parameters
    ----------
    run
        A run id, or the last characters of an id. Default: all runs.
    json
        Print only JSON on standard output.
    """
    rows = run_with_database(lambda database: _list_rows(database, run))
    if json:
        return print_json([_describe(row) for row in rows])
    table = Table("link", "run", "state", "expires", "opened", "report", "label", box=None)
    for row in rows:
        opened = f"{row.opened_count}, last {row.last_opened_at:%Y-%m-%d}" if row.last_opened_at else "never"
        texts = (escape(strip_control(text)) for text in (row.report_title, row.label))
        ends = f"{row.expires_at:%Y-%m-%d}"
        table.add_row(str(row.id)[-8:], str(row.run_id)[-8:], _describe_state(row), ends, opened, *texts)
    Console(soft_wrap=True).print(table)
    return 0


@app.command
def revoke(link: str) -> int:
    """Revoke a link at once.

    Parameters
    ----------
    link
        The id of a link, or its last characters, as `offing share list` prints them.
    """
    from offing.services import report_shares

    async def work(database: Database) -> ShareRow:
        rows = [row for row in await _list_rows(database, None) if str(row.id).endswith(link.lower())]
        chosen = select_match("link", "links", link, rows)
        await report_shares.revoke_share(database, LOCAL_TENANT, chosen.id)
        return chosen

    chosen = run_with_database(work)
    print(f"The link {str(chosen.id)[-8:]} to {strip_control(chosen.report_title)!r} no longer works.")
    return 0


async def _list_rows(database: Database, run: str | None) -> Sequence[ShareRow]:
    from offing.services import report_shares

    run_id: UUID | None = None if run is None else await get_run_id(database, run)
    rows, _ = await report_shares.list_shares(database, LOCAL_TENANT, run_id, None, MAX_LISTED)
    return rows


def _describe_state(row: ShareRow) -> str:
    if row.revoked_at:
        return "revoked"
    return "open" if row.expires_at > datetime.now(UTC) else "expired"


def _describe(row: ShareRow) -> dict[str, object]:
    return {**asdict(row), "state": _describe_state(row)}
