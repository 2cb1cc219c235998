"""Erasing a source: its bytes, its text, its passages, and every copy of its words that runs have left behind."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from offing.core.errors import Conflict, NotFound
from offing.core.run import TERMINAL
from offing.core.step import shortened
from offing.library.copies import ERASED, Copies
from offing.storage import erasure as rows
from offing.storage import run_files
from offing.storage.erasure import Held, Orphan
from offing.storage.pool import Connection, Database
from offing.storage.state_erasure import clean_states


@dataclass(frozen=True, slots=True)
class Erased:
    """What went. `steps` of runs were cleaned of copies; the others count rows that are gone."""

    sources: int
    snapshots: int
    passages: int
    steps: int


async def erase_source(db: Database, tenant: UUID, source: UUID) -> Erased:
    """Erase a source for good. Bytes and text that another source holds too stay, with what was quoted from them.

    Raises NotFound, or Conflict while a run that has read the source is still going on.
    """
    async with db.transaction(tenant) as connection:
        await rows.be_patient(connection)
        held = await rows.take_source(connection, tenant, source)
        if held is None:
            raise NotFound("source", str(source))
        gone = await rows.orphans(connection, tenant, held.artefacts)
        if not gone:
            return Erased(1, 0, 0, 0)
        steps = await _take_out_copies(connection, tenant, held, gone)
        snapshots, passages = await rows.drop_texts(connection, tenant, gone)
        return Erased(1, snapshots, passages, steps)


async def _take_out_copies(connection: Connection, tenant: UUID, held: Held, gone: Sequence[Orphan]) -> int:
    """Clean all runs that may hold copies, and remove what their code wrote; how many steps changed."""
    artefacts = [orphan.artefact for orphan in gone]
    runs = await rows.touched(connection, tenant, artefacts)
    if any(r.read_it and r.status not in TERMINAL for r in runs):
        raise Conflict("A run that has read this source is still going on.", "Cancel it or wait, then erase again.")
    copies = await asyncio.to_thread(_copies, held, gone, await rows.quotes(connection, tenant, artefacts))
    await rows.erase_quotes(connection, tenant, artefacts, ERASED)
    steps = 0
    for run in runs:
        steps += await rows.clean_steps(connection, run.run, copies.out_of, copies.out_of_json)
        await rows.clean_turns(connection, tenant, run.run, copies.out_of, copies.out_of_json)
        await rows.clean_reports(connection, run.run, copies.out_of, copies.out_of_json)
        await rows.clean_intents(connection, run.run, copies.out_of_json)
        await rows.clean_items(connection, tenant, run.run, copies.out_of_json)
        await clean_states(connection, run.run, copies.out_of)
        if run.status in TERMINAL:
            await rows.clean_answers(connection, run.run, copies.out_of_json)
        await run_files.drop(connection, tenant, run.run)
    return steps


def _copies(held: Held, gone: Sequence[Orphan], quotes: Sequence[str]) -> Copies:
    names = {held.title, held.name, *(orphan.title for orphan in gone)}
    return Copies(
        (orphan.text for orphan in gone),
        artefacts=(str(orphan.artefact) for orphan in gone),
        quotes=quotes,
        names=names | {shortened(name) for name in names},
    )
