"""Stored rollouts as rows of text in the student's own tokens, for imitation.

Like `reading`, for rollouts that another engine wrote, of which no ids of the student's are known.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from offing.core.episode import Dialogue, Episode
from offing.core.rows import TrainRow
from offing.storage import stretches
from offing.storage.pool import Database
from offing_trainer.batch import Group, Sample
from offing_trainer.job.reading import Read
from offing_trainer.texts import Reader, rows_of

AT_ONCE = 64
"""Runs that one transaction reads."""


MOST_TOKENS = 4_194_304
"""Of rows that are kept: some 100 MB."""

Rows = tuple[TrainRow, ...]


@dataclass(slots=True)
class Kept:
    """Rows of text by run, for further passes over the same rollouts: making them costs more than to train them."""

    rows: dict[UUID, Rows] = field(default_factory=dict[UUID, Rows])
    tokens: int = 0

    def add(self, run: UUID, rows: Rows) -> None:
        """Unless there is no room left."""
        size = sum(len(row) for row in rows)
        if self.tokens + size <= MOST_TOKENS:
            self.rows[run], self.tokens = rows, self.tokens + size


async def with_texts(
    database: Database, tenant: UUID, found: Read, roles: Sequence[str], reader: Reader, kept: Kept
) -> Read:
    """The same, where each rollout without rows has those of its text: of these roles, of all when none is named.

    `kept`: of the same roles and reader.
    """
    bare = [sample.episode for group in found.groups for sample in group.samples if not sample.rows]
    rows = {episode.run: kept.rows[episode.run] for episode in bare if episode.run in kept.rows}
    new = [episode for episode in bare if episode.run not in rows]
    for start in range(0, len(new), AT_ONCE):
        said = await _dialogues(database, tenant, new[start : start + AT_ONCE], roles)
        made = await asyncio.to_thread(lambda: [tuple(rows_of(one, reader, roles)) for one in said])  # noqa: B023
        for one, own in zip(said, made, strict=True):
            rows[one.episode.run] = own
            kept.add(one.episode.run, own)
    return replace(found, groups=tuple(_filled(group, rows) for group in found.groups))


async def _dialogues(
    database: Database, tenant: UUID, episodes: Sequence[Episode], roles: Sequence[str]
) -> list[Dialogue]:
    runs = [episode.run for episode in episodes]
    async with database.transaction(tenant) as connection:
        heads = await stretches.heads_by_run(connection, runs)
        talks = await stretches.talks_by_run(connection, runs, roles)
    return [Dialogue(episode, heads.get(episode.run, ()), talks.get(episode.run, ())) for episode in episodes]


def _filled(group: Group, rows: Mapping[UUID, Rows]) -> Group:
    return replace(group, samples=tuple(_with_rows(sample, rows) for sample in group.samples))


def _with_rows(sample: Sample, rows: Mapping[UUID, Rows]) -> Sample:
    """Kept rows are of their run as it was then; what is known of it now goes with them."""
    own = tuple(replace(row, episode=sample.episode) for row in rows.get(sample.episode.run, ()))
    return replace(sample, rows=sample.rows or own)
