"""Share links: reports that can be read without an account.

A link shows the version of the report with which it was created, so that readers see what its owner saw. Only the hash
of its token is stored, so the address can be shown once. A link ends when it expires, when it is revoked, and when its
run is deleted.
"""

import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal
from uuid import UUID

from offing.clock import new_id
from offing.core.errors import Conflict, InvalidInput, NotFound
from offing.core.shared_report import build_shared_report
from offing.report_files.writers import ReportFileWriter
from offing.services.access import hash_secret
from offing.services.report_export import ReportFile, render_report_file
from offing.storage import report_shares, reports, run_summaries
from offing.storage.pagination import parse_page_cursor, render_page_cursor
from offing.storage.pool import Database
from offing.storage.report_shares import NewShare, OpenedShare, ShareRow
from offing.storage.reports import VerifiedReport

DEFAULT_DAYS = 30
MAX_DAYS = 366
MAX_OPEN_SHARES = 50
"""Maximum number of links of one run that can be opened at the same time."""

SharedFormat = Literal["md", "html", "docx", "pdf"]

_TOKEN = re.compile(r"ofs_[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True)
class ShareRequest:
    """A link to create."""

    run_id: UUID
    version: int | None = None
    """Version of the report. `None` means the latest."""
    expires_at: datetime | None = None
    """`None` means after `DEFAULT_DAYS`."""
    label: str = ""
    """For the owner only. Empty means none."""
    shows_question: bool = True


@dataclass(frozen=True, slots=True)
class CreatedShare:
    """A new link. Its token is available only here."""

    row: ShareRow
    token: str

    @property
    def path(self) -> str:
        """The address of the page below that of the web UI."""
        return f"/shared/{self.token}"


@dataclass(frozen=True, slots=True)
class SharedReport:
    """What a reader of a link gets."""

    read: VerifiedReport
    """The report without ids of the database."""
    question: str | None
    """`None` means that the owner left it out."""
    language: str | None
    """Language tag that the run's owner asked for. `None` means that none was."""
    expires_at: datetime


def create_token() -> str:
    """Return a new token with 256 random bits. Its beginning lets logs and scanners recognize it."""
    return f"ofs_{secrets.token_urlsafe(32)}"


async def create_share(
    database: Database,
    tenant_id: UUID,
    request: ShareRequest,
    make_token: Callable[[], str] = create_token,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> CreatedShare:
    """Create a link to a version of a run's report.

    Raises NotFound without a report, InvalidInput for an invalid expiry, and Conflict for too many links of the run.
    """
    now = clock()
    expires_at = request.expires_at or now + timedelta(days=DEFAULT_DAYS)
    check_expiry(expires_at, now)
    token, share_id = make_token(), new_id()
    async with database.transaction(tenant_id) as connection:
        version = await reports.get_report_version(connection, request.run_id, request.version)
        if await report_shares.count_open_shares(connection, request.run_id) >= MAX_OPEN_SHARES:
            problem = f"This run has {MAX_OPEN_SHARES} share links that can be opened, which is the maximum."
            raise Conflict(problem, "Revoke one of them first.")
        await report_shares.insert_share(
            connection,
            tenant_id,
            NewShare(
                share_id,
                request.run_id,
                version,
                hash_secret(token),
                " ".join(request.label.split()),
                request.shows_question,
                now,
                expires_at,
            ),
        )
        return CreatedShare(await report_shares.get_share(connection, share_id), token)


def check_expiry(expires_at: datetime, now: datetime) -> None:
    """Raise InvalidInput for a time that has passed or is more than a year away."""
    if not now < expires_at <= now + timedelta(days=MAX_DAYS):
        problem = "a link must expire in the future and within a year"
        raise InvalidInput("expires_at", problem, f"Send a time within the next {MAX_DAYS} days.")


async def list_shares(
    database: Database, tenant_id: UUID, run_id: UUID | None, cursor: str | None, limit: int
) -> tuple[list[ShareRow], str | None]:
    """Return a page of links, newest first, and the cursor of the next page.

    If `run_id` is `None`, they are those of all runs of the tenant. Raises NotFound if there is no such run.
    """
    before = parse_page_cursor(cursor)
    async with database.transaction(tenant_id) as connection:
        if run_id is not None:
            await run_summaries.get_run_summary(connection, run_id)
        rows = await report_shares.list_shares(connection, run_id=run_id, before=before, limit=limit + 1)
    page = list(rows[:limit])
    return page, render_page_cursor((page[-1].created_at, page[-1].id)) if len(rows) > limit else None


async def revoke_share(database: Database, tenant_id: UUID, share_id: UUID) -> None:
    """Revoke a link, which takes effect at once. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        await report_shares.revoke_share(connection, share_id)


async def open_shared_report(database: Database, token: str, *, is_opening: bool) -> SharedReport:
    """Return what the link of a token shows, and count the opening if it is one.

    Raises the same NotFound for a token that is unknown, expired, revoked or has another form. All of them are hashed
    and looked up.
    """
    share = await report_shares.open_share(database, hash_secret(token), is_opening=is_opening)
    if share is None or not _TOKEN.fullmatch(token):
        raise _no_shared_report()
    try:
        return await _read_shared_report(database, share)
    except NotFound:  # the run was deleted since
        raise _no_shared_report() from None


async def export_shared_report(
    database: Database, writer: ReportFileWriter, token: str, file_format: SharedFormat
) -> ReportFile:
    """Return the report of a link as a file. Raises as `open_shared_report` and `ReportFileWriter.write`."""
    shared = await open_shared_report(database, token, is_opening=False)
    return await render_report_file(writer, shared.read, file_format, shared.language, "report")


async def _read_shared_report(database: Database, share: OpenedShare) -> SharedReport:
    async with database.transaction(share.tenant_id) as connection:
        run = (await run_summaries.get_run_summary(connection, share.run_id)).run
        read = await reports.get_verified_report(connection, share.run_id, share.report_version)
    question = run.question if share.shows_question else None
    style = run.report_style
    public = replace(read, report=build_shared_report(read.report))
    return SharedReport(public, question, style.language if style else None, share.expires_at)


def _no_shared_report() -> NotFound:
    return NotFound("shared report", "at this address")
