"""Upgrade a run whose graph version is no longer installed to the installed version of the graph.

Everything happens in the caller's transaction, so that a run is never between two versions.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import structlog
from langgraph.channels import DeltaChannel

from offing.core.checkpoint import StoredCheckpoint, UpgradedCheckpoint
from offing.core.errors import LeaseLostError, StateTooLargeError
from offing.core.run import FencingToken
from offing.core.step import StepDraft, StepKind, shorten_line
from offing.core.usage import UsageDelta
from offing.kernel.call_path import SUBGRAPH_SEPARATOR
from offing.kernel.channel_history import ChannelHistoryCollector
from offing.kernel.checkpointer import ANCESTORS_PAGE_SIZE, Checkpointer
from offing.kernel.execution import compile_graph
from offing.kernel.upgraded_position import GraphPosition, find_obstacle
from offing.kernel.upgraded_state import (
    extract_state,
    is_state_channel,
    list_rebuilt_channels,
    rebuild_channel,
    upgrade_checkpoint,
)
from offing.sdk import Graph, RunInfo
from offing.storage import checkpoint_upgrade, intents, steps
from offing.storage.checkpoints import PostgresCheckpointStore
from offing.storage.pool import Connection
from offing.storage.runs import RunRow
from offing.storage.state_serializer import build_serializer
from offing.telemetry.redaction import redact

UPGRADE_TITLE = "Continued with another version of its graph"

log = structlog.get_logger()


class UpgradeImpossibleError(Exception):
    """The run cannot be upgraded. The message says why."""


@dataclass(frozen=True, slots=True)
class _Upgrade:
    """A claimed run that is upgraded to another version of its graph."""

    connection: Connection
    fencing_token: FencingToken
    row: RunRow
    graph: Graph
    store: PostgresCheckpointStore

    @property
    def compiled_graph(self) -> Any:
        """The compiled graph of this version. Raises UpgradeImpossibleError."""
        try:
            return compile_graph(self.graph.build)
        except Exception as error:  # the author's code may raise anything, which must not end the run
            raise UpgradeImpossibleError(_render_error("the new version cannot be built:", error)) from error

    @property
    def run_info(self) -> RunInfo:
        row = self.row
        return RunInfo(
            row.id,
            row.question,
            (),
            row.budget,
            row.seed,
            report_style=row.report_style,
            follow_up=row.follow_up,
            interactions=row.interactions,
        )


async def upgrade_run(
    connection: Connection,
    fencing_token: FencingToken,
    lease_seconds: float,
    row: RunRow,
    graph: Graph,
    store: PostgresCheckpointStore,
) -> str:
    """Upgrade a claimed run to this version of its graph.

    Return an empty string, or the reason why it cannot be upgraded. Then nothing has changed.
    """
    if row.kind != "interactive" or row.durability != "sync":
        return "only interactive runs are upgraded"
    upgrade, stored = (
        _Upgrade(connection, fencing_token, row, graph, store),
        await store.find_checkpoint(connection, "", None),
    )
    try:
        if stored is not None and stored.run_id == row.id:
            await _rewrite_checkpoint(upgrade, stored)
        else:
            await _check_side_effects(upgrade, None)
    except (UpgradeImpossibleError, StateTooLargeError) as error:
        return str(error)
    await checkpoint_upgrade.set_graph_version(connection, fencing_token, graph.version)
    payload = {"after": "upgrade", "from": row.graph_version, "to": graph.version}
    detail = f"{row.graph_version[:12]} to {graph.version[:12]}"
    await steps.append_steps(
        connection,
        fencing_token,
        lease_seconds,
        [StepDraft(StepKind.RESUMED, UPGRADE_TITLE, payload, detail=detail)],
        UsageDelta(),
    )
    return ""


async def upgrade_thread(
    connection: Connection, fencing_token: FencingToken, row: RunRow, graph: Graph, store: PostgresCheckpointStore
) -> str:
    """Upgrade the state of a thread that another version of the graph left, for a follow-up run.

    Return an empty string if it was upgraded or needs no upgrade, or the reason why not. A graph that
    uses the SDK starts each run with its own state.
    """
    version = (
        await checkpoint_upgrade.find_previous_version(connection, fencing_token, row.graph)
        if graph.langgraph_adapter
        else None
    )
    stored = await store.find_checkpoint(connection, "", None) if version not in (None, graph.version) else None
    if stored is None or version is None:
        return ""
    try:
        new, _ = await _upgrade_stored_checkpoint(
            _Upgrade(connection, fencing_token, row, graph, store), stored, version
        )
        await checkpoint_upgrade.insert_following_checkpoint(connection, store, stored, new)
    except (UpgradeImpossibleError, StateTooLargeError) as error:
        return f"the state of its thread, from {version[:12]}, cannot be continued: {error}"
    return ""


async def _rewrite_checkpoint(upgrade: _Upgrade, stored: StoredCheckpoint) -> None:
    """Replace the last checkpoint, and remove the state of subgraphs that start again.

    Raises UpgradeImpossibleError before anything is written.
    """
    connection, fence, store, graph = upgrade.connection, upgrade.fencing_token, upgrade.store, upgrade.graph
    position = GraphPosition(
        stored, tuple(await checkpoint_upgrade.list_called_subgraphs(connection, store, fence, stored))
    )
    await _check_side_effects(upgrade, position)
    new, after = await _upgrade_stored_checkpoint(upgrade, stored, upgrade.row.graph_version)
    carried = position.without_restarted()
    await _check_position(upgrade, carried, new.checkpoint, {name: after[name] for name in new.delta_channels})
    turn = after.get(graph.turn_counter) if graph.turn_counter else None
    await checkpoint_upgrade.rewrite_checkpoint(
        connection, store, fence, stored, new, list_rebuilt_channels(stored), turn
    )
    dropped = [write.key for write in stored.writes if write not in carried.root.writes]
    await checkpoint_upgrade.delete_writes(connection, fence, stored.id, dropped)
    if again := [one.ns for one in position.subgraphs if one not in carried.subgraphs]:
        await store.delete_namespaces(connection, again)


async def _upgrade_stored_checkpoint(
    upgrade: _Upgrade, stored: StoredCheckpoint, from_version: str
) -> tuple[UpgradedCheckpoint, dict[str, Any]]:
    """Return an upgraded checkpoint and its state. Raises UpgradeImpossibleError."""
    graph, store = upgrade.graph, upgrade.store
    before = extract_state(stored, await _rebuild_channels(upgrade, stored))
    after = upgrade_state(graph, upgrade.run_info, from_version, before)
    if isinstance(after, str):
        raise UpgradeImpossibleError(after)
    next_version = Checkpointer(store, keeps_all=graph.langgraph_adapter is not None).get_next_version
    return upgrade_checkpoint(stored, before, after, store.serde, next_version), after


async def _check_side_effects(upgrade: _Upgrade, position: GraphPosition | None) -> None:
    """Check that no node with a recorded side effect runs again, because it might not request it again.

    Raises UpgradeImpossibleError. `position` is `None` if the run has no checkpoint.
    """
    superstep, finished = (position.root.superstep, position.finished_paths) if position else (-2, set[str]())
    for key, tool, _ in await intents.list_intents_since(upgrade.connection, upgrade.row.id, superstep):
        if key.path.partition(SUBGRAPH_SEPARATOR)[0] not in finished:
            raise UpgradeImpossibleError(
                f"the tool {tool!r}, which has a side effect, was called after its last checkpoint"
            )


async def _rebuild_channels(upgrade: _Upgrade, stored: StoredCheckpoint) -> dict[str, Any]:
    """Return the values of channels that are rebuilt from earlier checkpoints.

    Raises UpgradeImpossibleError.
    """
    channels = upgrade.compiled_graph.channels
    walk, above = ChannelHistoryCollector(names := list_rebuilt_channels(stored)), stored.parent_id
    for name in names:
        if not isinstance(channels.get(name), DeltaChannel):
            raise UpgradeImpossibleError(f"its state key {name!r} is a DeltaChannel, but not in the new version")
    while above is not None and walk.open_channels:
        page = await upgrade.store.list_ancestors(
            upgrade.connection, "", above, walk.open_channels, ANCESTORS_PAGE_SIZE
        )
        for one in page:
            walk.add_checkpoint(one.checkpoint, one.writes)
        above = page[-1].parent_id if page else None
    return {name: rebuild_channel(channels[name], history) for name, history in walk.build_histories().items()}


async def _check_position(
    upgrade: _Upgrade, position: GraphPosition, checkpoint: Mapping[str, Any], rebuilt_values: Mapping[str, Any]
) -> None:
    """Check that the new version can continue from the position. Raises UpgradeImpossibleError.

    `rebuilt_values` are the values of rebuilt channels.
    """
    root = {**checkpoint, "channel_values": {**checkpoint["channel_values"], **rebuilt_values}}
    moved = replace(position, root=replace(position.root, checkpoint=root))
    try:
        why = await find_obstacle(upgrade.compiled_graph, moved, upgrade.store.serde)
    except Exception as error:  # the author's classes may reject the state with any error
        why = _render_error("the new version cannot read the upgraded state:", error)
    if why:
        raise UpgradeImpossibleError(why)


def upgrade_state(graph: Graph, run: RunInfo, from_version: str, state: dict[str, Any]) -> dict[str, Any] | str:
    """Return the upgraded state of a run, or the reason why there is none."""
    assert graph.upgrade_state is not None
    try:
        serde = build_serializer(graph.langgraph_adapter.state_types if graph.langgraph_adapter else ())
        upgraded: Any = graph.upgrade_state(from_version, serde.loads_typed(serde.dumps_typed(state)))
        if upgraded is None:
            return "its upgrade function rejected the state"
        plain = serde.loads_typed(serde.dumps_typed(dict(upgraded)))
        wrong = _list_wrong_keys(graph, run, set(plain))
    except LeaseLostError:
        raise
    except Exception as error:  # as above
        log.warning("an upgrade failed", graph=graph.name, run=str(run.id), reason=redact(str(error)))
        return _render_error("its upgrade function raised", error)
    return f"its upgrade function returned wrong or missing keys: {', '.join(sorted(wrong))}" if wrong else plain


def _list_wrong_keys(graph: Graph, run: RunInfo, keys: set[str]) -> set[str]:
    """Return the keys that the upgraded state must not have, or lacks.

    An adapted LangGraph graph may leave keys out, which are then unset. Other graphs need all keys.
    """
    if graph.langgraph_adapter is None:
        return keys ^ set(graph.initial_state(run))
    return keys - {name for name in compile_graph(graph.build).channels if is_state_channel(name)}


def _render_error(what: str, error: Exception) -> str:
    return shorten_line(redact(f"{what} {type(error).__name__}: {error}"))
