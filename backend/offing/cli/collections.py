"""`offing collections`: the collections of the document library and their documents."""

import sys
from typing import Annotated
from uuid import UUID

from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table

from offing.cli.options import Flag, Json
from offing.cli.show import run_with_database
from offing.cli.terminal import print_json, strip_control
from offing.core.errors import InvalidInput
from offing.services import collections, library
from offing.services.collections import MAX_MOVED_SOURCES, Collection, CollectionDeletion
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database

app = App(name="collections", help="Collections of the document library.")

SINGLE_FILES = "(single files)"


@app.command(name="list")
def list_collections(*, json: Json = False) -> int:
    """List the collections with the number of their documents."""
    listed = run_with_database(lambda database: collections.list_collections(database, LOCAL_TENANT))
    if json:
        return print_json([_describe(one) for one in listed])
    table = Table("collection", "documents", "state", box=None)
    for one in listed:
        table.add_row(strip_control(one.row.name) or SINGLE_FILES, str(one.row.count), _render_state(one))
    Console().print(table)
    return 0


@app.command
def documents(name: str = "", *, limit: int = 50, json: Json = False) -> int:
    """List the documents of a collection with their ids, latest first.

    Parameters
    ----------
    name
        Name of the collection. Default: single files.
    limit
        Maximum number of documents.
    """
    sources, total = run_with_database(
        lambda database: library.list_sources(database, LOCAL_TENANT, collection=name, limit=limit)
    )
    if json:
        return print_json([{"id": str(one.id), "name": one.name, "title": one.title} for one in sources])
    for one in sources:
        print(f"{one.id}  {strip_control(one.title or one.name)}")
    if total > len(sources):
        print(f"{total - len(sources)} more. Show them with --limit {total}.", file=sys.stderr)
    return 0


@app.command
def rename(name: str, new_name: str) -> int:
    """Rename a collection. Follow-ups of ended runs that were limited to it find its documents under the new name."""
    renamed = run_with_database(lambda database: collections.rename_collection(database, LOCAL_TENANT, name, new_name))
    print(f"{strip_control(name)} is now {strip_control(renamed.row.name)}, with {renamed.row.count} documents.")
    return 0


@app.command
def move(documents: Annotated[tuple[UUID, ...], Parameter(negative="")], *, to: str) -> int:
    """Move documents to a collection, which need not exist.

    Parameters
    ----------
    documents
        Ids of documents, as `offing collections documents` shows them.
    to
        Name of the collection. Empty: they become single files.
    """
    if len(documents) > MAX_MOVED_SOURCES:
        raise InvalidInput("documents", f"there are more than {MAX_MOVED_SOURCES}", "Move them in several parts.")
    moved = run_with_database(lambda database: collections.move_sources(database, LOCAL_TENANT, documents, to))
    print(f"Moved {moved} documents to {strip_control(to) or SINGLE_FILES}.")
    return 0


@app.command
def delete(name: str, *, keep_documents: Flag = False, erase_documents: Flag = False, yes: Flag = False) -> int:
    """Delete a collection. Say what happens to its documents.

    Parameters
    ----------
    name
        Name of the collection.
    keep_documents
        They become single files.
    erase_documents
        They are erased permanently, with the copies of their text in the steps of runs.
    yes
        Delete without asking.
    """
    if keep_documents == erase_documents:
        raise InvalidInput("--keep-documents", "it is not clear what happens to the documents", "Use this option, or "
                           "--erase-documents.")  # fmt: skip
    if not yes and not _confirm(name, is_erasure=erase_documents):
        print("Nothing was deleted.", file=sys.stderr)
        return 1
    kept_count, erased_count = run_with_database(lambda database: _delete(database, name, is_erasure=erase_documents))
    print(f"Deleted {strip_control(name)}: {kept_count} documents are single files now, {erased_count} were erased.")
    return 0


async def _delete(database: Database, name: str, *, is_erasure: bool) -> tuple[int, int]:
    """Delete a collection part by part. Return how many documents were kept and erased."""
    parts: list[CollectionDeletion] = []
    while not parts or parts[-1].remaining_count:
        parts.append(await collections.delete_collection(database, LOCAL_TENANT, name, is_erasure=is_erasure))
    return sum(part.kept_count for part in parts), sum(part.erased.sources for part in parts)


def _confirm(name: str, *, is_erasure: bool) -> bool:
    """Ask the person at this terminal. Raises InvalidInput without a terminal."""
    if not sys.stdin.isatty():
        raise InvalidInput("--yes", "standard input is not a terminal", "Use --yes to delete without asking.")
    what = "and erase its documents permanently" if is_erasure else "and keep its documents as single files"
    return input(f"Delete the collection {strip_control(name)} {what}? [y/N] ").strip().lower() == "y"


def _render_state(collection: Collection) -> str:
    parts = [
        (collection.row.removed_count, "missing from the folder"),
        (collection.active_run_count, "active runs are limited to it"),
    ]
    return ", ".join(f"{count} {what}" for count, what in parts if count)


def _describe(collection: Collection) -> dict[str, object]:
    row = collection.row
    return {
        "name": row.name,
        "count": row.count,
        "removed_count": row.removed_count,
        "latest_added_at": row.latest_added_at.isoformat(),
        "active_runs": collection.active_run_count,
    }
