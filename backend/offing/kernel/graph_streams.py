"""What an executed graph streams, through either of LangGraph's two stream interfaces."""

import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, cast

from langchain_core._api import LangChainBetaWarning
from langgraph.stream import ProtocolEvent, StreamTransformer

from offing.kernel.langgraph_invocation import Namespace

EVENTS = "events"
"""The stream mode of LangChain's events, which LangGraph's own stream does not have."""

StreamedValue = tuple[Namespace, str, Any]
"""A streamed value: the namespace of its graph, its stream mode, and the value."""


async def stream_values(runnable: Any, graph_input: Any, config: Any, **options: Any) -> AsyncGenerator[StreamedValue]:
    """Execute a graph, and return what it streams by stream modes."""
    async for *namespaces, mode, chunk in runnable.astream(graph_input, config, **options):
        yield (namespaces[0] if namespaces else ()), mode, chunk


async def stream_events(runnable: Any, graph_input: Any, config: Any, **options: Any) -> AsyncGenerator[StreamedValue]:
    """Execute a graph, and return LangChain's events of everything that runs in it, beside the stream modes."""
    root = None
    async for event in runnable.astream_events(graph_input, config, version="v2", **options):
        root = root or event["run_id"]
        yield (), EVENTS, event
        if event["event"] == "on_chain_stream" and event["run_id"] == root:
            *namespaces, mode, chunk = event["data"]["chunk"]
            yield (namespaces[0] if namespaces else ()), mode, chunk


async def stream_protocol(
    runnable: Any,
    graph_input: Any,
    config: Any,
    observe_task: Callable[[StreamedValue], Awaitable[None]],
    **options: Any,
) -> AsyncGenerator[StreamedValue]:
    """Execute a graph, and return what its v3 stream has: the stream modes, `lifecycle`, and `custom:<name>`.

    The graph's own stream transformers take part. `observe_task` gets the tasks, which LangGraph's transformers keep
    out of the stream.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LangChainBetaWarning)
        stream = await runnable.astream_events(
            graph_input, config, version="v3", transformers=[_make_tap(observe_task)], **options
        )
    async with stream:
        async for event in stream:
            params = cast(ProtocolEvent, event)["params"]
            yield tuple(params["namespace"]), event["method"], params["data"]


def _make_tap(observe_task: Callable[[StreamedValue], Awaitable[None]]) -> Callable[[tuple[str, ...]], "_Tap"]:
    return lambda scope: _Tap(scope, observe_task)


class _Tap(StreamTransformer):
    """Requests every stream mode, without a projection that another transformer could also have."""

    required_stream_modes = ("values", "updates", "messages", "custom", "checkpoints", "tasks", "tools")

    def __init__(self, scope: tuple[str, ...], observe_task: Callable[[StreamedValue], Awaitable[None]]) -> None:
        super().__init__(scope)
        self._observe_task = observe_task

    def init(self) -> dict[str, Any]:
        return {}

    async def aprocess(self, event: ProtocolEvent) -> bool:
        params = event["params"]
        if event["method"] == "tasks" and not self.scope:
            await self._observe_task((tuple(params["namespace"]), "tasks", params["data"]))
        return True
