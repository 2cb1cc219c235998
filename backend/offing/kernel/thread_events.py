"""Events of the thread-centric protocol, made from what a graph streams with LangGraph's v3 machinery.

A stream keeps them beside the events that both protocols share. Their names begin with `THREAD_EVENT`, so that clients
of the older protocol do not get them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from langchain_core.language_models._compat_bridge import message_to_events
from langchain_core.messages import BaseMessage
from langgraph.types import Interrupt

from offing.kernel.langgraph_events import encode_values, list_graph_interrupts, suffix_namespace
from offing.kernel.langgraph_invocation import Namespace

THREAD_EVENT = "thread:"
"""Begins the names of the events that only clients of the thread-centric protocol get."""

LIFECYCLE = f"{THREAD_EVENT}lifecycle"

INPUT_REQUESTED = f"{THREAD_EVENT}input.requested"

MESSAGES = f"{THREAD_EVENT}messages"

CUSTOM = "custom:"
"""Begins LangGraph's names of the channels that a graph's own transformers write."""

SHARED_MODES = ("values", "updates", "tasks", "checkpoints", "custom", "tools")
"""Stream modes whose events both protocols show."""

CANCELLED_MESSAGE = "The run was cancelled."
"""The error of a cancelled run. The protocol has no state for it."""

ENDS = frozenset({"completed", "failed", "interrupted"})
"""States in which a run has ended."""


@dataclass(slots=True)
class ThreadEventEncoder:
    """Converts the streamed values of one claim to events of the thread-centric protocol."""

    _open_messages: dict[str, Any] = field(default_factory=dict[str, Any])
    """The ids of the messages that are being written, by the model call."""

    def encode(self, namespace: Namespace, mode: str, chunk: Any) -> Iterator[tuple[str, Any]]:
        """Return the events of a streamed value: names and data that are not JSON yet."""
        if mode == "messages":
            payload, metadata = chunk
            yield from self._encode_message(namespace, payload, metadata or {})
        elif mode == "lifecycle":
            named = dict(chunk)
            yield f"{LIFECYCLE}{suffix_namespace(named.pop('namespace', namespace))}", named
        elif mode.startswith(CUSTOM):
            yield f"{THREAD_EVENT}{mode}{suffix_namespace(namespace)}", chunk
        elif mode in SHARED_MODES:
            yield from encode_values(namespace, mode, chunk)

    def _encode_message(
        self, namespace: Namespace, payload: Any, metadata: Mapping[str, Any]
    ) -> Iterator[tuple[str, Any]]:
        """Return the events of a message that a model writes.

        A whole message that a node returned without a model is not among them: it is in the values.
        """
        call = str(metadata.get("run_id", ""))
        if isinstance(payload, BaseMessage):
            events: Sequence[Any] = (
                list(message_to_events(payload, message_id=payload.id)) if "ls_model_type" in metadata else []
            )
            call = call or str(payload.id)
        else:
            events = [payload]
        for event in events:
            data = dict(cast(Mapping[str, Any], event))
            if data.get("event") == "message-start":
                self._open_messages[call] = data.get("id") or data.get("message_id")
            named = {"message_id": self._open_messages.get(call), "run_id": call, **data}
            if data.get("event") in ("message-finish", "error"):
                self._open_messages.pop(call, None)
            yield f"{MESSAGES}{suffix_namespace(namespace)}", {"node": metadata.get("langgraph_node"), "data": named}


def describe_start(graph: str) -> tuple[str, Any]:
    """Return the event that tells that a worker executes the graph."""
    return LIFECYCLE, {"event": "running", "graph_name": graph}


def describe_end(graph: str, state: str, interrupts: Sequence[Interrupt[Any]], error: str) -> Iterator[tuple[str, Any]]:
    """Return the last events of a run: what it asks for, and how it ended. An empty `error` means none."""
    for one in list_graph_interrupts(interrupts):
        yield INPUT_REQUESTED, {"interrupt_id": one.id, "value": one.value, "payload": one.value}
    yield LIFECYCLE, {"event": state, "graph_name": graph, **({"error": error} if error else {})}
