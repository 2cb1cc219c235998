"""Training rows from text, for SFT on rollouts that have no token ids.

It is like `group_loader`, for rollouts of another engine. The text is tokenized with the trained
policy's tokenizer.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from offing.core.training_rows import TrainingRow
from offing.core.trajectory_records import TextTrajectory, TrajectoryMetadata
from offing.storage import trajectory_reads
from offing.storage.pool import Database
from offing_trainer.batch import RolloutGroup, TrainingRollout
from offing_trainer.job.group_loader import LoadedGroups
from offing_trainer.text_rows import ChatTokenizer, build_text_rows

MAX_RUNS_PER_READ = 64
"""Number of runs per transaction."""


MAX_CACHED_TOKENS = 4_194_304
"""Maximum number of cached tokens, about 100 MB."""

TextRows = tuple[TrainingRow, ...]


@dataclass(slots=True)
class TextRowCache:
    """Rows of text by run, for further passes. Building them costs more than training them."""

    rows: dict[UUID, TextRows] = field(default_factory=dict[UUID, TextRows])
    token_count: int = 0

    def add(self, run_id: UUID, rows: TextRows) -> None:
        """Add rows, unless the cache is full."""
        size = sum(len(row) for row in rows)
        if self.token_count + size <= MAX_CACHED_TOKENS:
            self.rows[run_id], self.token_count = rows, self.token_count + size


async def add_text_rows(
    database: Database,
    tenant_id: UUID,
    loaded_groups: LoadedGroups,
    roles: Sequence[str],
    tokenizer: ChatTokenizer,
    cache: TextRowCache,
) -> LoadedGroups:
    """Add rows of text to each rollout without rows, for these roles. Empty `roles` means all roles.

    `cache` must belong to the same roles and tokenizer.
    """
    without_rows = [sample.metadata for group in loaded_groups.groups for sample in group.rollouts if not sample.rows]
    rows = {episode.run_id: cache.rows[episode.run_id] for episode in without_rows if episode.run_id in cache.rows}
    new = [episode for episode in without_rows if episode.run_id not in rows]
    for start in range(0, len(new), MAX_RUNS_PER_READ):
        text_trajectories = await _load_text_trajectories(
            database, tenant_id, new[start : start + MAX_RUNS_PER_READ], roles
        )
        rows_per_run = await asyncio.to_thread(
            lambda: [tuple(build_text_rows(one, tokenizer, roles)) for one in text_trajectories]  # noqa: B023
        )
        for one, own in zip(text_trajectories, rows_per_run, strict=True):
            rows[one.metadata.run_id] = own
            cache.add(one.metadata.run_id, own)
    return replace(loaded_groups, groups=tuple(_fill_group(group, rows) for group in loaded_groups.groups))


async def _load_text_trajectories(
    database: Database, tenant_id: UUID, trajectories: Sequence[TrajectoryMetadata], roles: Sequence[str]
) -> list[TextTrajectory]:
    runs = [episode.run_id for episode in trajectories]
    async with database.transaction(tenant_id) as connection:
        heads = await trajectory_reads.list_segments_by_run(connection, runs)
        talks = await trajectory_reads.list_role_calls_by_run(connection, runs, roles)
    return [
        TextTrajectory(episode, heads.get(episode.run_id, ()), talks.get(episode.run_id, ()))
        for episode in trajectories
    ]


def _fill_group(group: RolloutGroup, rows: Mapping[UUID, TextRows]) -> RolloutGroup:
    return replace(group, rollouts=tuple(_fill_rollout(sample, rows) for sample in group.rollouts))


def _fill_rollout(rollout: TrainingRollout, rows: Mapping[UUID, TextRows]) -> TrainingRollout:
    """Fill a rollout with cached rows, which get its current metadata."""
    own = tuple(replace(row, metadata=rollout.metadata) for row in rows.get(rollout.metadata.run_id, ()))
    return replace(rollout, rows=rollout.rows or own)
