"""The nodes of the graph.

Each node checks the limits, makes the same calls for the same state, and returns ids and
counters. A turn has one action: an edit, or tool calls that are made at the same time. So an
edit is always applied before the next observation. Failures are values.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from offing.sdk import (
    BoundaryReason,
    EngineFailure,
    FailureKind,
    RoleReply,
    RunContext,
    Step,
    StepDraft,
    StepKind,
    StopReason,
)
from offing_graphs.memact.context import (
    ContextConfig,
    MemoryEdit,
    RecordLocation,
    apply_memory_action,
    draft_discard,
    fit_config,
    postpone_answer,
    reject_summary,
)
from offing_graphs.memact.prompts import drop_latest_records, estimate_size, render_prompt
from offing_graphs.memact.roles import AGENT
from offing_graphs.memact.schemas import EDIT_ACTIONS, Act, AgentInput
from offing_graphs.memact.state import State, add_new_messages, flatten_records, list_records, load_inputs
from offing_graphs.shared.findings import passages_from_evidence
from offing_graphs.shared.fitted_calls import draft_window_note, learn_context_tokens
from offing_graphs.shared.follow_up import submit_findings
from offing_graphs.shared.memory import MAX_EVIDENCE, has_findings, load_call_records
from offing_graphs.shared.report import build_quote_report
from offing_graphs.shared.state import StateUpdate, load_output
from offing_graphs.shared.stop_reasons import FINAL_ANSWER_REASONS, check_limits, stop_reason_from_failure
from offing_graphs.shared.task import note_messages, task_from_run

if TYPE_CHECKING:
    from langgraph.runtime import Runtime


LAST_CALL_REASONS = FINAL_ANSWER_REASONS | {StopReason.CONTEXT_LIMIT}
"""Stop reasons after which the agent is called once more, only for an answer."""


CONTEXT_FULL = "The context is full."


@dataclass(frozen=True, slots=True)
class AgentNodes:
    """The nodes for one configuration of the context."""

    config: ContextConfig

    async def agent(self, state: State, runtime: "Runtime[Any]") -> StateUpdate:
        """Begin a turn and choose the next action."""
        ctx: RunContext = runtime.context
        if reason := check_limits(ctx, state["turn"], begins_turn=True):
            return {"stop": reason}
        turn = state["turn"] + 1
        await ctx.begin_turn(turn)
        messages, known = await ctx.get_user_messages(0), frozenset(state["seen_messages"][::2])
        await note_messages(ctx, [message for message in messages if message.seq not in known], turn)
        seen_messages = add_new_messages(state["seen_messages"], messages, turn)
        update: StateUpdate = {"turn": turn, "seen_messages": seen_messages}
        now = _update_state(state, seen_messages=seen_messages)
        reply = await self._call_in_window(ctx, now, turn, state["boundary_reason"])
        if isinstance(reply, EngineFailure) and reply.kind is FailureKind.CONTEXT_TOO_LONG and state["turn"]:
            learned = await self._learn_window(ctx, now, reply, turn)
            update |= learned
            reply = await self._call_in_window(ctx, _update_state(now, **learned), turn, BoundaryReason.WORKSPACE_RESET)
        if isinstance(reply, EngineFailure):
            return {**update, "stop": _stop_reason_from_failure(reply)}
        after = (
            "memory"
            if reply.output.answer and await _has_new_message(ctx, seen_messages)
            else self._select_next_node(reply.output)
        )
        return {**update, "call": reply.seq, "boundary_reason": "", "next": after}

    async def tool(self, state: State, runtime: "Runtime[Any]") -> StateUpdate:
        """Make the tool calls of the action at the same time. Their results become the observation of the record."""
        ctx: RunContext = runtime.context
        if reason := check_limits(ctx, state["turn"]):
            return {"stop": reason}
        act = await load_output(ctx, state["call"], Act)
        results = await ctx.call_tools([call.to_tool_call() for call in act.calls], turn=state["turn"])
        locations = [RecordLocation(state["turn"], state["call"], result.seq) for result in results]
        return await self._append_record(ctx, state, locations)

    async def memory(self, state: State, runtime: "Runtime[Any]") -> StateUpdate:
        """Apply an edit of the context, or reject an answer or summary that is not possible yet."""
        ctx: RunContext = runtime.context
        if reason := check_limits(ctx, state["turn"]):
            return {"stop": reason}
        note = self._apply_memory_action(await load_output(ctx, state["call"], Act), list_records(state))
        record = RecordLocation(
            state["turn"], state["call"], await _append_memory_step(ctx, note.draft_step(state["turn"]))
        )
        if not note.breaks_prefix:
            return await self._append_record(ctx, state, [record])
        records = flatten_records([*note.context, record])
        return {"records": records, "since": state["turn"], "boundary_reason": BoundaryReason.MEMORY_EDIT, "next": ""}

    async def summarize(self, state: State, runtime: "Runtime[Any]") -> StateUpdate:
        """Ask the agent for a summary in the full context, which the summary then replaces."""
        ctx: RunContext = runtime.context
        turn = state["turn"]
        if reason := check_limits(ctx, turn):
            return {"stop": reason}
        if state["summaries"] >= self.config.max_summaries:
            return {"stop": StopReason.CONTEXT_LIMIT}
        inputs = await self._load_inputs(ctx, state, "summary")
        reply = await _call_agent(ctx, inputs, turn, BoundaryReason.FORK)
        if isinstance(reply, EngineFailure):
            return {"stop": _stop_reason_from_failure(reply)}
        if not reply.output.summary:
            return {"stop": StopReason.INVALID_OUTPUT}
        count = state["summaries"] + 1
        fresh: StateUpdate = {"records": [], "since": turn, "boundary_reason": BoundaryReason.COMPACTION, "next": ""}
        return {**fresh, "summary": reply.seq, "summaries": count}

    async def finish(self, state: State, runtime: "Runtime[Any]") -> StateUpdate:
        """Submit the report, for any stop reason. This is the last action of the run."""
        ctx: RunContext = runtime.context
        if not state["stop"]:
            act = await load_output(ctx, state["call"], Act)
            return await self._submit_answer(ctx, act, _classify_answer(act))
        reason = StopReason(state["stop"])
        if reason not in LAST_CALL_REASONS or not state["turn"]:
            return await self._submit_fallback_report(ctx, reason)
        reply = await self._request_final_answer(ctx, state, reason)
        if isinstance(reply, EngineFailure):
            return await self._submit_fallback_report(ctx, _stop_reason_from_failure(reply))
        return await self._submit_answer(ctx, reply.output, reason)

    def _select_next_node(self, action: Act) -> str:
        if action.answer:
            return "finish"
        return "memory" if action.summary or (self.config.allows_edits and action.tool in EDIT_ACTIONS) else "tool"

    def _apply_memory_action(self, action: Act, records: Sequence[RecordLocation]) -> MemoryEdit:
        if action.answer:
            return postpone_answer(records)
        return reject_summary(records) if action.summary else apply_memory_action(action, records)

    async def _append_record(self, ctx: RunContext, state: State, locations: Sequence[RecordLocation]) -> StateUpdate:
        """Append the record with these locations to the context.

        If the context is then full, discard the record and request a summary.
        """
        records = flatten_records([*list_records(state), *locations])
        limit = self._fit_config(ctx, state).summarize_at_tokens
        if limit is None:
            return {"records": records, "next": ""}
        inputs = await self._load_inputs(ctx, _update_state(state, records=records))
        if estimate_size(inputs) < limit:
            return {"records": records, "next": ""}
        await ctx.append_steps(draft_discard(locations))
        return {"next": "summarize"}

    async def _request_final_answer(
        self, ctx: RunContext, state: State, reason: StopReason
    ) -> RoleReply[Act] | EngineFailure:
        """Call the agent a last time for an answer. It may still return another action.

        If the context is full, the latest records are left out, and the request says so.
        """
        limit = self._fit_config(ctx, state).max_context_tokens
        inputs = drop_latest_records(await self._load_inputs(ctx, state, "answer", reason), limit)
        if estimate_size(inputs) > limit:
            return EngineFailure(FailureKind.CONTEXT_TOO_LONG, CONTEXT_FULL)
        boundary = BoundaryReason.FORK if inputs.omitted_records else state["boundary_reason"]
        return await _call_agent(ctx, inputs, 0, boundary)

    async def _call_in_window(
        self, ctx: RunContext, state: State, turn: int, boundary: str
    ) -> RoleReply[Act] | EngineFailure:
        """Call the agent for an action if the context fits its window."""
        inputs = await self._load_inputs(ctx, state)
        if estimate_size(inputs) > self._fit_config(ctx, state).max_prompt_tokens:
            return EngineFailure(FailureKind.CONTEXT_TOO_LONG, CONTEXT_FULL)
        return await _call_agent(ctx, inputs, turn, boundary)

    async def _learn_window(self, ctx: RunContext, state: State, failure: EngineFailure, turn: int) -> StateUpdate:
        """Return the state with the window of the model, after its provider rejected a prompt as too long.

        Nothing is learned from a context that is full, or a second time. A new window cuts the observations
        anew, so a new segment begins.
        """
        if failure.message == CONTEXT_FULL or state["window"]:
            return {}
        prompt = render_prompt(await self._load_inputs(ctx, state))
        window = learn_context_tokens(failure.message, prompt, ctx.get_context_tokens(AGENT.name))
        await ctx.append_steps(draft_window_note(AGENT.name, window, turn))
        return {"window": window, "since": state["turn"]}

    def _fit_config(self, ctx: RunContext, state: State) -> ContextConfig:
        return fit_config(self.config, _find_window(ctx, state))

    async def _load_inputs(
        self,
        ctx: RunContext,
        state: State,
        request: Literal["action", "summary", "answer"] = "action",
        reason: str = "",
    ) -> AgentInput:
        return await load_inputs(ctx, state, self._fit_config(ctx, state), _find_window(ctx, state), request, reason)

    async def _submit_answer(self, ctx: RunContext, action: Act, reason: StopReason) -> StateUpdate:
        """Submit an answer as the report. Any other action leads to a report without a model."""
        if action.answer is None:
            return await self._submit_fallback_report(ctx, reason)
        await submit_findings(ctx, AGENT, action.answer, reason)
        return {"stop": reason}

    async def _submit_fallback_report(self, ctx: RunContext, reason: StopReason) -> StateUpdate:
        """Submit a report of quotes.

        The turn limit becomes `NOTHING_FOUND` if the run made tool calls and found nothing.
        """
        evidence = await ctx.get_evidence(MAX_EVIDENCE)
        records = await load_call_records(ctx, evidence)
        if records and not has_findings(evidence, records) and reason is StopReason.TURN_LIMIT:
            reason = StopReason.NOTHING_FOUND
        draft = build_quote_report(task_from_run(ctx.run), passages_from_evidence(evidence), records, reason)
        await submit_findings(ctx, AGENT, draft, reason, is_checked=False)
        return {"stop": reason}


def _find_window(ctx: RunContext, state: State) -> int | None:
    """Return the context window of the model, as its provider or else the platform knows it."""
    return state["window"] or ctx.get_context_tokens(AGENT.name)


async def _has_new_message(ctx: RunContext, seen_messages: Sequence[int]) -> bool:
    """Return whether a user message arrived since the agent was called."""
    return bool({message.seq for message in await ctx.get_user_messages(0)} - set(seen_messages[::2]))


async def _call_agent(ctx: RunContext, inputs: AgentInput, turn: int, boundary: str) -> RoleReply[Act] | EngineFailure:
    return await ctx.call_role(AGENT, inputs, turn=turn, boundary=BoundaryReason(boundary) if boundary else None)


async def _append_memory_step(ctx: RunContext, draft: StepDraft) -> int:
    """Append the memory step of this turn and return its seq.

    The step may already be stored from before a crash.
    """
    await ctx.append_steps(draft)
    steps: Sequence[Step] = await ctx.last_steps(StepKind.MEMORY, 4)
    return next(s.seq for s in reversed(steps) if s.turn == draft.turn and s.payload["op"] == draft.payload["op"])


def _update_state(state: State, **changes: Any) -> State:
    changed: Any = {**state, **changes}
    return changed


def _stop_reason_from_failure(failure: EngineFailure) -> StopReason:
    return (
        StopReason.CONTEXT_LIMIT if failure.kind is FailureKind.CONTEXT_TOO_LONG else stop_reason_from_failure(failure)
    )


def _classify_answer(action: Act) -> StopReason:
    return StopReason.ANSWERED if action.found else StopReason.NOTHING_FOUND
