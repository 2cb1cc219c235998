"""A report as a file that stands on its own: with its evidence, and what is known of each source."""

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

import orjson

from offing.core.rendering import to_html, to_json, to_markdown
from offing.storage import reports_read, views
from offing.storage.pool import Database
from offing.storage.reports_read import ReadReport
from offing.storage.views import ShownRun

Format = Literal["md", "html", "json"]

MEDIA_TYPES: dict[Format, str] = {
    "md": "text/markdown; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "json": "application/json",
}


@dataclass(frozen=True, slots=True)
class Exported:
    """A file. Its name is made of ids alone."""

    name: str
    media_type: str
    body: bytes


async def export(database: Database, tenant: UUID, run: UUID, form: Format, version: int | None = None) -> Exported:
    """A version of a run's report as a file; None: the latest. Raises NotFound."""
    async with database.transaction(tenant) as connection:
        shown = await views.run(connection, run)
        read = await reports_read.read(connection, run, version)
    return Exported(f"offing-{run}-v{read.version}.{form}", MEDIA_TYPES[form], _rendered(shown, read, form))


def _rendered(shown: ShownRun, read: ReadReport, form: Format) -> bytes:
    match form:
        case "md":
            return to_markdown(read.report).encode()
        case "html":
            return to_html(read.report).encode()
        case "json":
            return orjson.dumps(_document(shown, read), option=orjson.OPT_INDENT_2)


def _document(shown: ShownRun, read: ReadReport) -> dict[str, object]:
    """The report and what a reader needs to judge it: the question, who wrote, and which quotes still stand."""
    run = shown.run
    return {
        "run": str(run.id),
        "question": run.question,
        "graph": {"name": run.graph, "version": run.graph_version},
        "status": run.status,
        "stop_reason": run.stop_reason,
        "version": read.version,
        "created_at": read.created_at,
        "unverified": sorted(read.unverified),
        "report": to_json(read.report),
    }
