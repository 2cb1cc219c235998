"""Whether a run can continue from its position in another version of its graph.

Next nodes, sent branches, writes of finished branches and interrupts are kept if the new version
has their nodes and channels. A called subgraph starts again, and its calls are read back from the
journal. It is kept only if it waits for a person, because the response belongs to LangGraph's
interrupt id.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import INTERRUPT, TASKS
from langgraph.types import Send

from offing.core.checkpoint import StoredCheckpoint, TaskWrite
from offing.kernel.call_path import LEVEL_SEPARATOR, TASK_SEPARATOR
from offing.kernel.checkpointer import CALL_MARKER, Checkpointer
from offing.kernel.memory_checkpoint_store import MemoryCheckpointStore
from offing.kernel.upgraded_state import is_state_channel

BRANCH_PREFIX, JOIN_PREFIX, INTERNAL_PREFIX = "branch:to:", "join:", "__"
"""Prefixes of the names of LangGraph's own channels."""

SEND_PREFIX = "__pregel_push"
"""Prefix of the path of a task that was sent."""

FUNCTION_CALL_PREFIX = "~__pregel_push, ~"
"""Prefix of the path of a task that was called by LangGraph's functional interface."""


@dataclass(frozen=True, slots=True)
class GraphPosition:
    """The position of a run: its last checkpoint, and those of the subgraphs of its current superstep."""

    root: StoredCheckpoint
    subgraphs: tuple[StoredCheckpoint, ...] = ()

    def without_restarted(self) -> "GraphPosition":
        """Return the part of the position that another version continues."""
        asking = {write.task_id for write in self.root.writes if write.channel == INTERRUPT}
        asking -= {write.task_id for write in self.root.writes if write.idx >= 0}
        within = tuple(one for one in self.subgraphs if CALL_MARKER not in one.ns or _parse_task_id(one.ns) in asking)
        retained_writes = tuple(write for write in self.root.writes if write.idx < 0 or not _is_function_call(write))
        return GraphPosition(replace(self.root, writes=retained_writes), within)

    @property
    def finished_paths(self) -> set[str]:
        """The call paths of the nodes that have finished in this superstep."""
        return {_parse_call_path(write.task_path) for write in self.root.writes if write.idx >= 0}


async def find_obstacle(graph: Any, position: GraphPosition, serde: SerializerProtocol) -> str:
    """Return why a compiled graph cannot continue from the position. Empty means that it can."""
    if why := _find_missing(graph, position.root):
        return why
    subgraphs = dict(graph.get_subgraphs(recurse=True))
    for one in position.subgraphs:
        called = subgraphs.get(_strip_task_ids(one.ns))
        if called is None:
            return (
                f"it waits in a graph that its node {_parse_node_name(one.ns)!r} called, which the new "
                "version does not declare as a subgraph"
            )
        if why := _find_missing(called, one):
            return f"within {_strip_task_ids(one.ns).replace(LEVEL_SEPARATOR, ' > ')!r}, {why}"
    return await _find_missing_tasks(graph, position, serde)


def _find_missing(graph: Any, stored: StoredCheckpoint) -> str:
    """Describe what a checkpoint needs and the graph does not have. Empty means that nothing is missing."""
    values, nodes, channels = stored.checkpoint["channel_values"], set(graph.nodes), set(graph.channels)
    for node in sorted(_next_nodes(values) - nodes):
        return f"its next node {node!r} is not in the new version"
    for name, value in values.items():
        if name.startswith(JOIN_PREFIX) and value and name not in channels:
            return f"it has reached a join of {_describe_join(name)}, which the new version does not have"
        if stored.ns and is_state_channel(name) and name not in channels:
            return f"its state key {name!r} is not in the new version"
    return next(_list_missing_writes(stored, nodes, channels), "")


def _list_missing_writes(stored: StoredCheckpoint, nodes: set[str], channels: set[str]) -> Iterator[str]:
    for write in stored.writes:
        if write.idx < 0:
            continue
        node = _get_writing_node(stored, write)
        for missing_node in sorted(_written_nodes(write) - nodes):
            yield f"its finished node {node!r} leads to {missing_node!r}, which is not in the new version"
        if write.channel.startswith(JOIN_PREFIX) and write.channel not in channels:
            yield f"it has reached a join of {_describe_join(write.channel)}, which the new version does not have"
        if not write.channel.startswith((BRANCH_PREFIX, INTERNAL_PREFIX)) and write.channel not in channels:
            yield f"its finished node {node!r} wrote to {write.channel!r}, which is not in the new version"


def _describe_join(channel: str) -> str:
    """Describe the source nodes and the target of a join."""
    nodes, _, target = channel.removeprefix(JOIN_PREFIX).rpartition(":")
    return f"{nodes.replace('+', ', ')} for {target!r}"


def _next_nodes(values: Mapping[str, Any]) -> set[str]:
    sent: Iterable[Any] = values.get(TASKS) or ()
    return {name.removeprefix(BRANCH_PREFIX) for name in values if name.startswith(BRANCH_PREFIX)} | _send_targets(sent)


def _written_nodes(write: TaskWrite) -> set[str]:
    if write.channel == TASKS:
        return _send_targets([write.value])
    return {write.channel.removeprefix(BRANCH_PREFIX)} if write.channel.startswith(BRANCH_PREFIX) else set()


def _send_targets(values: Iterable[Any]) -> set[str]:
    return {value.node for value in values if isinstance(value, Send)}


async def _find_missing_tasks(graph: Any, position: GraphPosition, serde: SerializerProtocol) -> str:
    """Describe a finished or waiting task that the new version does not reach by the same edges.

    Empty means that there is none.
    """
    runnable = graph.copy({"checkpointer": await _build_checkpointer(position, serde)})
    for one in (position.root, *position.subgraphs):
        config = {"configurable": {"thread_id": "upgrade", "checkpoint_ns": one.ns}}
        tasks = {task.id for task in (await runnable.aget_state(config)).tasks}
        for write in one.writes:
            if write.task_id not in tasks and not _is_function_call(write) and int(write.task_id.replace("-", ""), 16):
                return f"its node {_get_writing_node(one, write)!r} is reached through other edges in the new version"
    return ""


async def _build_checkpointer(position: GraphPosition, serde: SerializerProtocol) -> Checkpointer:
    """Return a checkpointer in memory with these checkpoints as the latest."""
    store = MemoryCheckpointStore(serde, "upgrade")
    for one in (position.root, *position.subgraphs):
        checkpoint: Any = one.checkpoint
        row = store.prepare(
            one.ns, checkpoint, one.metadata, parent_id=None, turn=None, delta_channels=(), parent_writes=()
        )
        await store.put_checkpoint(None, row)
        await store.put_writes(None, one.ns, one.id, one.writes)
    return Checkpointer(store, keeps_all=True)


def _is_function_call(write: TaskWrite) -> bool:
    return write.task_path.startswith(FUNCTION_CALL_PREFIX)


def _parse_call_path(task_path: str) -> str:
    """Return the path of a task as in call keys."""
    kind, _, name = task_path.removeprefix("~").partition(", ")
    return f"{kind}/{int(name.partition(', ')[0])}/False" if _is_sent(kind, name) else f"{kind}/{name}"


def _is_sent(kind: str, name: str) -> bool:
    return kind == SEND_PREFIX and name[:1].isdecimal()


def _get_writing_node(stored: StoredCheckpoint, write: TaskWrite) -> str:
    """Return the node whose task made the write."""
    kind, name, *_ = _parse_call_path(write.task_path).split("/")
    return str(stored.checkpoint["channel_values"][TASKS][int(name)].node) if _is_sent(kind, name) else name


def _parse_task_id(ns: str) -> str:
    return ns.partition(LEVEL_SEPARATOR)[0].rpartition(TASK_SEPARATOR)[2]


def _parse_node_name(ns: str) -> str:
    return ns.partition(LEVEL_SEPARATOR)[0].partition(TASK_SEPARATOR)[0]


def _strip_task_ids(ns: str) -> str:
    """Return a namespace without task ids. Parallel subgraphs of one node keep their number."""
    return LEVEL_SEPARATOR.join(part.partition(TASK_SEPARATOR)[0] for part in ns.split(LEVEL_SEPARATOR))
