"""Stored groups as samples: the rows of a step's rollouts and what each cost. Reads in short transactions.

The only home of how a group's tokens come from the store to the estimators. Holds one step at a time.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import UUID

from offing.core.episode import Episode
from offing.core.errors import InvalidInput, NotFound
from offing.core.packed import PackedSegment
from offing.core.rows import TrainRow, merged_all
from offing.core.scoring import accepted
from offing.storage import stretches, training_groups, trajectories
from offing.storage import tasks as task_rows
from offing.storage.pool import Database
from offing.storage.training_groups import GroupHead, RunFacts
from offing_trainer.batch import Group, Sample


@dataclass(frozen=True, slots=True)
class Read:
    """A step's groups with their tokens."""

    groups: tuple[Group, ...]
    facts: Mapping[UUID, RunFacts]
    without_ids: int
    """Turns of which only the text is known."""
    earlier: Mapping[str, Sample] = field(default_factory=dict[str, Sample])
    """See `seam.GroupsGiven.earlier`."""
    answers: Mapping[str, str] = field(default_factory=dict[str, str])
    """By task: the reference answer, where the chain asks how likely it is."""

    @property
    def tokenizers(self) -> Counter[str]:
        """Rows by their tokenizer's hash."""
        return Counter(row.tokenizer_sha256 for group in self.groups for sample in group.samples for row in sample.rows)


async def read(
    database: Database, tenant: UUID, heads: Sequence[GroupHead], roles: Sequence[str], *, quarantined: bool = False
) -> Read:
    """The rows of these roles; of all of them when none is named. A rollout without any is a sample without rows."""
    episodes = await _episodes(database, tenant, heads)
    rows, without = await _rows(database, tenant, episodes, roles, quarantined)
    async with database.transaction(tenant) as connection:
        facts = await training_groups.facts(connection, list(episodes))
    return Read(tuple(_group(head, episodes, rows) for head in heads), facts, without)


async def read_earlier(
    database: Database, tenant: UUID, runs: Sequence[UUID], roles: Sequence[str], *, quarantined: bool = False
) -> dict[str, Sample]:
    """Single rollouts with the rows of these roles, by run id; those that were erased meanwhile are not there."""
    episodes: dict[UUID, Episode] = {}
    for run in runs:
        async with database.transaction(tenant) as connection:
            with suppress(NotFound):
                episodes[run] = await trajectories.episode(connection, run)
    rows, _ = await _rows(database, tenant, episodes, roles, quarantined)
    return {str(run): Sample(episode, tuple(rows.get(run, ()))) for run, episode in episodes.items()}


async def read_answers(database: Database, tenant: UUID, tasks: Collection[UUID]) -> dict[str, str]:
    """The reference answer of each task, the first where several are accepted; of one that cannot be answered, the
    words that say so. Raises InvalidInput for tasks without a reference.
    """
    async with database.transaction(tenant) as connection:
        known = await task_rows.answers(connection, list(tasks))
    if missing := sorted(set(tasks) - known.keys()):
        told = f"{len(missing)} of {len(tasks)} tasks have no reference answer, such as task {missing[0]}"
        raise InvalidInput("data", f"{told}, and the chain asks how likely it is", "Choose other tasks, or a reward.")
    return {str(task): accepted(answers)[0] for task, answers in known.items()}


async def _episodes(database: Database, tenant: UUID, heads: Sequence[GroupHead]) -> dict[UUID, Episode]:
    """What is known of the rollouts that groups stand for. Those that were erased meanwhile are not there."""
    standing = {m.run for head in heads for m in head.standing}
    async with database.transaction(tenant) as connection:
        found = await trajectories.of_groups(connection, [head.id for head in heads])
    return {episode.run: episode for episode in found if episode.run in standing}


async def _rows(
    database: Database, tenant: UUID, episodes: Mapping[UUID, Episode], roles: Sequence[str], quarantined: bool
) -> tuple[dict[UUID, list[TrainRow]], int]:
    async with database.transaction(tenant) as connection:
        batches, without = await trajectories.batches(connection, list(episodes), roles)
    rows: dict[UUID, list[TrainRow]] = {}
    for batch in batches:
        async with database.transaction(tenant) as connection:
            segments = await stretches.segments(connection, batch)
        for (run, _), made in zip(segments, _merged(segments, episodes, quarantined), strict=True):
            rows.setdefault(run, []).extend(made)
    return rows, without


def _merged(
    segments: Sequence[tuple[UUID, PackedSegment]], episodes: Mapping[UUID, Episode], quarantined: bool
) -> list[list[TrainRow]]:
    return merged_all([(episodes[run], segment) for run, segment in segments], quarantined=quarantined)


def _group(head: GroupHead, episodes: Mapping[UUID, Episode], rows: Mapping[UUID, Sequence[TrainRow]]) -> Group:
    runs = [m.run for m in head.standing if m.run in episodes]
    samples = tuple(Sample(episodes[run], tuple(rows.get(run, ()))) for run in runs)
    return Group(str(head.id), str(head.task), samples)
