"""Events for LangGraph's clients, made from what a graph streams."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from langchain_core.messages import AIMessageChunk, BaseMessage, BaseMessageChunk, message_chunk_to_message
from langgraph.types import Interrupt

from offing.kernel.checkpointer import TRANSIENT_INTERRUPT_ID
from offing.kernel.langgraph_invocation import LIFECYCLE, Namespace
from offing.kernel.subgraph_course import SubgraphTracker

INTERRUPT_KEY = "__interrupt__"


@dataclass(slots=True)
class EventEncoder:
    """Converts the streamed values of one claim to events, by the modes that the client chose."""

    modes: tuple[str, ...]
    """In the words of the clients."""
    with_subgraphs: bool = False
    """Whether the client gets what subgraphs stream. It always gets their starts and ends."""
    _subgraphs: SubgraphTracker = field(default_factory=SubgraphTracker)
    _messages: dict[str, Any] = field(default_factory=dict[str, Any])
    """The messages that are being written, by id."""

    def encode(self, namespace: Namespace, mode: str, chunk: Any) -> Iterator[tuple[str, Any]]:
        """Return the events of a streamed value: names and data that are not JSON yet."""
        if mode == "tasks" and LIFECYCLE in self.modes:
            for subgraph, data in self._subgraphs.track(namespace, chunk):
                yield f"{LIFECYCLE}{suffix_namespace(subgraph)}", data
            if "tasks" not in self.modes or (namespace and not self.with_subgraphs):
                return
        if mode == "messages":
            yield from self._encode_message(suffix_namespace(namespace), *chunk)
        else:
            yield from encode_values(namespace, mode, chunk)

    def _encode_message(
        self, suffix: str, message: BaseMessage, metadata: Mapping[str, Any]
    ) -> Iterator[tuple[str, Any]]:
        if "messages-tuple" in self.modes:
            yield f"messages{suffix}", [message, metadata]
        if "messages" not in self.modes:
            return
        name = str(message.id)
        if name in self._messages and isinstance(message, AIMessageChunk):
            self._messages[name] = self._messages[name] + message
        else:
            self._messages[name] = message
            yield f"messages/metadata{suffix}", {name: {"metadata": metadata}}
        whole, is_chunk = self._messages[name], isinstance(message, BaseMessageChunk)
        yield (
            f"messages/{'partial' if is_chunk else 'complete'}{suffix}",
            [message_chunk_to_message(whole) if is_chunk else whole],
        )


def suffix_namespace(namespace: Sequence[str]) -> str:
    """Return what the name of an event ends with for a subgraph. Empty means the run's own graph."""
    return "".join(f"|{name}" for name in namespace)


def encode_values(namespace: Namespace, mode: str, chunk: Any) -> Iterator[tuple[str, Any]]:
    """Return the event of a streamed value, or none if it only says what the run itself waits for."""
    if (data := _without_transient_interrupts(chunk)) is not None:
        yield f"{mode}{suffix_namespace(namespace)}", data


def list_graph_interrupts(interrupts: Sequence[Interrupt[Any]]) -> list[Interrupt[Any]]:
    """Return the interrupts that the graph raised itself, without those for which the run itself waits."""
    return [one for one in interrupts if one.id != TRANSIENT_INTERRUPT_ID]


def _without_transient_interrupts(chunk: Any) -> Any:
    """Return a streamed value without interrupts for which the run itself waits. `None` means that nothing is left."""
    if not isinstance(chunk, dict) or INTERRUPT_KEY not in chunk:
        return chunk  # pyright: ignore[reportUnknownVariableType]
    values = cast(dict[str, Any], chunk)
    raised: list[Interrupt] = list(values[INTERRUPT_KEY] or ())
    visible = list_graph_interrupts(raised)
    if raised and not visible:
        return None
    return {**values, INTERRUPT_KEY: visible}
