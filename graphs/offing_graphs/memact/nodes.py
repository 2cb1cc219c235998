"""The graph's nodes. Each asks whether to stop, makes the same calls for the same state, and returns ids and counters.

One action a turn, so that an edit is always applied before the next observation. Failures are values.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from offing.sdk import (
    EngineFailure,
    FailureKind,
    Fracture,
    RoleReply,
    RunContext,
    Step,
    StepDraft,
    StepKind,
    StopReason,
    ToolCall,
)
from offing_graphs.memact.chat import size
from offing_graphs.memact.config import Config
from offing_graphs.memact.context import EDITS
from offing_graphs.memact.editing import Note, answered_too_early, discarded, noted, summary_unasked
from offing_graphs.memact.reading import act_of, newly_heard, read
from offing_graphs.memact.roles import AGENT
from offing_graphs.memact.shapes import Act, AgentInput
from offing_graphs.memact.state import Place, State, flat, places
from offing_graphs.memact.writing import report_without_model
from offing_graphs.parts.ending import halted, reason_of

if TYPE_CHECKING:
    from langgraph.runtime import Runtime

Update = dict[str, Any]

STILL_ASKED = frozenset({StopReason.TURN_LIMIT, StopReason.ASKED_TO_WRITE})
"""Endings after which the agent is asked once more, for an answer from what it has."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes for one configuration of the context."""

    config: Config

    async def agent(self, state: State, runtime: "Runtime[Any]") -> Update:
        """The next action."""
        ctx: RunContext = runtime.context
        if reason := halted(ctx, state["turn"], begins_turn=True):
            return {"stop": reason}
        turn = state["turn"] + 1
        await ctx.begin_turn(turn)
        heard = newly_heard(state["heard"], await ctx.messages(0), turn)
        given = await read(ctx, _with(state, heard=heard), self.config)
        told: Update = {"turn": turn, "heard": heard}
        if size(given) > self.config.limit:
            return {**told, "stop": StopReason.CONTEXT_LIMIT}
        reply = await _asked(ctx, given, turn, state["fracture"])
        if isinstance(reply, EngineFailure):
            return {**told, "stop": _reason(reply)}
        after = "memory" if reply.output.answer and await _spoken_to(ctx, heard) else self._next(reply.output)
        return {**told, "call": reply.seq, "fracture": "", "next": after}

    async def tool(self, state: State, runtime: "Runtime[Any]") -> Update:
        """One validated tool call, whose result becomes the record's observation."""
        ctx: RunContext = runtime.context
        if reason := halted(ctx, state["turn"]):
            return {"stop": reason}
        act = await act_of(ctx, state["call"])
        result = await ctx.use(ToolCall(act.tool, dict(act.args)), turn=state["turn"])
        return await self._accepted(ctx, state, Place(state["turn"], state["call"], result.seq))

    async def memory(self, state: State, runtime: "Runtime[Any]") -> Update:
        """An edit of the context, or an answer or summary whose time has not come."""
        ctx: RunContext = runtime.context
        if reason := halted(ctx, state["turn"]):
            return {"stop": reason}
        note = self._note(await act_of(ctx, state["call"]), places(state))
        place = Place(state["turn"], state["call"], await _recorded(ctx, note.step(state["turn"])))
        if not note.splits:
            return await self._accepted(ctx, state, place)
        kept = flat([*note.context, place])
        return {"records": kept, "since": state["turn"], "fracture": Fracture.MEMORY_EDIT, "next": ""}

    async def summarise(self, state: State, runtime: "Runtime[Any]") -> Update:
        """The summary that takes the place of the whole context, by the agent and in that very context."""
        ctx: RunContext = runtime.context
        turn = state["turn"]
        if reason := halted(ctx, turn):
            return {"stop": reason}
        if state["summaries"] >= self.config.summaries:
            return {"stop": StopReason.CONTEXT_LIMIT}
        given = await read(ctx, state, self.config, "summary")
        reply = await _asked(ctx, given, turn, Fracture.FORK)
        if isinstance(reply, EngineFailure):
            return {"stop": _reason(reply)}
        if not reply.output.summary:
            return {"stop": StopReason.INVALID_OUTPUT}
        count = state["summaries"] + 1
        fresh: Update = {"records": [], "since": turn, "fracture": Fracture.COMPACTION, "next": ""}
        return {**fresh, "summary": reply.seq, "summaries": count}

    async def finish(self, state: State, runtime: "Runtime[Any]") -> Update:
        """The report, whatever ended the run; its delivery is the run's last act."""
        ctx: RunContext = runtime.context
        if not state["stop"]:
            act = await act_of(ctx, state["call"])
            return await self._handed_over(ctx, act, _ending(act))
        reason = StopReason(state["stop"])
        if reason not in STILL_ASKED or not state["turn"]:
            return await self._unwritten(ctx, reason)
        reply = await self._last_words(ctx, state, reason)
        if isinstance(reply, EngineFailure):
            return await self._unwritten(ctx, _reason(reply))
        return await self._handed_over(ctx, reply.output, reason)

    def _next(self, act: Act) -> str:
        if act.answer:
            return "finish"
        return "memory" if act.summary or (self.config.edits and act.tool in EDITS) else "tool"

    def _note(self, act: Act, live: Sequence[Place]) -> Note:
        if act.answer:
            return answered_too_early(live)
        return summary_unasked(live) if act.summary else noted(act, live)

    async def _accepted(self, ctx: RunContext, state: State, place: Place) -> Update:
        """The record at the end of the context; where that makes it full, the record is discarded for a summary."""
        records = flat([*places(state), place])
        if self.config.full is None:
            return {"records": records, "next": ""}
        given = await read(ctx, _with(state, records=records), self.config)
        if size(given) < self.config.full:
            return {"records": records, "next": ""}
        await ctx.record(discarded(place))
        return {"next": "summarise"}

    async def _last_words(self, ctx: RunContext, state: State, reason: StopReason) -> RoleReply[Act] | EngineFailure:
        """What the agent answers when it is asked for the last time; it may still give something else."""
        given = await read(ctx, state, self.config, "answer", reason)
        if size(given) > self.config.window:
            return EngineFailure(FailureKind.CONTEXT_TOO_LONG, "The context is too long to answer from.")
        return await _asked(ctx, given, 0, state["fracture"])

    async def _handed_over(self, ctx: RunContext, act: Act, reason: StopReason) -> Update:
        """An answer as the report; what is none becomes a report without a model."""
        if act.answer is None:
            return await self._unwritten(ctx, reason)
        await ctx.deliver(act.answer, reason)
        return {"stop": reason}

    async def _unwritten(self, ctx: RunContext, reason: StopReason) -> Update:
        draft, final = await report_without_model(ctx, reason)
        await ctx.deliver(draft, final)
        return {"stop": final}


async def _spoken_to(ctx: RunContext, heard: Sequence[int]) -> bool:
    """Somebody wrote since the agent was asked."""
    return bool({message.seq for message in await ctx.messages(0)} - set(heard[::2]))


async def _asked(ctx: RunContext, given: AgentInput, turn: int, fracture: str) -> RoleReply[Act] | EngineFailure:
    return await ctx.call(AGENT, given, turn=turn, fracture=Fracture(fracture) if fracture else None)


async def _recorded(ctx: RunContext, draft: StepDraft) -> int:
    """Seq of the memory step of this turn, which may have been recorded before a loss."""
    await ctx.record(draft)
    steps: Sequence[Step] = await ctx.recall(StepKind.MEMORY, 4)
    return next(s.seq for s in reversed(steps) if s.turn == draft.turn and s.payload["op"] == draft.payload["op"])


def _with(state: State, **changes: Any) -> State:
    changed: Any = {**state, **changes}
    return changed


def _reason(failure: EngineFailure) -> StopReason:
    return StopReason.CONTEXT_LIMIT if failure.kind is FailureKind.CONTEXT_TOO_LONG else reason_of(failure)


def _ending(act: Act) -> StopReason:
    return StopReason.ANSWERED if act.found else StopReason.NOTHING_FOUND
