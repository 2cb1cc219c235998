"""The clocks of workers decide nothing: what is newest in a run follows from the run itself."""

from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint

from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing_workers.fenced_checkpointer import FencedCheckpointer
from tests.storage.builders import claimed

AHEAD, BEHIND = str(UUID(int=2**127)), str(UUID(int=1))


async def put(saver: FencedCheckpointer, id: str, superstep: int, parent: str | None = None) -> None:
    checkpoint = empty_checkpoint()
    checkpoint["id"] = id
    config: RunnableConfig = {"configurable": {"checkpoint_ns": "", "checkpoint_id": parent}}
    await saver.aput(config, checkpoint, {"step": superstep}, {})


async def test_a_worker_whose_clock_is_behind_saves_the_newest_checkpoint(pool: Database) -> None:
    claim = await claimed(pool, LOCAL_TENANT)
    saver = FencedCheckpointer(pool, claim.fence)
    await put(saver, AHEAD, 1)
    await put(saver, BEHIND, 2, AHEAD)
    checkpoint = await FencedCheckpointer(pool, claim.fence).aget_tuple({"configurable": {}})
    assert checkpoint is not None
    assert checkpoint.checkpoint["id"] == BEHIND
    assert checkpoint.parent_config is not None
    assert checkpoint.parent_config["configurable"]["checkpoint_id"] == AHEAD  # pyright: ignore[reportTypedDictNotRequiredAccess]
