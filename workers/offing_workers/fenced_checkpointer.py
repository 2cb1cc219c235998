"""The Postgres checkpointer of a claim. After its lease is lost, a worker cannot save."""

from collections.abc import Sequence

from offing.core.run import FencingToken
from offing.kernel.checkpointer import Checkpointer
from offing.storage.checkpoints import PostgresCheckpointStore
from offing.storage.pool import Database


class FencedCheckpointer(Checkpointer):
    """The checkpointer of one claim, over Postgres.

    `content_types` names the classes of a state that holds content. `None` means that the state is
    always small.
    """

    def __init__(
        self,
        database: Database,
        fencing_token: FencingToken,
        *,
        turn_key: str = "",
        writes_at_exit: bool = False,
        content_types: Sequence[type] | None = None,
        keep_latest: int | None = None,
    ) -> None:
        store = PostgresCheckpointStore(database, fencing_token, content_types)
        keep = keep_latest if content_types is not None else None
        super().__init__(
            store,
            turn_key=turn_key,
            writes_at_exit=writes_at_exit,
            keeps_all=content_types is not None,
            keep_latest=keep,
        )
