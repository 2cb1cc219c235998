"""The checkpointer of a claim over Postgres, where a worker that lost the run cannot save."""

from collections.abc import Sequence

from offing.core.run import Fence
from offing.kernel.checkpointer import Checkpointer
from offing.storage.checkpoints import PostgresCheckpoints
from offing.storage.pool import Database


class FencedSaver(Checkpointer):
    """`content` names the classes of a state that holds content. `None` means that the state is small by rule."""

    def __init__(
        self,
        database: Database,
        fence: Fence,
        *,
        turn_key: str = "",
        at_exit: bool = False,
        content: Sequence[type] | None = None,
        keep_latest: int | None = None,
    ) -> None:
        store = PostgresCheckpoints(database, fence, content)
        keep = keep_latest if content is not None else None
        super().__init__(store, turn_key=turn_key, at_exit=at_exit, keeps_all=content is not None, keep_latest=keep)
