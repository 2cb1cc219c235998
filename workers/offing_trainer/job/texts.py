"""Stored groups as samples whose rows are text in the student's own tokens, for imitation.

Like `reading`, for rollouts that another engine wrote, of which no ids of the student's are known.
"""

import asyncio
from collections.abc import Sequence
from uuid import UUID

from offing.core.episode import Dialogue, Episode
from offing.core.rows import TrainRow
from offing.storage import stretches, training_groups
from offing.storage.pool import Database
from offing.storage.training_groups import GroupHead
from offing_trainer.batch import Group, Sample
from offing_trainer.job.reading import Read, episodes_of
from offing_trainer.texts import Reader, rows_of

AT_ONCE = 64
"""Runs that one transaction reads."""


async def read_texts(
    database: Database, tenant: UUID, heads: Sequence[GroupHead], roles: Sequence[str], reader: Reader
) -> Read:
    """The rows of these roles; of all of them when none is named. A rollout without any is a sample without rows."""
    episodes: dict[UUID, Episode] = {}
    for head in heads:
        episodes |= await episodes_of(database, tenant, head)
    rows: dict[UUID, list[TrainRow]] = {}
    runs = list(episodes)
    for start in range(0, len(runs), AT_ONCE):
        found = await _dialogues(database, tenant, [episodes[run] for run in runs[start : start + AT_ONCE]], roles)
        made = await asyncio.to_thread(lambda: [rows_of(dialogue, reader, roles) for dialogue in found])  # noqa: B023
        rows |= {dialogue.episode.run: made_rows for dialogue, made_rows in zip(found, made, strict=True)}
    async with database.transaction(tenant) as connection:
        facts = await training_groups.facts(connection, runs)
    return Read(tuple(_group(head, episodes, rows) for head in heads), facts, 0)


async def _dialogues(
    database: Database, tenant: UUID, episodes: Sequence[Episode], roles: Sequence[str]
) -> list[Dialogue]:
    async with database.transaction(tenant) as connection:
        return [
            Dialogue(
                episode,
                await stretches.heads(connection, episode.run),
                await stretches.talks(connection, episode.run, roles),
            )
            for episode in episodes
        ]


def _group(head: GroupHead, episodes: dict[UUID, Episode], rows: dict[UUID, list[TrainRow]]) -> Group:
    runs = [m.run for m in head.standing if m.run in episodes]
    return Group(str(head.id), str(head.task), tuple(Sample(episodes[run], tuple(rows[run])) for run in runs))
