"""How a client of LangGraph's API invokes a graph: its input, its configuration, and who sees what it streams."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from langgraph.types import Command, Send

from offing.core.langgraph_run import Breakpoints, RunArguments

Namespace = tuple[str, ...]
"""Path of a subgraph. Empty means the run's own graph."""

ChunkObserver = Callable[[Namespace, str, Any], Awaitable[None]]
"""Is called with each streamed value, its mode and the namespace of its graph."""

LIFECYCLE = "lifecycle"
"""The stream mode of the starts and ends of subgraphs, which are found in their tasks."""

LANGGRAPH_MODES = {"messages-tuple": "messages", LIFECYCLE: "tasks"}
"""LangGraph's names of stream modes, where clients use others."""


@dataclass(frozen=True, slots=True)
class GraphInvocation:
    """The invocation of a graph, beside its input."""

    modes: tuple[str, ...]
    """What is streamed, in LangGraph's words."""
    with_subgraphs: bool
    observe: ChunkObserver
    configurable: Mapping[str, Any] = field(default_factory=dict[str, Any])
    recursion_limit: int | None = None
    """`None` means the graph's own."""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    context: Mapping[str, Any] | None = None
    """The graph's runtime context. `None` means the one that it declares itself."""
    interrupt_before: Breakpoints = None
    interrupt_after: Breakpoints = None
    follows_subgraphs: bool = False
    """Whether the tasks of subgraphs are always shown, because the client wants to know when subgraphs end."""
    streams_thread: bool = False
    """Whether the graph streams with LangGraph's v3 machinery, for the thread-centric protocol. `modes` is unused."""
    pass_checkpoint: Callable[[int], None] | None = None
    """Is called with the superstep of each checkpoint after it was streamed, if the graph streams `checkpoints`."""

    def shows(self, namespace: Namespace, mode: str) -> bool:
        """Return whether a streamed value is shown."""
        if self.streams_thread:
            return True
        with_namespace = self.with_subgraphs or (self.follows_subgraphs and mode == "tasks")
        return mode in self.modes and (with_namespace or not namespace)

    def list_stream_options(self) -> dict[str, Any]:
        """Return further arguments of LangGraph's `astream`."""
        return {
            name: nodes if isinstance(nodes, str) else list(nodes)
            for name, nodes in (("interrupt_before", self.interrupt_before), ("interrupt_after", self.interrupt_after))
            if nodes is not None
        }


def build_graph_input(arguments: RunArguments) -> Any:
    """Return LangGraph's input: a command, the state's new values, or `None` to continue where the thread stopped."""
    if arguments.command is None:
        return arguments.input
    command = arguments.command
    values = {name: command[name] for name in ("resume", "update") if command.get(name) is not None}
    if isinstance(values.get("update"), list):
        values["update"] = [tuple(cast(list[Any], pair)) for pair in cast(list[Any], values["update"])]
    if command.get("goto"):
        values["goto"] = _parse_goto(command["goto"])
    return Command(**values)


def list_langgraph_modes(modes: tuple[str, ...]) -> tuple[str, ...]:
    """Return LangGraph's modes that a client's stream modes are made from, each once."""
    return tuple(dict.fromkeys(LANGGRAPH_MODES.get(mode, mode) for mode in modes))


def _parse_goto(goto: Any) -> list[Any]:
    several: list[Any] = goto if isinstance(goto, list) else [goto]  # pyright: ignore[reportUnknownVariableType]
    return [Send(one["node"], one.get("input")) if isinstance(one, Mapping) else one for one in several]  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
