"""Loading of stored groups: the training rows of a step's rollouts, and their statistics.

It uses short transactions and holds one step in memory at a time.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import UUID

from offing.core.errors import InvalidInput, NotFound
from offing.core.packed_segment import PackedSegment
from offing.core.scoring import accepted_answers
from offing.core.training_rows import TrainingRow, build_all_rows
from offing.core.trajectory_records import TrajectoryMetadata
from offing.storage import tasks as task_rows
from offing.storage import training_groups, trajectories, trajectory_reads
from offing.storage.pool import Database
from offing.storage.training_groups import GroupSummary, RolloutStats
from offing_trainer.batch import RolloutGroup, TrainingRollout


@dataclass(frozen=True, slots=True)
class LoadedGroups:
    """A step's groups with their tokens."""

    groups: tuple[RolloutGroup, ...]
    rollout_stats: Mapping[UUID, RolloutStats]
    turns_without_token_ids: int
    """Number of turns of which only the text is known."""
    replay_candidates: Mapping[str, TrainingRollout] = field(default_factory=dict[str, TrainingRollout])
    """See `GroupSelectorInput.replay_candidates`."""
    reference_answers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Reference answer by task, if the pipeline needs its probability."""

    @property
    def tokenizer_counts(self) -> Counter[str]:
        """Return the number of rows by tokenizer hash."""
        return Counter(
            row.tokenizer_sha256 for group in self.groups for sample in group.rollouts for row in sample.rows
        )


async def load_groups(
    database: Database,
    tenant_id: UUID,
    summaries: Sequence[GroupSummary],
    roles: Sequence[str],
    *,
    include_quarantined: bool = False,
) -> LoadedGroups:
    """Load groups with the rows of these roles. Empty `roles` means all roles.

    A rollout without rows is still part of its group.
    """
    episodes = await _load_trajectories(database, tenant_id, summaries)
    rows, without = await _load_rows(database, tenant_id, episodes, roles, include_quarantined)
    async with database.transaction(tenant_id) as connection:
        facts = await training_groups.get_rollout_stats(connection, list(episodes))
    return LoadedGroups(tuple(_build_group(head, episodes, rows) for head in summaries), facts, without)


async def load_rollouts(
    database: Database,
    tenant_id: UUID,
    run_ids: Sequence[UUID],
    roles: Sequence[str],
    *,
    include_quarantined: bool = False,
) -> dict[str, TrainingRollout]:
    """Load single rollouts with the rows of these roles, by run id. Deleted runs are missing."""
    episodes: dict[UUID, TrajectoryMetadata] = {}
    for run in run_ids:
        async with database.transaction(tenant_id) as connection:
            with suppress(NotFound):
                episodes[run] = await trajectories.get_trajectory_metadata(connection, run)
    rows, _ = await _load_rows(database, tenant_id, episodes, roles, include_quarantined)
    return {str(run): TrainingRollout(episode, tuple(rows.get(run, ()))) for run, episode in episodes.items()}


async def load_reference_answers(database: Database, tenant_id: UUID, task_ids: Collection[UUID]) -> dict[str, str]:
    """Load the reference answer of each task, the first one if several are accepted.

    For a task that has no answer, it is the text that states this. Raises InvalidInput for tasks without a
    reference.
    """
    async with database.transaction(tenant_id) as connection:
        known = await task_rows.get_accepted_answers(connection, list(task_ids))
    if missing := sorted(set(task_ids) - known.keys()):
        problem = f"{len(missing)} of {len(task_ids)} tasks have no reference answer, such as task {missing[0]}"
        raise InvalidInput(
            "data", f"{problem}, but the pipeline computes its likelihood", "Use other tasks or another reward."
        )
    return {str(task): accepted_answers(answers)[0] for task, answers in known.items()}


async def _load_trajectories(
    database: Database, tenant_id: UUID, summaries: Sequence[GroupSummary]
) -> dict[UUID, TrajectoryMetadata]:
    """Load the metadata of the groups' usable rollouts. Deleted runs are missing."""
    usable_runs = {m.run_id for head in summaries for m in head.final_members}
    async with database.transaction(tenant_id) as connection:
        group_rollouts = await trajectories.list_group_rollouts(connection, [head.id for head in summaries])
    return {episode.run_id: episode for episode in group_rollouts if episode.run_id in usable_runs}


async def _load_rows(
    database: Database,
    tenant_id: UUID,
    trajectories_by_run: Mapping[UUID, TrajectoryMetadata],
    roles: Sequence[str],
    include_quarantined: bool,
) -> tuple[dict[UUID, list[TrainingRow]], int]:
    async with database.transaction(tenant_id) as connection:
        batches, without = await trajectories.split_segments(connection, list(trajectories_by_run), roles)
    rows: dict[UUID, list[TrainingRow]] = {}
    for batch in batches:
        async with database.transaction(tenant_id) as connection:
            segments = await trajectory_reads.read_packed_segments(connection, batch)
        for (run, _), built_rows in zip(
            segments, _build_rows(segments, trajectories_by_run, include_quarantined), strict=True
        ):
            rows.setdefault(run, []).extend(built_rows)
    return rows, without


def _build_rows(
    segments: Sequence[tuple[UUID, PackedSegment]],
    trajectories_by_run: Mapping[UUID, TrajectoryMetadata],
    include_quarantined: bool,
) -> list[list[TrainingRow]]:
    return build_all_rows(
        [(trajectories_by_run[run], segment) for run, segment in segments], include_quarantined=include_quarantined
    )


def _build_group(
    summary: GroupSummary,
    trajectories_by_run: Mapping[UUID, TrajectoryMetadata],
    rows: Mapping[UUID, Sequence[TrainingRow]],
) -> RolloutGroup:
    runs = [m.run_id for m in summary.final_members if m.run_id in trajectories_by_run]
    samples = tuple(TrainingRollout(trajectories_by_run[run], tuple(rows.get(run, ()))) for run in runs)
    return RolloutGroup(str(summary.id), str(summary.task_id), samples)
