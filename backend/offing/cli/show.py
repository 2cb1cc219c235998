"""`offing show` and `export`: print stored runs for a terminal or a script."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import orjson
from rich.console import Console

from offing.cli.hooks import migrate
from offing.cli.id_suffix import select_match
from offing.cli.terminal import print_json, strip_control
from offing.core.errors import InvalidInput, NotFound
from offing.core.report import Report
from offing.core.report_formats import render_html, render_markdown, report_to_json
from offing.core.report_language import find_report_language
from offing.local.background import get_status
from offing.local.servers import ServerUrls, open_servers
from offing.settings import load_settings
from offing.storage import reports, run_summaries, runs, steps
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Connection, Database
from offing.storage.report_sources import locate_citations
from offing.storage.runs import RunRow

if TYPE_CHECKING:
    from offing.services.report_export import Format

T = TypeVar("T")

COMMAND_LINE = "command line"
"""Name of the person under which requests of the command line are recorded."""

MAX_LISTED_VERSIONS = 100
"""Maximum number of versions of a report that are listed. The latest are listed."""

REPORT_RENDERERS: dict[str, Callable[[Report, str], str]] = {
    "md": lambda report, language: render_markdown(report, language=language),
    "html": lambda report, language: render_html(report, language=language),
    "json": lambda report, _: orjson.dumps(report_to_json(report), option=orjson.OPT_INDENT_2).decode(),
}
"""Writers of a report in the language of a tag."""


def run_with_database(function: Callable[[Database], Awaitable[T]]) -> T:
    """Run a function with the database of this data directory, as `run_with_servers` does."""
    return run_with_servers(lambda database, _: function(database))


def run_with_servers(function: Callable[[Database, ServerUrls], Awaitable[T]]) -> T:
    """Run a function with the database and the servers of this data directory, starting them if needed.

    If no stack is running, the database is migrated first, so that any command may be the first one.
    """
    settings = load_settings()
    idle = get_status(settings).pid is None

    async def opened(servers: ServerUrls) -> T:
        async with Database(servers.app_url, max_connections=2) as database:
            return await function(database, servers)

    with open_servers(settings) as servers:
        if idle:
            migrate(servers)
        return asyncio.run(opened(servers))


def show_run(run_text: str, as_json: bool, version: int | None = None) -> int:
    async def work(database: Database) -> dict[str, Any]:
        return await render_run(database, await get_run_id(database, run_text), version)

    result = run_with_database(work)
    if as_json:
        return print_json(result)
    for step in result["steps"]:
        print(f"{step['seq']:>4} {step['label']:<9} {step['title']}")
    print_run(result)
    return 0


def export_run(run_text: str, format: "Format", output: Path | None, version: int | None = None) -> int:
    """Write a report to a file or to standard output. Raises `InvalidInput` if a terminal would get a binary file."""
    if format in ("docx", "pdf") and output is None and sys.stdout.isatty():
        problem = f"A terminal cannot show a file in the format {format}"
        raise InvalidInput("output", problem, f"Name a file, such as --output report.{format}.")
    body = run_with_database(lambda database: _render_report(database, run_text, format, version))
    if output is None:
        sys.stdout.buffer.write(body)
    else:
        output.write_bytes(body)
    return 0


async def _render_report(database: Database, run_text: str, format: "Format", version: int | None) -> bytes:
    run = await get_run_id(database, run_text)
    if format not in REPORT_RENDERERS:
        from offing.report_files.writers import ReportFileWriter
        from offing.services.report_export import export_report

        return (await export_report(database, ReportFileWriter(), LOCAL_TENANT, run, format, version)).body
    async with database.transaction(LOCAL_TENANT) as connection:
        report = await _find_report(connection, run, version)
        style = (await runs.get_run(connection, run)).report_style
    if report is None:
        raise NotFound("report", f"of run {run}" if version is None else f"{version} of run {run}")
    language = find_report_language(report, style.language if style else None)
    return REPORT_RENDERERS[format](report, language).encode()


NO_REPORT: dict[str, Any] = {
    "citations": [],
    "sources": [],
    "sections": [],
    "claims": [],
    "judged_by": "",
    "check": None,
    "conflicts": [],
    "conflict_search": "",
    "revision": None,
    "score": {"sentences": 0, "supported": 0, "citations": 0},
}


def print_run(result: dict[str, Any]) -> None:
    """Print an ended run for a reader: its report, or the reason why there is none."""
    from rich.markdown import Markdown

    console = Console()
    if result["report"] is None:
        console.print(f"No report: {result['stop_reason']}. {strip_control(result['error'] or '')}")
        return
    console.print(Markdown(result["report"]) if console.is_terminal else result["report"], soft_wrap=True, markup=False)
    marked = "" if result["score"]["supported"] else " · no sentence is supported by a source"
    console.print(f"\nrun {result['run_id']} · {result['status']}: {result['stop_reason']}{marked}", style="dim")
    if len(result["report_versions"]) > 1:
        console.print(f"version {result['report_version']} of {len(result['report_versions'])}", style="dim")
    if (tokens := describe_tokens(result["token_details"])) != "":
        console.print(tokens, style="dim")


def describe_tokens(details: dict[str, int]) -> str:
    """Describe the tokens of a run's role calls in one line. Empty if no engine counted any."""
    prompt, completion = details["prompt_tokens"], details["completion_tokens"]
    if not prompt + completion:
        return ""
    cached = f" ({details['cached_prompt_tokens']:,} cached)" if details["cached_prompt_tokens"] else ""
    thought = f" ({details['reasoning_tokens']:,} thinking)" if details["reasoning_tokens"] else ""
    return f"tokens: {prompt:,} prompt{cached}, {completion:,} completion{thought}"


async def render_run(database: Database, run_id: UUID, version: int | None = None) -> dict[str, Any]:
    """Return a run as `offing ask --json` and `offing show --json` print it.

    `version` is that of the report; `None` means the latest. Raises NotFound if there is no such version.
    """
    async with database.transaction(LOCAL_TENANT) as connection:
        row = await runs.get_run(connection, run_id)
        log = await steps.list_steps_after(connection, run_id, 0, 100_000)
        report = await _find_report(connection, run_id, version)
        versions = await reports.list_versions(connection, run_id, None, MAX_LISTED_VERSIONS)
        details = await run_summaries.get_token_details(connection, run_id)
    if report is None and version is not None:
        raise NotFound("report", f"{version} of run {run_id}")
    rendered = report_to_json(report) if report else NO_REPORT
    style = row.report_style
    language = find_report_language(report, style.language if style else None) if report else ""
    return {
        **summarize_run(row),
        "token_details": asdict(details),
        "error": row.error,
        "answer": report.answer.text if report and report.answer else None,
        "report": render_markdown(report, language=language) if report else None,
        "report_status": report.status if report else None,
        "report_version": version or max((one.version for one in versions), default=None),
        "report_versions": [asdict(one) | {"created_at": one.created_at.isoformat()} for one in versions],
        "citations": rendered["citations"],
        "sources": rendered["sources"],
        "sentences": rendered["sections"],
        "claims": rendered["claims"],
        "judged_by": rendered["judged_by"],
        "check": rendered["check"],
        "conflicts": rendered["conflicts"],
        "conflict_search": rendered["conflict_search"],
        "revision": rendered["revision"],
        "follow_up": rendered.get("follow_up"),
        "score": rendered["score"],
        "steps": [
            {
                "seq": s.seq,
                "kind": s.kind,
                "label": s.label,
                "title": s.title,
                "ok": s.ok,
                "ms": s.ms,
                "first_text_ms": s.payload.get("first_text_ms"),
                "turn": s.turn,
            }
            for s in log
        ],
    }


def summarize_run(run: RunRow) -> dict[str, Any]:
    """Return the fields of a run that lists have, too."""
    spent = run.usage
    usage = {
        "turns": spent.turns,
        "tokens": spent.tokens,
        "cost_usd": float(spent.cost_usd),
        "seconds": round(spent.seconds, 3),
    }
    return {
        "run_id": str(run.id),
        "thread_id": str(run.thread_id),
        "question": run.question,
        "graph": run.graph,
        "status": run.status,
        "stop_reason": run.stop_reason,
        "usage": usage,
        "created_at": run.created_at.isoformat(),
    }


async def _find_report(connection: Connection, run_id: UUID, version: int | None = None) -> Report | None:
    """Return a version of a run's report with the positions of its citations, by default the latest.

    `None` means that there is none.
    """
    report = await reports.find_report(connection, run_id, version)
    return None if report is None else await locate_citations(connection, run_id, report, version)


async def get_run_id(database: Database, run_text: str) -> UUID:
    """Return the id of the run with this id or with these last characters."""
    async with database.transaction(LOCAL_TENANT) as connection:
        matches = await runs.list_ids_with_suffix(connection, run_text)
    return select_match("run", "runs", run_text, matches)
