"""`offing runs`, `organize` and `delete`: find runs, organize them, and delete them."""

import sys
from datetime import datetime
from typing import Any
from uuid import UUID

from rich.console import Console
from rich.table import Table

from offing.bus.live import LiveBus
from offing.cli.options import OrganizeOptions, RunListOptions
from offing.cli.show import get_run_id, run_with_database, run_with_servers, summarize_run
from offing.cli.terminal import print_json, strip_control
from offing.core.errors import InvalidInput
from offing.core.run import RunStatus
from offing.local.servers import ServerUrls
from offing.services import run_deletion, run_labels, run_lists
from offing.services.run_deletion import DeletionResult
from offing.services.run_labels import LabelChange
from offing.services.run_lists import ListForm, RunList
from offing.services.run_search import RunMatch
from offing.storage import run_summaries
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.run_filter import RunFilter
from offing.storage.run_summaries import RunSummary

MAX_PAGE_RUNS = 200


def list_runs(options: RunListOptions) -> int:
    run_filter = build_filter(options)
    listed = run_with_database(lambda database: _list_pages(database, run_filter, options))
    if options.as_json:
        print_json([_describe_run(run, listed.matches.get(run.run.id)) for run in listed.runs])
    else:
        _print_table(listed)
    if listed.unindexed_count:
        print(f"{listed.unindexed_count} runs are still to be indexed and were not searched.", file=sys.stderr)
    return 0


def build_filter(options: RunListOptions) -> RunFilter:
    """Return the filter that the options ask for. Raises InvalidInput, which names the option."""
    if options.limit < 1:
        raise InvalidInput("--limit", f"{options.limit} is out of range", "Use 1 or more.")
    if options.archived and options.all:
        raise InvalidInput("--all", "it contradicts --archived", "Use one of them.")
    return RunFilter(
        status=None if options.status is None else RunStatus(options.status),
        graph=options.graph,
        status_group=options.group,
        waiting_for_person=options.waiting,
        tag=options.tag,
        pinned=options.pinned,
        archived=None if options.all else options.archived,
        created_from=_parse_time("--since", options.since),
        created_before=_parse_time("--until", options.until),
        cites=options.cites,
    )


def _parse_time(option: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError) as error:
        raise InvalidInput(option, f"{text!r} is no date or time", "Use a date such as 2026-11-01.") from error


async def _list_pages(database: Database, run_filter: RunFilter, options: RunListOptions) -> RunList:
    """Return up to `limit` runs of as many pages as they take."""
    runs, matches, cursor = list[RunSummary](), dict[UUID, RunMatch](), None
    while True:
        room = min(MAX_PAGE_RUNS, options.limit - len(runs))
        page = await run_lists.list_runs(
            database, LOCAL_TENANT, run_filter, options.search or None, cursor, room, ListForm(options.order)
        )
        runs += page.runs
        matches |= page.matches
        cursor = page.next_cursor
        if cursor is None or len(runs) >= options.limit:
            return RunList(runs, cursor, matches, page.unindexed_count)


def _print_table(listed: RunList) -> None:
    table = Table("run", "state", "turns", "question", box=None)
    for summary in listed.runs:
        run = summary.run
        state = f"{run.status}: {run.stop_reason}" if run.stop_reason else run.status
        table.add_row(str(run.id)[-8:], state, str(run.usage.turns), _render_name(summary))
        if match := listed.matches.get(run.id):
            table.add_row("", "", "", f"[dim]{match.location}: {strip_control(match.excerpt)}[/dim]")
    Console().print(table)


def _render_name(summary: RunSummary) -> str:
    """Return the given title or the question, with marks and tags, for a line of the table."""
    labels = summary.labels
    marks = ("pinned " if labels.pinned_at else "") + ("archived " if labels.archived_at else "")
    name = strip_control((labels.title or summary.run.question)[:90])
    tags = "".join(f" #{strip_control(tag)}" for tag in labels.tags)
    return f"[bold]{marks}[/bold]{name}[dim]{tags}[/dim]" if marks or tags else name


def _describe_run(summary: RunSummary, match: RunMatch | None = None) -> dict[str, Any]:
    labels = summary.labels
    return {
        **summarize_run(summary.run),
        "title": summary.title,
        "given_title": labels.title,
        "tags": list(labels.tags),
        "pinned_at": labels.pinned_at and labels.pinned_at.isoformat(),
        "archived_at": labels.archived_at and labels.archived_at.isoformat(),
        "pending_input_requests": summary.pending_input_requests,
        "interrupted": summary.is_interrupted,
        **({"match": {"location": match.location, "excerpt": match.excerpt}} if match else {}),
    }


def organize_run(run_text: str, options: OrganizeOptions) -> int:
    change = LabelChange(
        title=options.title,
        pinned=options.pin,
        archived=options.archive,
        added_tags=options.tags,
        removed_tags=options.untag,
    )
    summary = run_with_servers(lambda database, servers: _change_labels(database, servers, run_text, change))
    if options.as_json:
        return print_json(_describe_run(summary))
    Console().print(f"{str(summary.run.id)[-8:]}  {_render_name(summary)}", soft_wrap=True)
    return 0


async def _change_labels(database: Database, servers: ServerUrls, run_text: str, change: LabelChange) -> RunSummary:
    summary = await _get_summary(database, run_text)
    if change == LabelChange():
        return summary
    bus = LiveBus(servers.redis_url)
    try:
        return await run_labels.change_labels(database, bus, LOCAL_TENANT, summary.run.id, change)
    finally:
        await bus.close()


def delete_run(run_text: str, *, with_later_runs: bool, is_confirmed: bool) -> int:
    """Delete a run after the person has confirmed it, and print what was deleted."""
    summary = run_with_database(lambda database: _get_summary(database, run_text))
    if not is_confirmed and not _confirm(summary, with_later_runs):
        print("Nothing was deleted.", file=sys.stderr)
        return 1
    _print_deletion(
        run_with_database(
            lambda database: run_deletion.delete_run(
                database, LOCAL_TENANT, summary.run.id, with_later_runs=with_later_runs
            )
        )
    )
    return 0


def _print_deletion(result: DeletionResult) -> None:
    first, *later = result.run_ids
    more = f" and {len(later)} later runs of its thread" if later else ""
    children = f", with {result.child_run_count} runs that they started" if result.child_run_count else ""
    print(f"Deleted run {first}{more}{children}.")
    if result.fork_ids:
        print(f"Its forks stay: {', '.join(map(str, result.fork_ids))}.")


async def _get_summary(database: Database, run_text: str) -> RunSummary:
    run_id = await get_run_id(database, run_text)
    async with database.transaction(LOCAL_TENANT) as connection:
        return await run_summaries.get_run_summary(connection, run_id)


def _confirm(summary: RunSummary, with_later_runs: bool) -> bool:
    """Ask the person at this terminal. Raises InvalidInput without a terminal."""
    if not sys.stdin.isatty():
        raise InvalidInput("--yes", "standard input is not a terminal", "Use --yes to delete without asking.")
    what = "this run and the later runs of its thread" if with_later_runs else "this run"
    Console().print(f"{str(summary.run.id)[-8:]}  {_render_name(summary)}", soft_wrap=True)
    return input(f"Delete {what} permanently? [y/N] ").strip().lower() == "y"
