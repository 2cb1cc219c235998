"""Move a run whose version of its graph is gone to the version that is here, if that says how.

Everything happens in the caller's transaction, so that a run is wholly in one version or in the other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import structlog
from langgraph.channels import DeltaChannel

from offing.core.checkpoint import StoredCheckpoint, UpgradedCheckpoint
from offing.core.errors import Fenced, StateTooLarge
from offing.core.run import Fence
from offing.core.step import StepDraft, StepKind, shortened
from offing.core.usage import UsageDelta
from offing.kernel.call_path import INNER
from offing.kernel.channel_history import ChannelWalk
from offing.kernel.checkpointer import WALK, Checkpointer
from offing.kernel.execution import compiled
from offing.kernel.upgraded_position import Position, obstacle
from offing.kernel.upgraded_state import (
    is_state,
    rebuilt,
    rebuilt_channels,
    state_of,
    upgraded_checkpoint,
)
from offing.sdk import Graph, RunView
from offing.storage import checkpoint_upgrade, intents, steps
from offing.storage.checkpoints import PostgresCheckpoints
from offing.storage.plain_state import serializer
from offing.storage.pool import Connection
from offing.storage.runs import RunRow
from offing.telemetry.redaction import redact

TITLE = "Goes on in another version of its graph"

log = structlog.get_logger()


class Obstacle(Exception):
    """The run cannot be carried over, and this says why."""


@dataclass(frozen=True, slots=True)
class _Upgrade:
    """A held run on its way to another version of its graph."""

    connection: Connection
    fence: Fence
    row: RunRow
    graph: Graph
    store: PostgresCheckpoints

    @property
    def compiled(self) -> Any:
        """This version of the graph. Raises Obstacle."""
        try:
            return compiled(self.graph.build)
        except Exception as error:  # an author's code may raise anything, and the run is not to end of it
            raise Obstacle(_in_words("the new version cannot be built:", error)) from error

    @property
    def view(self) -> RunView:
        row = self.row
        return RunView(row.id, row.question, (), row.budget, row.seed)


async def carried_over(
    connection: Connection, fence: Fence, term: float, row: RunRow, graph: Graph, store: PostgresCheckpoints
) -> str:
    """Move a held run to this version. Empty: done. Otherwise why it cannot be, and nothing has changed."""
    if row.kind != "ask" or row.durability != "sync":
        return "only runs that people asked for are carried over"
    upgrade, stored = _Upgrade(connection, fence, row, graph, store), await store.get(connection, "", None)
    try:
        if stored is not None and stored.run_id == row.id:
            await _rewrite(upgrade, stored)
        else:
            await _check_effects(upgrade, None)
    except (Obstacle, StateTooLarge) as error:
        return str(error)
    await checkpoint_upgrade.repin(connection, fence, graph.version)
    payload = {"after": "upgrade", "from": row.graph_version, "to": graph.version}
    detail = f"{row.graph_version[:12]} to {graph.version[:12]}"
    await steps.append(
        connection, fence, term, [StepDraft(StepKind.RESUMED, TITLE, payload, detail=detail)], UsageDelta()
    )
    return ""


async def thread_carried_over(
    connection: Connection, fence: Fence, row: RunRow, graph: Graph, store: PostgresCheckpoints
) -> str:
    """Upgrade the state that a follow-up continues, where another version of its graph has left it.

    Empty: done, or not needed. A graph that knows the SDK begins each run with a state of its own.
    """
    version = await checkpoint_upgrade.version_before(connection, fence, row.graph) if graph.plain else None
    stored = await store.get(connection, "", None) if version not in (None, graph.version) else None
    if stored is None or version is None:
        return ""
    try:
        new, _ = await _upgraded_checkpoint(_Upgrade(connection, fence, row, graph, store), stored, version)
        await checkpoint_upgrade.follow(connection, store, stored, new)
    except (Obstacle, StateTooLarge) as error:
        return f"the state of its thread, from {version[:12]}, cannot be continued: {error}"
    return ""


async def _rewrite(upgrade: _Upgrade, stored: StoredCheckpoint) -> None:
    """Write the last checkpoint anew, and remove what begins again. Raises Obstacle before anything is written."""
    connection, fence, store, graph = upgrade.connection, upgrade.fence, upgrade.store, upgrade.graph
    position = Position(stored, tuple(await checkpoint_upgrade.called(connection, store, fence, stored)))
    await _check_effects(upgrade, position)
    new, after = await _upgraded_checkpoint(upgrade, stored, upgrade.row.graph_version)
    carried = position.carried()
    await _check_position(upgrade, carried, new.checkpoint, {name: after[name] for name in new.delta})
    turn = after.get(graph.turn_key) if graph.turn_key else None
    await checkpoint_upgrade.rewrite(connection, store, fence, stored, new, rebuilt_channels(stored), turn)
    dropped = [write.key for write in stored.writes if write not in carried.root.writes]
    await checkpoint_upgrade.drop_writes(connection, fence, stored.id, dropped)
    if again := [one.ns for one in position.within if one not in carried.within]:
        await store.end_calls(connection, again)


async def _upgraded_checkpoint(
    upgrade: _Upgrade, stored: StoredCheckpoint, version: str
) -> tuple[UpgradedCheckpoint, dict[str, Any]]:
    """A checkpoint of another version as this one has it, and its state. Raises Obstacle."""
    graph, store = upgrade.graph, upgrade.store
    before = state_of(stored, await _rebuilt(upgrade, stored))
    after = upgraded(graph, upgrade.view, version, before)
    if isinstance(after, str):
        raise Obstacle(after)
    next_version = Checkpointer(store, keeps_all=graph.plain is not None).get_next_version
    return upgraded_checkpoint(stored, before, after, store.serde, next_version), after


async def _check_effects(upgrade: _Upgrade, position: Position | None) -> None:
    """Raise Obstacle where a node called a tool with an effect and will run again, maybe without asking for that.

    `position`: `None` means that the run has no checkpoint.
    """
    superstep, finished = (position.root.superstep, position.finished) if position else (-2, set[str]())
    for key, tool, _ in await intents.since(upgrade.connection, upgrade.row.id, superstep):
        if key.path.partition(INNER)[0] not in finished:
            raise Obstacle(f"a tool with an effect, {tool!r}, was called after its last checkpoint")


async def _rebuilt(upgrade: _Upgrade, stored: StoredCheckpoint) -> dict[str, Any]:
    """The values of channels that are rebuilt from earlier checkpoints. Raises Obstacle."""
    channels = upgrade.compiled.channels
    walk, above = ChannelWalk(names := rebuilt_channels(stored)), stored.parent
    for name in names:
        if not isinstance(channels.get(name), DeltaChannel):
            raise Obstacle(f"its state key {name!r} is a DeltaChannel, and in the new version it is none")
    while above is not None and walk.open:
        page = await upgrade.store.ancestors(upgrade.connection, "", above, walk.open, WALK)
        for one in page:
            walk.take(one.checkpoint, one.writes)
        above = page[-1].parent if page else None
    return {name: rebuilt(channels[name], history) for name, history in walk.found().items()}


async def _check_position(
    upgrade: _Upgrade, position: Position, checkpoint: Mapping[str, Any], values: Mapping[str, Any]
) -> None:
    """Raise Obstacle where the new version cannot continue from there. `values`: of channels that are rebuilt."""
    root = {**checkpoint, "channel_values": {**checkpoint["channel_values"], **values}}
    moved = replace(position, root=replace(position.root, checkpoint=root))
    try:
        why = await obstacle(upgrade.compiled, moved, upgrade.store.serde)
    except Exception as error:  # an author's classes may refuse the state in any way
        why = _in_words("it cannot read the upgraded state:", error)
    if why:
        raise Obstacle(why)


def upgraded(graph: Graph, run: RunView, version: str, state: dict[str, Any]) -> dict[str, Any] | str:
    """The state of a run of another version as this one has it, or why there is none."""
    assert graph.upgrade is not None
    try:
        serde = serializer(graph.plain.types if graph.plain else ())
        found: Any = graph.upgrade(version, serde.loads_typed(serde.dumps_typed(state)))
        if found is None:
            return "its upgrade has no use for that state"
        plain = serde.loads_typed(serde.dumps_typed(dict(found)))
        wrong = _wrong_keys(graph, run, set(plain))
    except Fenced:
        raise
    except Exception as error:  # as above
        log.warning("an upgrade failed", graph=graph.name, run=str(run.id), reason=redact(str(error)))
        return _in_words("its upgrade raised", error)
    return f"its upgrade gave other keys: {', '.join(sorted(wrong))}" if wrong else plain


def _wrong_keys(graph: Graph, run: RunView, keys: set[str]) -> set[str]:
    """A graph for LangGraph alone may leave keys out, which are then not set. Another has all of them."""
    if graph.plain is None:
        return keys ^ set(graph.start(run))
    return keys - {name for name in compiled(graph.build).channels if is_state(name)}


def _in_words(what: str, error: Exception) -> str:
    return shortened(redact(f"{what} {type(error).__name__}: {error}"))
