"""Tool calls of a node in the journal: one call, or several that are made at the same time."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langgraph.errors import GraphInterrupt

from offing.core.step import Step, StepDraft
from offing.core.tool import ToolResult, ToolStatus
from offing.core.tool_batch import BatchPosition
from offing.kernel import step_drafts
from offing.kernel.call_key import CallKeys, NodeCall
from offing.kernel.journal import Journal
from offing.kernel.recorded_calls import TOOL_RESULT_KINDS
from offing.kernel.run_store import JournalEntry, LiveSink
from offing.kernel.tool_executor import ToolExecutor
from offing.kernel.trace_spans import CallSpans
from offing.kernel.wait_conditions import merge_interrupts
from offing.sdk import ToolCall, tool_result_from_step
from offing.telemetry.attributes import TOOL_DECISION
from offing.telemetry.redaction import redact, remove_secrets
from offing.telemetry.tracing import mark_failed


@dataclass(frozen=True, slots=True)
class _KeyedCall:
    """A requested call with its call key. A call outside a batch has no position."""

    call: ToolCall
    node_call: NodeCall
    turn: int
    position: BatchPosition | None = None


@dataclass(frozen=True, slots=True)
class ToolCaller:
    """Makes the tool calls of the nodes of one epoch."""

    keys: CallKeys
    journal: Journal
    executor: ToolExecutor
    spans: CallSpans
    sink: LiveSink
    monotonic: Callable[[], float]

    async def call_tool(self, call: ToolCall, turn: int) -> ToolResult:
        keyed = self._assign_key(call, turn)
        if step := self._take_recorded(keyed):
            return tool_result_from_step(step)
        await self._show_action([keyed])
        draft = await self._execute(keyed)
        (step,) = await self.journal.append(JournalEntry(draft))
        return tool_result_from_step(step)

    async def call_tools(self, calls: Sequence[ToolCall], turn: int) -> tuple[ToolResult, ...]:
        """Make the calls at the same time, and return their results in the order of the calls."""
        if len(calls) < 2:
            return tuple([await self.call_tool(call, turn) for call in calls])
        batch = _number_calls([self._assign_key(call, turn) for call in calls])
        steps = {keyed.node_call.key: self._take_recorded(keyed) for keyed in batch}
        missing = [keyed for keyed in batch if steps[keyed.node_call.key] is None]
        if missing:
            await self._show_action(missing)
            steps |= {step.call_key: step for step in await self._execute_all(missing) if step.call_key}
        recorded = (steps[keyed.node_call.key] for keyed in batch)
        return tuple(tool_result_from_step(step) for step in recorded if step is not None)

    def _assign_key(self, call: ToolCall, turn: int) -> _KeyedCall:
        call = ToolCall(*remove_secrets([call.tool, call.args]))
        return _KeyedCall(call, self.keys.next_call(call.tool, call.args), turn)

    def _take_recorded(self, keyed: _KeyedCall) -> Step | None:
        step = self.journal.take_recorded(keyed.node_call, TOOL_RESULT_KINDS)
        if step is None:
            self.journal.check_new(keyed.node_call)
        return step

    async def _execute_all(self, batch: Sequence[_KeyedCall]) -> Sequence[Step]:
        """Execute the calls and record each result as soon as it is there.

        If calls wait for a person, the others are finished and recorded before the node is suspended.
        A run that writes nothing before its end has nothing to lose, so its results are recorded in
        the order of the calls.
        """
        record = self._execute if self.journal.writes_at_exit else self._execute_and_append
        outcomes = await _run_all([_catch_interrupt(record(keyed)) for keyed in batch])
        steps = [one for one in outcomes if isinstance(one, Step)]
        if drafts := [one for one in outcomes if isinstance(one, StepDraft)]:
            steps += await self.journal.append(*map(JournalEntry, drafts))
        if interrupts := [one for one in outcomes if isinstance(one, GraphInterrupt)]:
            raise merge_interrupts(interrupts)
        return steps

    async def _execute_and_append(self, keyed: _KeyedCall) -> Step:
        (step,) = await self.journal.append(JournalEntry(await self._execute(keyed)))
        return step

    async def _execute(self, keyed: _KeyedCall) -> StepDraft:
        """Execute a call and return the step of its result."""
        call, node_call, began = keyed.call, keyed.node_call, self.monotonic()
        with self.spans.open_tool_span(node_call, call.tool, keyed.turn) as opened:
            outcome = await self.executor.execute_call(call, node_call)
            opened.set_attribute(TOOL_DECISION, outcome.rule)
            if outcome.status is not ToolStatus.OK:
                mark_failed(opened, outcome.status)
        ms = int((self.monotonic() - began) * 1000)
        draft = step_drafts.draft_tool_result(call, outcome, node_call.key, keyed.turn, ms, keyed.position)
        return self.journal.mark_reexecuted(node_call, draft)

    async def _show_action(self, batch: Sequence[_KeyedCall]) -> None:
        """Show subscribers which calls are made now. The text is not stored."""
        texts = (f"{k.call.tool}: {next((str(v) for v in k.call.args.values()), '')}" for k in batch)
        await self.sink.publish_action(redact(" \u00b7 ".join(texts)))


def _number_calls(batch: Sequence[_KeyedCall]) -> list[_KeyedCall]:
    """Return the calls with their positions. The first call identifies the batch."""
    batch_id, size = batch[0].node_call.seed_text, len(batch)
    return [replace(keyed, position=BatchPosition(batch_id, n, size)) for n, keyed in enumerate(batch, 1)]


_Recorded = Step | StepDraft | GraphInterrupt


async def _catch_interrupt(execution: Awaitable[Step | StepDraft]) -> _Recorded:
    """Return the interrupt of a call instead of raising it, so that it does not end the other calls."""
    try:
        return await execution
    except GraphInterrupt as interrupt:
        return interrupt


async def _run_all(executions: Sequence[Coroutine[Any, Any, _Recorded]]) -> list[_Recorded]:
    """Run everything at the same time. The first error ends the others and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(execution) for execution in executions]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from errors
    return [task.result() for task in tasks]
