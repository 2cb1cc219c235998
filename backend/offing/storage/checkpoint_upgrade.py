"""A run's state moved to another version of its graph: its last checkpoint written anew, and its version changed.

The only home of that rewriting. It does not know what the new state is made of.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from langgraph.checkpoint.base import Checkpoint
from langgraph.checkpoint.base.id import uuid6
from psycopg.types.json import Jsonb

from offing.core.errors import Fenced, StateTooLarge
from offing.core.run import Fence
from offing.storage.checkpoints import LIMIT, PUT
from offing.storage.fencing import OURS, ours
from offing.storage.plain_state import serializer
from offing.storage.pool import Connection

LAST = """
    select checkpoint_id, body, metadata, superstep, channels || delta from checkpoint
     where thread_id = %s and ns = '' and run_id = %s order by nth desc limit 1
"""

RECORDED = "select coalesce(max(superstep), -2) from step where run_id = %s and superstep is not null"

EFFECT = "select 1 from intent where run_id = %s and superstep > %s limit 1"

REPIN = f"update run set graph_version = %(version)s where {OURS} returning 1"

CONTROL = ("branch:", "__")
"""How names of channels begin that say where a graph stands; all others are its state."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A run's last checkpoint."""

    id: str
    checkpoint: Checkpoint
    metadata: Mapping[str, Any]
    superstep: int
    recorded: int
    """The last superstep in which anything is on record."""
    had_effect: bool
    """A tool with an effect was called after it."""
    elsewhere: tuple[str, ...] = ()
    """Channels whose values are not in the checkpoint's row: what LangGraph rebuilds from earlier ones."""

    @property
    def state(self) -> dict[str, Any]:
        values = self.checkpoint["channel_values"]
        return {name: value for name, value in values.items() if not name.startswith(CONTROL)}

    @property
    def following(self) -> set[str]:
        """The nodes that come next."""
        values = self.checkpoint["channel_values"]
        return {name.removeprefix("branch:to:") for name in values if name.startswith("branch:to:")}


async def last(connection: Connection, fence: Fence) -> Stored | None:
    """None: the run has not begun."""
    row = await (await connection.execute(LAST, (fence.thread, fence.run))).fetchone()
    if row is None:
        return None
    recorded = await (await connection.execute(RECORDED, (fence.run,))).fetchone()
    effect = await (await connection.execute(EFFECT, (fence.run, row[3]))).fetchone()
    checkpoint = serializer().loads_typed(("msgpack", row[1]))
    return Stored(
        row[0], checkpoint, row[2], row[3], recorded[0] if recorded else -2, effect is not None, tuple(row[4])
    )


async def rewrite(
    connection: Connection, fence: Fence, stored: Stored, state: Mapping[str, Any], turn: int | None
) -> None:
    """Write the state behind everything that is on record. Raises Fenced, and StateTooLarge.

    What was recorded after the checkpoint is not read back: another version may ask for other things in its place.
    """
    superstep = max(stored.superstep, stored.recorded)
    superstep += superstep > stored.superstep  # else the next superstep has keys that nothing is recorded under
    old = stored.checkpoint
    control = {name: value for name, value in old["channel_values"].items() if name.startswith(CONTROL)}
    versions = dict(old["channel_versions"])
    newest: Any = max(versions.values(), default="00000001")
    versions |= {name: newest for name in state if name not in versions}
    id = str(uuid6(clock_seq=superstep))
    body = {**old, "id": id, "channel_values": {**control, **state}, "channel_versions": versions}
    _, blob = serializer().dumps_typed(body)
    if len(blob) > LIMIT:
        raise StateTooLarge(f"The upgraded state has {len(blob)} bytes, over {LIMIT}.")
    parameters: dict[str, Any] = {
        **_guard(fence),
        "ns": "",
        "id": id,
        "parent": stored.id,
        "superstep": superstep,
        "turn": turn,
        "body": blob,
        "metadata": Jsonb({**stored.metadata, "step": superstep}, dumps=orjson.dumps),
        "channels": [],
        "versions": [],
        "delta": [],
    }
    if await (await connection.execute(PUT, parameters)).fetchone() is None:
        raise Fenced(str(fence.run), fence.number)


async def repin(connection: Connection, fence: Fence, version: str) -> None:
    """Give the run another version of its graph. Raises Fenced."""
    if await (await connection.execute(REPIN, {**_guard(fence), "version": version})).fetchone() is None:
        raise Fenced(str(fence.run), fence.number)


def _guard(fence: Fence) -> dict[str, Any]:
    return {**ours(fence), "thread": fence.thread, "tenant": fence.tenant}
