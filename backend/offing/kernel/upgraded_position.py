"""Whether a run can continue in another version of its graph from where it stands, and what of its superstep stays.

Nodes that come next, branches that were sent, what finished branches wrote and interrupts stay, where the new version
has their nodes and channels. A subgraph that a node had called begins again, and its calls are read back from the
journal; it stays where it is only if it waits for a person, whose answer is known by LangGraph's id of the interrupt.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import INTERRUPT, TASKS
from langgraph.types import Send

from offing.core.checkpoint import StoredCheckpoint, TaskWrite
from offing.kernel.call_path import LEVEL, TASK
from offing.kernel.checkpointer import CALLED, Checkpointer
from offing.kernel.memory_checkpoints import MemoryCheckpoints
from offing.kernel.upgraded_state import is_state

BRANCH, JOIN, OWN = "branch:to:", "join:", "__"
"""How names of LangGraph's own channels begin."""

PUSHED = "__pregel_push"
"""How the path of a task begins that was sent."""

FUNCTION_CALL = "~__pregel_push, ~"
"""How the path of a task begins that a function of LangGraph's functional interface has called."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where a run stands: its last checkpoint, and those of the subgraphs that its superstep has called."""

    root: StoredCheckpoint
    within: tuple[StoredCheckpoint, ...] = ()

    def carried(self) -> "Position":
        """What of it another version takes over."""
        asking = {write.task_id for write in self.root.writes if write.channel == INTERRUPT}
        asking -= {write.task_id for write in self.root.writes if write.idx >= 0}
        within = tuple(one for one in self.within if CALLED not in one.ns or _task_of(one.ns) in asking)
        kept = tuple(write for write in self.root.writes if write.idx < 0 or not _is_function_call(write))
        return Position(replace(self.root, writes=kept), within)

    @property
    def finished(self) -> set[str]:
        """The call paths of nodes that have finished in this superstep."""
        return {_call_path(write.task_path) for write in self.root.writes if write.idx >= 0}


async def obstacle(graph: Any, position: Position, serde: SerializerProtocol) -> str:
    """Why a compiled graph cannot continue from there. Empty: it can."""
    if why := _lost(graph, position.root):
        return why
    subgraphs = dict(graph.get_subgraphs(recurse=True))
    for one in position.within:
        called = subgraphs.get(_place(one.ns))
        if called is None:
            return f"it waits in a graph that its node {_node_of(one.ns)!r} called, which the new version does not show"
        if why := _lost(called, one):
            return f"within {_place(one.ns).replace(LEVEL, ' > ')!r}, {why}"
    return await _lost_tasks(graph, position, serde)


def _lost(graph: Any, stored: StoredCheckpoint) -> str:
    """What a checkpoint needs and the graph does not have, in words. Empty: it has all of it."""
    values, nodes, channels = stored.checkpoint["channel_values"], set(graph.nodes), set(graph.channels)
    for node in sorted(_nodes_next(values) - nodes):
        return f"its next node {node!r} is not in the new version"
    for name, value in values.items():
        if name.startswith(JOIN) and value and name not in channels:
            return f"it has come to a join of {_joined(name)}, which the new version does not have"
        if stored.ns and is_state(name) and name not in channels:
            return f"its state key {name!r} is not in the new version"
    return next(_lost_writes(stored, nodes, channels), "")


def _lost_writes(stored: StoredCheckpoint, nodes: set[str], channels: set[str]) -> Iterator[str]:
    for write in stored.writes:
        if write.idx < 0:
            continue
        node = _name_of(stored, write)
        for gone in sorted(_nodes_written(write) - nodes):
            yield f"its finished node {node!r} leads to {gone!r}, which is not in the new version"
        if write.channel.startswith(JOIN) and write.channel not in channels:
            yield f"it has come to a join of {_joined(write.channel)}, which the new version does not have"
        if not write.channel.startswith((BRANCH, OWN)) and write.channel not in channels:
            yield f"its finished node {node!r} wrote to {write.channel!r}, which is not in the new version"


def _joined(channel: str) -> str:
    """The nodes of an edge that waits for several, and where it leads."""
    nodes, _, target = channel.removeprefix(JOIN).rpartition(":")
    return f"{nodes.replace('+', ', ')} for {target!r}"


def _nodes_next(values: Mapping[str, Any]) -> set[str]:
    sent: Iterable[Any] = values.get(TASKS) or ()
    return {name.removeprefix(BRANCH) for name in values if name.startswith(BRANCH)} | _sent_to(sent)


def _nodes_written(write: TaskWrite) -> set[str]:
    if write.channel == TASKS:
        return _sent_to([write.value])
    return {write.channel.removeprefix(BRANCH)} if write.channel.startswith(BRANCH) else set()


def _sent_to(values: Iterable[Any]) -> set[str]:
    return {value.node for value in values if isinstance(value, Send)}


async def _lost_tasks(graph: Any, position: Position, serde: SerializerProtocol) -> str:
    """Finished or waiting tasks that the new version does not come to by the same edges, in words. Empty: none."""
    runnable = graph.copy({"checkpointer": await _checkpointer(position, serde)})
    for one in (position.root, *position.within):
        config = {"configurable": {"thread_id": "upgrade", "checkpoint_ns": one.ns}}
        tasks = {task.id for task in (await runnable.aget_state(config)).tasks}
        for write in one.writes:
            if write.task_id not in tasks and not _is_function_call(write) and int(write.task_id.replace("-", ""), 16):
                return f"its node {_name_of(one, write)!r} is reached by other edges in the new version"
    return ""


async def _checkpointer(position: Position, serde: SerializerProtocol) -> Checkpointer:
    """A checkpointer in memory whose latest checkpoints are these."""
    store = MemoryCheckpoints(serde, "upgrade")
    for one in (position.root, *position.within):
        checkpoint: Any = one.checkpoint
        row = store.prepare(one.ns, checkpoint, one.metadata, parent=None, turn=None, delta=(), parent_writes=())
        await store.put(None, row)
        await store.put_writes(None, one.ns, one.id, one.writes)
    return Checkpointer(store, keeps_all=True)


def _is_function_call(write: TaskWrite) -> bool:
    return write.task_path.startswith(FUNCTION_CALL)


def _call_path(task_path: str) -> str:
    """The path of a task as the keys of its calls have it."""
    kind, _, name = task_path.removeprefix("~").partition(", ")
    return f"{kind}/{int(name.partition(', ')[0])}/False" if _is_sent(kind, name) else f"{kind}/{name}"


def _is_sent(kind: str, name: str) -> bool:
    return kind == PUSHED and name[:1].isdecimal()


def _name_of(stored: StoredCheckpoint, write: TaskWrite) -> str:
    """The node of the task that wrote."""
    kind, name, *_ = _call_path(write.task_path).split("/")
    return str(stored.checkpoint["channel_values"][TASKS][int(name)].node) if _is_sent(kind, name) else name


def _task_of(ns: str) -> str:
    return ns.partition(LEVEL)[0].rpartition(TASK)[2]


def _node_of(ns: str) -> str:
    return ns.partition(LEVEL)[0].partition(TASK)[0]


def _place(ns: str) -> str:
    """A namespace without the ids of tasks. One of several graphs that a node called keeps its number."""
    return LEVEL.join(part.partition(TASK)[0] for part in ns.split(LEVEL))
