"""Recording of calls to a graph's own tools, so that their results are returned after a crash.

A graph calls its tools with `BaseTool.run` and `arun`. Both are wrapped once per process, and the
wrappers do nothing outside a run. A call consists of the tool's name and the arguments from the
model. State, store and runtime, which LangGraph injects, are not part of it. The run's context
provides the journal.
"""

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, wraps
from typing import Any, Protocol, cast, runtime_checkable

from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tools import BaseTool, ToolException
from langgraph.errors import GraphBubbleUp, GraphInterrupt

from offing.core.errors import InvalidInput, OffingError
from offing.core.step import shorten_line
from offing.core.tool import SideEffect, ToolStatus
from offing.langchain.tool_values import UnsupportedValueError, decode_value, encode_value
from offing.sdk.current_run import get_current_run, is_on_run_loop, run_blocking

MAX_RESULT_CHARS = 1_000_000
"""Maximum number of characters of a result as JSON.

A longer result is recorded without its content, and the tool runs again after a crash.
"""


@dataclass(frozen=True, slots=True)
class GraphToolCall:
    """A call of a graph's own tool, as a model makes it."""

    tool: str
    args: dict[str, Any]
    side_effect: SideEffect = SideEffect.PURE
    """Declared by the author of the tool if it is not pure, see `get_side_effect`."""


@dataclass(frozen=True, slots=True)
class GraphToolResult:
    """Result of a call of a graph's own tool."""

    result: Any = None
    """Result as JSON, see `tool_values`."""
    is_stored: bool = True
    """`False` means that the result cannot be stored."""
    error: str = ""
    """Reason why the call failed or was not made. Empty means success.

    The failure of a pure call is recorded for people only; the call is repeated after a crash.
    """
    text: str = ""
    """Text in the timeline."""
    seconds: float = 0.0
    status: ToolStatus = ToolStatus.OK


class ToolJournal(Protocol):
    """Journal of the calls of a graph's own tools.

    The node that makes a call uses it on the run's event loop.
    """

    def begin_tool(self, call: GraphToolCall) -> Any:
        """Assign the call its key among the calls of its node.

        Equal calls are numbered in the order in which they begin.
        """
        ...

    def find_recorded_tool(self, begun_call: Any) -> GraphToolResult | None:
        """Return the recorded result of the call. `None` means that there is none."""
        ...

    async def approve_tool(self, begun_call: Any, call: GraphToolCall) -> tuple[Any, str]:
        """Decide whether the call may be made, and record its intent.

        Returns the call key and the reason why the call is denied; an empty reason means that it is
        allowed. May raise an exception that suspends the run until a person has decided.
        """
        ...

    async def record_tool(self, begun_call: Any, call: GraphToolCall, result: GraphToolResult) -> None:
        """Record the result of the call. A failure releases its key, so that a retry uses the same one."""
        ...

    def open_tool_scope(self, begun_call: Any) -> AbstractContextManager[None]:
        """Open the scope of the tool's work.

        Calls within it are not repeated once the tool's result is recorded.
        """
        ...

    def skip_nested_calls(self, begun_call: Any) -> None:
        """Note that the recorded result is returned without running the tool."""
        ...

    def abandon_tool(self, begun_call: Any) -> None:
        """Release the call without a record: it raised an input request or was cancelled."""
        ...


@runtime_checkable
class SupportsGraphTools(Protocol):
    """A run context that provides a tool journal."""

    @property
    def tool_journal(self) -> ToolJournal: ...


_recording: ContextVar[bool] = ContextVar("offing_tools_watched", default=False)


@contextmanager
def record_graph_tools() -> Generator[None]:
    """Record calls of the graph's own tools while the context is open."""
    _install_wrappers()
    token = _recording.set(True)
    try:
        yield
    finally:
        _recording.reset(token)


class ExecutorTool:
    """Marker for a tool that already goes through the run's tool executor."""


def build_graph_tool_call(tool: BaseTool, tool_input: str | Mapping[str, Any]) -> GraphToolCall:
    """Build the call from the tool's input, without injected values.

    Arguments that are not JSON become text.
    """
    args = {"input": tool_input} if isinstance(tool_input, str) else tool._filter_injected_args(dict(tool_input))  # pyright: ignore[reportPrivateUsage]
    return GraphToolCall(tool.name, {name: _to_json(value) for name, value in args.items()}, get_side_effect(tool))


def get_side_effect(tool: BaseTool) -> SideEffect:
    """Return the side effect that the tool declares in its `metadata`.

    The declaration is `{"effect": "at_most_once"}` or the annotations of an MCP tool. The default is
    pure. Raises InvalidInput for an unknown value.
    """
    declared = tool.metadata or {}
    if "effect" in declared:
        if (named := declared["effect"]) not in set(SideEffect):
            remedy = f"Use one of: {', '.join(SideEffect)}."
            raise InvalidInput(f"{tool.name}.metadata.effect", f"{named!r} is not a valid side effect", remedy)
        return SideEffect(named)
    if declared.get("destructiveHint") is not True and declared.get("readOnlyHint") is not False:
        return SideEffect.PURE
    return SideEffect.IDEMPOTENT if declared.get("idempotentHint") is True else SideEffect.AT_MOST_ONCE


def extract_state(tool_input: str | Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of the graph's state that LangGraph injected into the tool."""
    injected: dict[str, Any] = {}
    for name, value in () if isinstance(tool_input, str) else tool_input.items():
        state: Any = getattr(value, "state", value)
        if isinstance(state, list) and any(isinstance(one, BaseMessage) for one in cast(list[Any], state)):
            injected[f"@{name}"] = state
        if isinstance(state, Mapping) and (value is not state or "messages" in state):
            injected |= cast(Mapping[str, Any], state)
    return injected


def build_graph_tool_result(result: Any, state: Mapping[str, Any], seconds: float) -> GraphToolResult:
    """Build the result in its stored form."""
    try:
        stored = encode_value(result, state)
    except UnsupportedValueError as problem:
        return GraphToolResult(is_stored=False, text=f"{_summarize_result(result)} ({problem})", seconds=seconds)
    if len(str(stored)) > MAX_RESULT_CHARS:
        return GraphToolResult(is_stored=False, text=_summarize_result(result), seconds=seconds)
    return GraphToolResult(stored, text=_summarize_result(result), seconds=seconds)


@cache
def _install_wrappers() -> None:
    run, arun = BaseTool.run, BaseTool.arun

    @wraps(run)
    def watched_run(tool: BaseTool, tool_input: Any, *more: Any, **named: Any) -> Any:
        journal = _find_journal(tool)
        if journal is None:
            return run(tool, tool_input, *more, **named)
        call = _RunningCall(journal, tool, tool_input, named.get("tool_call_id"))
        return call.run(lambda: run(tool, tool_input, *more, **named))

    @wraps(arun)
    async def watched_arun(tool: BaseTool, tool_input: Any, *more: Any, **named: Any) -> Any:
        journal = _find_journal(tool)
        if journal is None:
            return await arun(tool, tool_input, *more, **named)
        call = _RunningCall(journal, tool, tool_input, named.get("tool_call_id"))
        return await call.arun(lambda: arun(tool, tool_input, *more, **named))

    BaseTool.run, BaseTool.arun = watched_run, watched_arun  # type: ignore[method-assign]


def _find_journal(tool: BaseTool) -> ToolJournal | None:
    """Return the journal that records the calls of this tool. `None` means that they are not recorded."""
    if not _recording.get() or isinstance(tool, ExecutorTool):
        return None
    context: Any = get_current_run()
    return context.tool_journal if isinstance(context, SupportsGraphTools) else None


class _RunningCall:
    """A call in progress."""

    def __init__(self, journal: ToolJournal, tool: BaseTool, tool_input: Any, call_id: str | None) -> None:
        self._journal, self._call_request, self._state = (
            journal,
            build_graph_tool_call(tool, tool_input),
            extract_state(tool_input),
        )
        self._call_id = call_id
        self._began = time.monotonic()

    async def arun(self, function: Callable[[], Any]) -> Any:
        begun_call, recorded = await self._begin()
        if recorded is not _NOTHING:
            return recorded
        try:
            with self._journal.open_tool_scope(begun_call):
                result = await function()
        except BaseException as error:
            await self._record_failure(begun_call, error)
            raise
        await self._journal.record_tool(begun_call, self._call_request, self._build_result(result))
        return result

    def run(self, function: Callable[[], Any]) -> Any:
        """Run the tool in a thread. On the event loop the call is not recorded, because it cannot wait there."""
        if is_on_run_loop():
            return function()
        begun_call, recorded = run_blocking(self._begin())
        if recorded is not _NOTHING:
            return recorded
        try:
            with self._journal.open_tool_scope(begun_call):
                result = function()
        except BaseException as error:
            run_blocking(self._record_failure(begun_call, error))
            raise
        run_blocking(self._journal.record_tool(begun_call, self._call_request, self._build_result(result)))
        return result

    async def _begin(self) -> tuple[Any, Any]:
        """Return the call key and the result to return in place of the tool's work.

        `_NOTHING` means that the tool must run.
        """
        begun_call = self._journal.begin_tool(self._call_request)
        if (known := self._find_recorded(begun_call)) is not _NOTHING:
            return begun_call, known
        try:
            begun_call, denied_result = await self._journal.approve_tool(begun_call, self._call_request)
        except BaseException:
            self._journal.abandon_tool(begun_call)
            raise
        return begun_call, self._reject(denied_result) if denied_result else _NOTHING

    def _reject(self, reason: str) -> ToolMessage:
        """Return the reason as a tool message for a model. Raises ToolException if no model made the call."""
        if self._call_id is None:
            raise ToolException(reason)
        return ToolMessage(reason, name=self._call_request.tool, tool_call_id=self._call_id, status="error")

    def _find_recorded(self, begun_call: Any) -> Any:
        """Return the result that was recorded before a crash, or `_NOTHING`."""
        recorded = self._journal.find_recorded_tool(begun_call)
        if recorded is not None and recorded.error:
            return self._reject(recorded.error)
        if recorded is None or not recorded.is_stored:
            return _NOTHING
        try:
            value = decode_value(recorded.result, self._state)
        except UnsupportedValueError:
            return _NOTHING
        self._journal.skip_nested_calls(begun_call)
        return value

    def _build_result(self, result: Any) -> GraphToolResult:
        return build_graph_tool_result(result, self._state, time.monotonic() - self._began)

    async def _record_failure(self, begun_call: Any, error: BaseException) -> None:
        if isinstance(error, GraphInterrupt) and self._call_request.side_effect is SideEffect.AT_MOST_ONCE:
            raise InvalidInput(
                f"{self._call_request.tool}.metadata.effect",
                "The tool declares a side effect that must not be repeated, but it interrupts itself, so "
                "it would run twice",
                "Ask for approval before the call with a tool policy rule whose effect is `ask`, or "
                "declare the tool idempotent.",
            ) from error
        if isinstance(error, GraphBubbleUp | OffingError) or not isinstance(error, Exception):
            return self._journal.abandon_tool(begun_call)
        message, seconds = f"{type(error).__name__}: {error}", time.monotonic() - self._began
        await self._journal.record_tool(
            begun_call, self._call_request, GraphToolResult(error=message, seconds=seconds, status=ToolStatus.FAILED)
        )


_NOTHING: Any = object()


def _to_json(value: Any) -> Any:
    try:
        return encode_value(value)
    except UnsupportedValueError:
        return str(value)


def _summarize_result(result: Any) -> str:
    """Summarize a result for people in a few words."""
    if isinstance(result, ToolMessage):
        return shorten_line(str(result.text))
    update: Any = getattr(result, "update", None)
    if isinstance(update, Mapping):
        messages: Any = cast(Mapping[str, Any], update).get("messages") or ()
        texts = [str(m.text) for m in messages if isinstance(m, ToolMessage)]
        goto: Any = getattr(result, "goto", "")
        return shorten_line(texts[-1] if texts else f"Goes to {goto}" if goto else "Changes the state")
    return shorten_line(result if isinstance(result, str) else repr(result))
