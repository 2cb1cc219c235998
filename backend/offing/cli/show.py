"""`offing runs`, `show` and `export`: what is stored, for a terminal or a script."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import orjson
from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table

from offing.cli.hooks import migrate
from offing.cli.terminal import safe
from offing.core.errors import InvalidInput, NotFound
from offing.core.rendering import to_html, to_json, to_markdown
from offing.core.report import Report
from offing.local.background import status
from offing.local.servers import local_servers
from offing.settings import load_settings
from offing.storage import reports, runs, steps
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.runs import RunRow

T = TypeVar("T")

RENDERERS: dict[str, Callable[[Report], str]] = {
    "md": to_markdown,
    "html": to_html,
    "json": lambda report: orjson.dumps(to_json(report), option=orjson.OPT_INDENT_2).decode(),
}


def with_database(work: Callable[[Database], Awaitable[T]]) -> T:
    """Do something with the database of this home, starting its servers for the moment if need be.

    Where nothing runs for this home, its database is brought to this version first, so that any command may be the
    first one.
    """
    settings = load_settings()
    idle = status(settings).pid is None

    async def opened(url: str) -> T:
        async with Database(url, most=2) as database:
            return await work(database)

    with local_servers(settings) as servers:
        if idle:
            migrate(servers)
        return asyncio.run(opened(servers.app_url))


def list_runs(limit: int, as_json: bool) -> int:
    found = with_database(lambda database: _recent(database, limit))
    if as_json:
        return _dump([_summary(run) for run in found])
    table = Table("run", "state", "turns", "question", box=None)
    for run in found:
        state = f"{run.status}: {run.stop_reason}" if run.stop_reason else run.status
        table.add_row(str(run.id)[-8:], state, str(run.spent.turns), safe(run.question[:90]))
    Console().print(table)
    return 0


def show_run(text: str, as_json: bool) -> int:
    async def work(database: Database) -> dict[str, Any]:
        return await run_as_json(database, await find_run(database, text))

    result = with_database(work)
    if as_json:
        return _dump(result)
    for step in result["steps"]:
        print(f"{step['seq']:>4} {step['label']:<9} {step['title']}")
    printed(result)
    return 0


def export_run(text: str, format: str, output: Path | None) -> int:
    async def work(database: Database) -> Report:
        run = await find_run(database, text)
        async with database.transaction(LOCAL_TENANT) as connection:
            report = await reports.latest(connection, run)
        if report is None:
            raise NotFound("report of run", str(run))
        return report

    rendered = RENDERERS[format](with_database(work))
    if output is None:
        sys.stdout.write(rendered)
    else:
        output.write_text(rendered, encoding="utf-8")
    return 0


def printed(result: dict[str, Any]) -> None:
    """A finished run for a person: its report, or why there is none."""
    console = Console()
    if result["report"] is None:
        console.print(f"No report: {result['stop_reason']}. {safe(result['error'] or '')}")
        return
    console.print(Markdown(result["report"]) if console.is_terminal else result["report"], soft_wrap=True, markup=False)
    console.print(f"\nrun {result['run_id']} · {result['status']}: {result['stop_reason']}", style="dim")


async def run_as_json(database: Database, run: UUID) -> dict[str, Any]:
    """A run whole: what `offing ask --json` and `offing show --json` print."""
    async with database.transaction(LOCAL_TENANT) as connection:
        row = await runs.by_id(connection, run)
        log = await steps.after(connection, run, 0, 100_000)
        report = await reports.latest(connection, run)
    return {
        **_summary(row),
        "error": row.error,
        "answer": report.answer.text if report and report.answer else None,
        "report": to_markdown(report) if report else None,
        "report_status": report.status if report else None,
        "citations": to_json(report)["citations"] if report else [],
        "sentences": to_json(report)["sections"] if report else [],
        "steps": [
            {"seq": s.seq, "kind": s.kind, "label": s.label, "title": s.title, "ok": s.ok, "ms": s.ms, "turn": s.turn}
            for s in log
        ],
    }


def _summary(run: RunRow) -> dict[str, Any]:
    spent = run.spent
    usage = {"turns": spent.turns, "tokens": spent.tokens, "usd": float(spent.usd), "seconds": round(spent.seconds, 3)}
    return {
        "run_id": str(run.id),
        "thread_id": str(run.thread),
        "question": run.question,
        "graph": run.graph,
        "status": run.status,
        "stop_reason": run.stop_reason,
        "usage": usage,
        "created_at": run.created_at.isoformat(),
    }


async def _recent(database: Database, limit: int) -> list[RunRow]:
    async with database.transaction(LOCAL_TENANT) as connection:
        return await runs.latest(connection, limit)


async def find_run(database: Database, text: str) -> UUID:
    """A run by its id or by the last characters of it."""
    async with database.transaction(LOCAL_TENANT) as connection:
        found = await runs.ending_with(connection, text)
    if not found:
        raise NotFound("run", text)
    if len(found) > 1:
        raise InvalidInput("RUN", f"{text!r} fits {len(found)} runs", "Write more of its last characters.")
    return found[0]


def _dump(value: object) -> int:
    sys.stdout.write(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n")
    return 0
