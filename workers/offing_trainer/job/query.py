"""A configuration's choice of data as a query of the store."""

from offing.storage.training_groups import GroupQuery
from offing_trainer.config import DataConfig


def groups_wanted(data: DataConfig) -> GroupQuery:
    return GroupQuery(
        graph=data.graph or None,
        batches=data.batches,
        dataset=data.dataset or None,
        split=data.split or None,
        tags=data.tags,
        since=data.since,
        roles=data.roles,
    )
