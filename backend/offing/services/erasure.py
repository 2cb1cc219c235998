"""Erase a source: its bytes, its text, its passages, and every copy of its text in runs."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from offing.core.errors import Conflict, NotFound
from offing.core.run import TERMINAL_STATUSES
from offing.core.step import shorten_line
from offing.library.copy_eraser import ERASED, CopyEraser
from offing.storage import erasure as rows
from offing.storage import run_files
from offing.storage.erasure import OrphanedText, SourceContents
from offing.storage.pool import Connection, Database
from offing.storage.state_erasure import clean_thread_states


@dataclass(frozen=True, slots=True)
class ErasureResult:
    """Counts of what was erased. `steps` were cleaned of copies; the other counts are deleted rows."""

    sources: int
    snapshots: int
    passages: int
    steps: int


async def erase_source(db: Database, tenant_id: UUID, source_id: UUID) -> ErasureResult:
    """Erase a source permanently.

    Bytes and text that another source also has are kept, with the quotes from them. Raises NotFound, or
    Conflict while a run that has read the source is active.
    """
    async with db.transaction(tenant_id) as connection:
        await rows.lift_timeouts(connection)
        deleted_source = await rows.delete_source(connection, tenant_id, source_id)
        if deleted_source is None:
            raise NotFound("source", str(source_id))
        orphaned_texts = await rows.list_orphaned_texts(connection, tenant_id, deleted_source.text_ids)
        if not orphaned_texts:
            return ErasureResult(1, 0, 0, 0)
        steps = await _erase_copies(connection, tenant_id, deleted_source, orphaned_texts)
        snapshots, passages = await rows.delete_texts(connection, tenant_id, orphaned_texts)
        return ErasureResult(1, snapshots, passages, steps)


async def _erase_copies(
    connection: Connection, tenant_id: UUID, erasable: SourceContents, orphans: Sequence[OrphanedText]
) -> int:
    """Erase copies from all runs that may have them, and delete files that their code wrote.

    Returns the number of changed steps.
    """
    text_ids = [orphan.text_id for orphan in orphans]
    runs = await rows.lock_affected_runs(connection, tenant_id, text_ids)
    if any(r.retrieved_text and r.status not in TERMINAL_STATUSES for r in runs):
        raise Conflict(
            "A run that has read this source has not ended.",
            "Cancel the run or wait until it ends, then erase the source again.",
        )
    copies = await asyncio.to_thread(
        _build_eraser, erasable, orphans, await rows.list_quotes(connection, tenant_id, text_ids)
    )
    await rows.erase_quotes(connection, tenant_id, text_ids, ERASED)
    steps = 0
    for run in runs:
        steps += await rows.clean_steps(connection, run.run_id, copies.erase, copies.erase_json)
        await rows.clean_role_calls(connection, tenant_id, run.run_id, copies.erase, copies.erase_json)
        await rows.clean_reports(connection, run.run_id, copies.erase, copies.erase_json)
        await rows.clean_training_signals(connection, run.run_id, copies.erase, copies.erase_json)
        await rows.clean_intents(connection, run.run_id, copies.erase_json)
        await rows.clean_store_items(connection, tenant_id, run.run_id, copies.erase_json)
        await clean_thread_states(connection, run.run_id, copies.erase)
        if run.status in TERMINAL_STATUSES:
            await rows.clean_input_responses(connection, run.run_id, copies.erase_json)
        await run_files.delete_files(connection, tenant_id, run.run_id)
    return steps


def _build_eraser(erasable: SourceContents, orphans: Sequence[OrphanedText], quotes: Sequence[str]) -> CopyEraser:
    names = {erasable.title, erasable.name, *(orphan.title for orphan in orphans)}
    return CopyEraser(
        (orphan.text for orphan in orphans),
        text_ids=(str(orphan.text_id) for orphan in orphans),
        quotes=quotes,
        names=names | {shorten_line(name) for name in names},
    )
