"""The query for the groups that a configuration selects."""

from offing.storage.training_groups import GroupQuery
from offing_trainer.config import DataConfig


def build_group_query(data: DataConfig) -> GroupQuery:
    return GroupQuery(
        graph=data.graph or None,
        batch_ids=data.rollout_batches,
        dataset=data.dataset or None,
        split=data.split or None,
        tags=data.tags,
        since=data.since,
        roles=data.roles,
    )
