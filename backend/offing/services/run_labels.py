"""Give a run a title and tags, pin it, and archive it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from offing.core.errors import Conflict, InvalidInput, NotFound, OffingError
from offing.core.run_labels import normalize_tags, normalize_title
from offing.services.several import try_each
from offing.storage import child_runs, run_labels, run_summaries, runs
from offing.storage.pool import Connection, Database
from offing.storage.run_summaries import RunSummary
from offing.storage.runs import RunRow


class ChangePublisher(Protocol):
    """Tells pages that follow a run to read it again, best effort."""

    async def publish_change(self, tenant_id: UUID, run_id: UUID, /) -> None: ...


@dataclass(frozen=True, slots=True)
class LabelChange:
    """What to change. `None` leaves a field unchanged."""

    title: str | None = None
    """Empty means that the run has the title of its report again."""
    tags: Sequence[str] | None = None
    """All tags that the run has afterwards."""
    pinned: bool | None = None
    archived: bool | None = None
    added_tags: Sequence[str] = ()
    """Tags to add to those that the run has, or to those of `tags`."""
    removed_tags: Sequence[str] = ()


async def change_labels(
    database: Database, publisher: ChangePublisher, tenant_id: UUID, run_id: UUID, change: LabelChange
) -> RunSummary:
    """Change what a person has set on a run, and return the run.

    Raises NotFound, InvalidInput, and Conflict for a run that no person started.
    """
    title = None if change.title is None else normalize_title(change.title)
    async with database.transaction(tenant_id) as connection:
        await check_started_by_person(connection, await runs.lock_run(connection, run_id), "organized")
        if title is not None:
            await run_labels.update_title(connection, run_id, title)
        await _change_tags(connection, run_id, change)
        if change.pinned is not None:
            await run_labels.set_pinned(connection, run_id, change.pinned)
        if change.archived is not None:
            await run_labels.set_archived(connection, run_id, change.archived)
        summary = await run_summaries.get_run_summary(connection, run_id)
    await publisher.publish_change(tenant_id, run_id)
    return summary


async def change_labels_of_runs(
    database: Database, publisher: ChangePublisher, tenant_id: UUID, changes: Sequence[tuple[UUID, LabelChange]]
) -> list[RunSummary | OffingError]:
    """Change several runs, each completely or not at all. Return for each the run, or why it stays as it was.

    If the database becomes unavailable, the others are not tried: they have the error, too. The one at which it
    happened may have been changed. Raises Unavailable if it happens at the first.
    """

    async def change(one: tuple[UUID, LabelChange]) -> RunSummary:
        return await change_labels(database, publisher, tenant_id, *one)

    return [result for _, result in await try_each(changes, change, (NotFound, Conflict, InvalidInput))]


async def _change_tags(connection: Connection, run_id: UUID, change: LabelChange) -> None:
    if change.tags is None and not change.added_tags and not change.removed_tags:
        return
    stored = await run_labels.list_tags(connection, run_id) if change.tags is None else change.tags
    removed = set(normalize_tags(change.removed_tags))
    remaining = [tag for tag in normalize_tags(stored) if tag not in removed]
    await run_labels.replace_tags(connection, run_id, normalize_tags([*remaining, *change.added_tags]))


async def check_started_by_person(connection: Connection, run: RunRow, verb: str) -> None:
    """Raise Conflict for a rollout and for a child run. `verb` says what cannot be done, as in `deleted`."""
    if run.kind == "rollout":
        raise Conflict(
            f"Run {run.id} is a rollout, which cannot be {verb}.", "It belongs to its batch and to training data."
        )
    if run.kind == "child":
        parent = await child_runs.find_parent_id(connection, run.id)
        raise Conflict(f"Run {run.id} was started by run {parent} and cannot be {verb} alone.", f"Use run {parent}.")


async def list_all_tags(
    database: Database, tenant_id: UUID, after: str | None, limit: int
) -> tuple[list[str], str | None]:
    """Return a page of the tags that runs of the tenant have, in order, and the last one if there are more."""
    async with database.transaction(tenant_id) as connection:
        tags = await run_labels.list_all_tags(connection, after or "", limit + 1)
    page = tags[:limit]
    return page, page[-1] if len(tags) > limit else None
