"""Tools of a graph's own as calls of its run: on record, and read back after a loss.

The only home of how they are seen. A graph calls its tools as LangChain does, by `BaseTool.run` and `arun`, which are
wrapped once a process and do nothing more outside a run. What was asked is the tool's name and the arguments that a
model gives; state, store and runtime, which LangGraph injects, are no part of it. Knows no journal: the run's context
offers one.
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
from offing.core.step import shortened
from offing.core.tool import Effect, ToolStatus
from offing.langchain.tool_values import NotKept, decoded, encoded
from offing.sdk.running import on_its_loop, running, waited

LONGEST_RESULT = 1_000_000
"""Characters of a result as JSON; a longer one is on record without its content, and given anew after a loss."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A tool call as a model makes it."""

    tool: str
    args: dict[str, Any]
    effect: Effect = Effect.PURE
    """Other than pure: its author has said so, see `effect_of`."""


@dataclass(frozen=True, slots=True)
class Given:
    """What came of a tool call."""

    result: Any = None
    """As JSON, see `tool_values`."""
    kept: bool = True
    """False: the result has no form that is kept."""
    error: str = ""
    """Why it failed or was not made. Empty: it gave something. The failure of a pure call is on record for people, and
    the call is made anew after a loss."""
    text: str = ""
    """What a timeline shows."""
    seconds: float = 0.0
    status: ToolStatus = ToolStatus.OK


class ToolJournal(Protocol):
    """Keeps the calls of a graph's own tools. It is called in the node that makes them, on the run's loop."""

    def begin_tool(self, asked: Asked) -> Any:
        """Take the call's place among those of its node. Equal calls are told apart by which begins first."""
        ...

    def recorded_tool(self, begun: Any) -> Given | None:
        """What is on record for it. None: nothing."""
        ...

    async def start_tool(self, begun: Any, asked: Asked) -> tuple[Any, str]:
        """Ask whether the call may be made, and declare its effect. Return it, and why it is not made; empty: it is.

        May leave by an exception that suspends the run, until a person has decided.
        """
        ...

    async def end_tool(self, begun: Any, asked: Asked, given: Given) -> None:
        """Put on record what came of it. A failure gives the place back, so that another try takes it."""
        ...

    def within_tool(self, begun: Any) -> AbstractContextManager[None]:
        """Around the tool's work: what it calls itself is not called again once its result is on record."""
        ...

    def skip_tool(self, begun: Any) -> None:
        """What is on record is given in place of the tool's work."""
        ...

    def leave_tool(self, begun: Any) -> None:
        """It neither gave anything nor failed: it asked a person, or was cancelled. Nothing is recorded."""
        ...


@runtime_checkable
class KeepsTools(Protocol):
    """A context that offers such a journal."""

    @property
    def graph_tools(self) -> ToolJournal: ...


_watched: ContextVar[bool] = ContextVar("offing_tools_watched", default=False)


@contextmanager
def tools_watched() -> Generator[None]:
    """Within a run, the graph's own tools are calls of it."""
    _wrap()
    token = _watched.set(True)
    try:
        yield
    finally:
        _watched.reset(token)


class OurTool:
    """A tool that goes through the run's tool executor by itself."""


def asked_of(tool: BaseTool, given: str | Mapping[str, Any]) -> Asked:
    """What was asked of the tool, without what was injected. Arguments that are no JSON are shown as text."""
    args = {"input": given} if isinstance(given, str) else tool._filter_injected_args(dict(given))  # pyright: ignore[reportPrivateUsage]
    return Asked(tool.name, {name: _plain(value) for name, value in args.items()}, effect_of(tool))


def effect_of(tool: BaseTool) -> Effect:
    """What the tool's `metadata` says of its effect: `{"effect": "at_most_once"}`, or the annotations of an MCP tool.

    Pure where it says nothing. Raises InvalidInput for an effect that there is not.
    """
    declared = tool.metadata or {}
    if "effect" in declared:
        if (named := declared["effect"]) not in set(Effect):
            remedy = f"Use one of: {', '.join(Effect)}."
            raise InvalidInput(f"{tool.name}.metadata.effect", f"{named!r} is no effect", remedy)
        return Effect(named)
    if declared.get("destructiveHint") is not True and declared.get("readOnlyHint") is not False:
        return Effect.PURE
    return Effect.IDEMPOTENT if declared.get("idempotentHint") is True else Effect.AT_MOST_ONCE


def state_in(given: str | Mapping[str, Any]) -> dict[str, Any]:
    """What the tool was given of its graph's state, by LangGraph's injection."""
    found: dict[str, Any] = {}
    for name, value in () if isinstance(given, str) else given.items():
        state: Any = getattr(value, "state", value)
        if isinstance(state, list) and any(isinstance(one, BaseMessage) for one in cast(list[Any], state)):
            found[f"@{name}"] = state
        if isinstance(state, Mapping) and (value is not state or "messages" in state):
            found |= cast(Mapping[str, Any], state)
    return found


def given_of(result: Any, state: Mapping[str, Any], seconds: float) -> Given:
    """A result as it is kept."""
    try:
        stored = encoded(result, state)
    except NotKept as problem:
        return Given(kept=False, text=f"{_shown(result)} ({problem})", seconds=seconds)
    if len(str(stored)) > LONGEST_RESULT:
        return Given(kept=False, text=_shown(result), seconds=seconds)
    return Given(stored, text=_shown(result), seconds=seconds)


@cache
def _wrap() -> None:
    run, arun = BaseTool.run, BaseTool.arun

    @wraps(run)
    def watched_run(tool: BaseTool, tool_input: Any, *more: Any, **named: Any) -> Any:
        journal = _journal_for(tool)
        if journal is None:
            return run(tool, tool_input, *more, **named)
        call = _Call(journal, tool, tool_input, named.get("tool_call_id"))
        return call.run(lambda: run(tool, tool_input, *more, **named))

    @wraps(arun)
    async def watched_arun(tool: BaseTool, tool_input: Any, *more: Any, **named: Any) -> Any:
        journal = _journal_for(tool)
        if journal is None:
            return await arun(tool, tool_input, *more, **named)
        call = _Call(journal, tool, tool_input, named.get("tool_call_id"))
        return await call.arun(lambda: arun(tool, tool_input, *more, **named))

    BaseTool.run, BaseTool.arun = watched_run, watched_arun  # type: ignore[method-assign]


def _journal_for(tool: BaseTool) -> ToolJournal | None:
    """The journal that keeps this tool's calls. None: nothing does."""
    if not _watched.get() or isinstance(tool, OurTool):
        return None
    context: Any = running()
    return context.graph_tools if isinstance(context, KeepsTools) else None


class _Call:
    """One call under way."""

    def __init__(self, journal: ToolJournal, tool: BaseTool, given: Any, call_id: str | None) -> None:
        self._journal, self._asked, self._state = journal, asked_of(tool, given), state_in(given)
        self._call_id = call_id
        self._began = time.monotonic()

    async def arun(self, work: Callable[[], Any]) -> Any:
        begun, known = await self._begin()
        if known is not _NOTHING:
            return known
        try:
            with self._journal.within_tool(begun):
                result = await work()
        except BaseException as error:
            await self._failed(begun, error)
            raise
        await self._journal.end_tool(begun, self._asked, self._given(result))
        return result

    def run(self, work: Callable[[], Any]) -> Any:
        """The same in a thread. On the loop itself nobody can wait for the record, and the call goes past it."""
        if on_its_loop():
            return work()
        begun, known = waited(self._begin())
        if known is not _NOTHING:
            return known
        try:
            with self._journal.within_tool(begun):
                result = work()
        except BaseException as error:
            waited(self._failed(begun, error))
            raise
        waited(self._journal.end_tool(begun, self._asked, self._given(result)))
        return result

    async def _begin(self) -> tuple[Any, Any]:
        """The call in its place, and what is to be given in place of its work. `_NOTHING`: the work is to be done."""
        begun = self._journal.begin_tool(self._asked)
        if (known := self._known(begun)) is not _NOTHING:
            return begun, known
        try:
            begun, refusal = await self._journal.start_tool(begun, self._asked)
        except BaseException:
            self._journal.leave_tool(begun)
            raise
        return begun, self._refused(refusal) if refusal else _NOTHING

    def _refused(self, why: str) -> ToolMessage:
        """A model reads why; code that calls the tool without one has an exception."""
        if self._call_id is None:
            raise ToolException(why)
        return ToolMessage(why, name=self._asked.tool, tool_call_id=self._call_id, status="error")

    def _known(self, begun: Any) -> Any:
        """What the tool gave before a loss."""
        given = self._journal.recorded_tool(begun)
        if given is not None and given.error:
            return self._refused(given.error)
        if given is None or not given.kept:
            return _NOTHING
        try:
            found = decoded(given.result, self._state)
        except NotKept:
            return _NOTHING
        self._journal.skip_tool(begun)
        return found

    def _given(self, result: Any) -> Given:
        return given_of(result, self._state, time.monotonic() - self._began)

    async def _failed(self, begun: Any, error: BaseException) -> None:
        if isinstance(error, GraphInterrupt) and self._asked.effect is Effect.AT_MOST_ONCE:
            raise InvalidInput(
                f"{self._asked.tool}.metadata.effect",
                "The tool declares an effect that must not happen twice, and interrupts itself, so that it runs twice",
                "Ask before the call, as a rule of the tool policy that says `ask` does, or declare it idempotent.",
            ) from error
        if isinstance(error, GraphBubbleUp | OffingError) or not isinstance(error, Exception):
            return self._journal.leave_tool(begun)
        said, seconds = f"{type(error).__name__}: {error}", time.monotonic() - self._began
        await self._journal.end_tool(begun, self._asked, Given(error=said, seconds=seconds, status=ToolStatus.FAILED))


_NOTHING: Any = object()


def _plain(value: Any) -> Any:
    try:
        return encoded(value)
    except NotKept:
        return str(value)


def _shown(result: Any) -> str:
    """A result for people, in a few words."""
    if isinstance(result, ToolMessage):
        return shortened(str(result.text))
    update: Any = getattr(result, "update", None)
    if isinstance(update, Mapping):
        told: Any = cast(Mapping[str, Any], update).get("messages") or ()
        said = [str(m.text) for m in told if isinstance(m, ToolMessage)]
        goto: Any = getattr(result, "goto", "")
        return shortened(said[-1] if said else f"Goes to {goto}" if goto else "Changes the state")
    return shortened(result if isinstance(result, str) else repr(result))
