"""A claimed run that a client of LangGraph's API made: how its graph is invoked, and what its clients see of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from offing.bus.run_streams import END_EVENT, RunStreams
from offing.core.langgraph_run import LANGGRAPH, RunArguments, explain_stop
from offing.core.report import ReportDraft
from offing.core.run import FencingToken, RunStatus, StopReason
from offing.kernel.call_path import CallPathTracker
from offing.kernel.execution import GraphProgress
from offing.kernel.graph_streams import EVENTS
from offing.kernel.langgraph_events import EventEncoder
from offing.kernel.langgraph_invocation import (
    LIFECYCLE,
    GraphInvocation,
    Namespace,
    build_graph_input,
    list_langgraph_modes,
)
from offing.kernel.langgraph_json import dump_json
from offing.kernel.thread_events import CANCELLED_MESSAGE, ThreadEventEncoder, describe_end, describe_start
from offing.langchain.report import draft_report
from offing.sdk import Graph
from offing.services.langgraph_auth import ProjectUser
from offing.storage import langgraph_runs, langgraph_threads
from offing.storage.claims import Release
from offing.storage.langgraph_runs import SentRead, StoredArguments
from offing.storage.pool import Connection
from offing.storage.runs import RunRow
from offing_workers.claim_stream import EventSink, open_claim_stream

USER_KEYS = ("langgraph_auth_user", "langgraph_auth_user_id", "langgraph_auth_permissions")
"""Keys of `configurable` that say for whom a run is executed."""

RESERVED_KEYS = frozenset({"thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map", *USER_KEYS})
"""Keys of `configurable` that the run decides."""


@dataclass(frozen=True, slots=True)
class LangGraphRun:
    """One claim of such a run."""

    tenant_id: UUID
    row: RunRow
    stored: StoredArguments
    stream: EventSink
    encoder: EventEncoder | ThreadEventEncoder

    @property
    def durability(self) -> str:
        return self.stored.arguments.durability

    def build_input(self) -> Any:
        """Return the input with which the graph begins."""
        return build_graph_input(self.stored.arguments)

    def build_invocation(self, *, has_begun: bool) -> GraphInvocation:
        arguments = self.stored.arguments
        self._send(describe_start(self.row.graph))
        limit = arguments.config.get("recursion_limit")
        return GraphInvocation(
            modes=list_langgraph_modes(arguments.stream_modes),
            with_subgraphs=arguments.stream_subgraphs,
            observe=self._observe,
            configurable=self._build_configurable(has_begun=has_begun),
            recursion_limit=None if limit is None else int(limit),
            tags=tuple(arguments.config.get("tags") or ()),
            metadata={**(arguments.config.get("metadata") or {}), **self._describe(), "run_attempt": self.row.fence},
            context=arguments.context,
            interrupt_before=arguments.interrupt_before,
            interrupt_after=arguments.interrupt_after,
            follows_subgraphs=LIFECYCLE in arguments.stream_modes,
            streams_thread=arguments.streams_thread,
            pass_checkpoint=self.stream.pass_checkpoint,
        )

    def explain_stop(self, graph: Graph, stop: StopReason, detail: str) -> str:
        """Return the error of a run that a limit or its model stopped. Empty means that its clients get none.

        A graph of the SDK ends by itself with its last turn.
        """
        ends_itself = stop is StopReason.TURN_LIMIT and graph.langgraph_adapter is None
        return "" if ends_itself else explain_stop(stop, detail)

    async def open_stream(self, paths: CallPathTracker, position: int, *, was_lost: bool) -> None:
        """Begin to send events after a checkpoint."""
        comes_later = self.stored.arguments.streams_thread or EVENTS in self.stored.arguments.stream_modes
        await self.stream.open(None if comes_later else paths, position, was_lost=was_lost)

    async def record_end(self, connection: Connection, release: Release, progress: GraphProgress) -> None:
        """Record how the run leaves its thread, in the transaction that ends it."""
        left = "interrupted" if progress.next_nodes or release.status is RunStatus.CANCELLED else "idle"
        left = "error" if release.error else left
        await langgraph_threads.set_status(connection, self.tenant_id, self.row.thread_id, left)

    async def announce_end(self, status: RunStatus, detail: str, progress: GraphProgress) -> None:
        """Send the last events of the run, after its end was stored."""
        if detail:
            kind, _, message = detail.partition(": ")
            self._send(("error", {"error": kind, "message": message or kind}))
        state, error = _find_end(status, detail, progress)
        for event in describe_end(self.row.graph, state, progress.interrupts, error):
            self._send(event)
        self._send((END_EVENT, None))
        await self.stream.end()

    def draft_state_report(self, values: Mapping[str, Any]) -> ReportDraft | None:
        """Return a report of the final state, for a graph whose state has no text as its answer."""
        return draft_report(self.row.question, dump_json(values).decode(), ()) if values else None

    async def _observe(self, namespace: Namespace, mode: str, chunk: Any) -> None:
        for event in self.encoder.encode(namespace, mode, chunk):
            self._send(event)

    def _send(self, event: tuple[str, Any]) -> None:
        self.stream.send(*event)

    def _build_configurable(self, *, has_begun: bool) -> dict[str, Any]:
        fields: Mapping[str, Any] = self.stored.arguments.config.get("configurable") or {}
        own = {name: value for name, value in fields.items() if name not in RESERVED_KEYS and name[:2] != "__"}
        checkpoint = None if has_begun else self.stored.arguments.checkpoint
        return {**own, **self._describe(), **self._describe_user(), **(checkpoint or {})}

    def _describe_user(self) -> dict[str, Any]:
        if self.stored.arguments.user is None:
            return {}
        user = ProjectUser(self.stored.arguments.user)
        return dict(zip(USER_KEYS, (user, user["identity"], list(user["permissions"])), strict=True))

    def _describe(self) -> dict[str, Any]:
        return {
            "run_id": str(self.row.id),
            "graph_id": self.row.graph,
            "assistant_id": str(self.stored.assistant_id),
        }


@dataclass(frozen=True, slots=True)
class SentLangGraphRun:
    """A read of what a client of LangGraph's API asked for, which may be waiting in a pipeline."""

    fence: FencingToken
    row: RunRow
    streams: RunStreams
    sent: SentRead[StoredArguments]

    async def read_run(self) -> LangGraphRun:
        stored = await self.sent.read()
        stream = open_claim_stream(self.streams, self.row.thread_id, self.fence)
        return LangGraphRun(self.fence.tenant_id, self.row, stored, stream, choose_encoder(stored.arguments))


async def send_load_langgraph_run(
    connection: Connection, fence: FencingToken, row: RunRow, streams: RunStreams | None
) -> SentLangGraphRun | None:
    """Read what a client of LangGraph's API asked for. `None` means that another client made the run.

    In a pipelined transaction, this does not wait. Raises RuntimeError for a run of such a client if this process has
    no streams, because it would be executed without what the client asked for.
    """
    if row.protocol != LANGGRAPH:
        return None
    if streams is None:
        raise RuntimeError(f"run {row.id} is of LangGraph's API, but this process has no streams for its clients")
    return SentLangGraphRun(fence, row, streams, await langgraph_runs.send_find_arguments(connection, row.id))


def choose_encoder(arguments: RunArguments) -> EventEncoder | ThreadEventEncoder:
    """Return what converts the streamed values of a run, by the protocol of its client."""
    if arguments.streams_thread:
        return ThreadEventEncoder()
    return EventEncoder(arguments.stream_modes, arguments.stream_subgraphs)


def _find_end(status: RunStatus, detail: str, progress: GraphProgress) -> tuple[str, str]:
    """Return how a run ended in the words of the thread-centric protocol, and its error. Empty means none."""
    if status is RunStatus.CANCELLED:
        return "failed", CANCELLED_MESSAGE
    if detail:
        return "failed", detail
    return ("interrupted" if progress.interrupts or progress.next_nodes else "completed"), ""
