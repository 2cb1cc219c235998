"""Validate, decide and execute the tool calls of one claim.

Every tool call of a run passes this module, so the tool policy is enforced in one place. Errors of
tools and models never raise here.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pydantic import BaseModel, ValidationError

from offing.core.errors import InvalidInput, NotFound, Unavailable
from offing.core.provenance import NO_PROVENANCE, PLATFORM_LABEL, ProvenanceLabel, label_tool_result
from offing.core.tool import SideEffect, SourceSpan, ToolOutput, ToolSpec, ToolStatus
from offing.core.tool_policy import (
    DecisionType,
    ToolCallContext,
    ToolPolicy,
    ToolPolicyDecision,
    decide,
    deny,
    graph_tool_name,
    restrict_to_graph_tool,
)
from offing.kernel.call_key import NodeCall
from offing.kernel.call_repair import RepairedCall, describe_invalid_args, describe_unknown_tool, repair_call
from offing.kernel.human_input import ApprovalRequest, Approver, DenyingApprover
from offing.kernel.journal import RETRY_SECONDS, Journal
from offing.sdk import ToolCall
from offing.telemetry.redaction import redact_value
from offing.tools.tool import Tool, ToolFailedError, ToolScope


@dataclass(frozen=True, slots=True)
class ToolCallOutcome:
    """The outcome of a tool call, before it becomes a step."""

    status: ToolStatus
    title: str
    step_label: str
    content: dict[str, Any] = field(default_factory=dict[str, Any])
    message: str = ""
    detail: str = ""
    spans: tuple[SourceSpan, ...] = ()
    rule: str = ""
    """The tool policy rule that decided. Empty means that the tool policy was not evaluated.

    For a substituted call it names both rules, separated by a semicolon.
    """
    instead: ToolCall | None = None
    """The call that was executed instead of the requested one. `None` means that there was none."""
    repaired: RepairedCall | None = None
    """The call that was executed because the requested one was invalid in its form. `None` means that there was
    none.
    """
    provenance: ProvenanceLabel = NO_PROVENANCE
    """Provenance label of content and message, for the tool that was really executed."""


class TaintSource(Protocol):
    """The taint of a run."""

    async def current_taint(self, call_counts: Mapping[str, int], received_bytes: Mapping[str, int]) -> ToolCallContext:
        """Return the current context of the run for the tool policy."""
        ...

    def add_tool_result(self, tool: str, status: str, payload: Mapping[str, Any], provenance: ProvenanceLabel) -> None:
        """Add a finished call, before the graph sees its result."""
        ...


class NoTaint:
    """The taint source of a run whose taint is not tracked."""

    async def current_taint(self, call_counts: Mapping[str, int], received_bytes: Mapping[str, int]) -> ToolCallContext:
        return ToolCallContext(call_counts=call_counts, received_bytes=received_bytes)

    def add_tool_result(self, tool: str, status: str, payload: Mapping[str, Any], provenance: ProvenanceLabel) -> None:
        """Do nothing, because taint is not tracked."""


class ToolExecutor:
    """Executes the tool calls of one claim.

    If `tool_policy` is `None`, the run has no valid tool policy and every call is denied. `call_counts`
    and `received_bytes` are the calls of each tool in earlier claims and the bytes that it returned,
    for limits. If `taint_source` is `None`, taint is not tracked. If `approver` is `None`, no person
    can be asked. `repairs_calls` is `False` for rollouts, whose policy learns from its own calls.
    """

    def __init__(
        self,
        tools: Mapping[str, Tool],
        tool_policy: ToolPolicy | None,
        scope: ToolScope,
        journal: Journal,
        call_counts: Mapping[str, int],
        *,
        received_bytes: Mapping[str, int] | None = None,
        taint_source: TaintSource | None = None,
        approver: Approver | None = None,
        repairs_calls: bool = True,
    ) -> None:
        self._tools, self.tool_policy, self._scope = tools, tool_policy, scope
        self.restriction_lock = asyncio.Lock()
        """Held while the tool policy is replaced by a restricted one."""
        self._decision_lock = asyncio.Lock()
        """Held during a decision, so that parallel calls are decided and counted in the order in which they begin."""
        self._journal = journal
        self._call_counts, self._received_bytes = Counter[str](call_counts), Counter[str](received_bytes or {})
        self._repairs_calls = repairs_calls
        self._taint, self._approver = taint_source or NoTaint(), approver or DenyingApprover()

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Tools that the tool policy does not forbid completely."""
        offered = self.tool_policy.offered_tools if self.tool_policy else frozenset[str]()
        return tuple(tool.spec for name, tool in self._tools.items() if name in offered)

    @property
    def call_counts(self) -> Mapping[str, int]:
        """Number of calls of each tool by this run and its child runs."""
        return dict(self._call_counts)

    @property
    def received_bytes(self) -> Mapping[str, int]:
        """Bytes that each tool returned."""
        return dict(self._received_bytes)

    def add_external_result(self, name: str, payload: Mapping[str, Any], provenance: ProvenanceLabel) -> None:
        """Add a result that no tool returned, before it is recorded.

        Other branches can read it as soon as it is recorded.
        """
        content = {"content": payload["content"], "message": payload["message"]}
        self._taint.add_tool_result(name, payload["status"], content, provenance)

    def add_child_usage(self, payload: Mapping[str, Any]) -> None:
        """Add the tool usage of a child run whose result is recorded."""
        self._call_counts.update(payload["used"])
        self._received_bytes.update(payload["received"])

    async def decide_graph_tool(self, name: str, args: dict[str, Any], node_call: NodeCall) -> ToolPolicyDecision:
        """Decide about a call of one of the graph's own tools. Without a matching rule it is allowed.

        Exceptions of the approver pass through.
        """
        if self.tool_policy is None:
            return deny("The run has no valid tool policy.")
        named = graph_tool_name(name)
        rules = restrict_to_graph_tool(self.tool_policy, named)
        if not rules.rules:
            return ToolPolicyDecision(DecisionType.ALLOW)
        return await self._decide(rules, ToolSpec(named, "", BaseModel, "calls"), args, node_call, is_substitute=False)

    def count_graph_tool_call(self, name: str) -> None:
        """Count a call of one of the graph's own tools, for limits."""
        self._call_counts[graph_tool_name(name)] += 1

    def count_graph_tool_bytes(self, name: str, content: Mapping[str, Any]) -> None:
        """Count the bytes that one of the graph's own tools returned, for limits."""
        self._received_bytes[graph_tool_name(name)] += count_bytes(content)

    async def execute_call(self, call: ToolCall, node_call: NodeCall) -> ToolCallOutcome:
        """Execute a tool call.

        Only an exception of the approver passes through, which suspends the run.
        """
        repaired = repair_call(call, self._tools) if self._repairs_calls else None
        call = repaired.call if repaired else call
        outcome = await self._decide_and_execute(call, node_call, is_substitute=False)
        if repaired:
            outcome = _add_repairs(outcome, repaired)
        ran, content = (outcome.instead or call).tool, {"content": outcome.content, "message": outcome.message}
        self._taint.add_tool_result(ran, outcome.status, content, outcome.provenance)
        return outcome

    async def _decide_and_execute(self, call: ToolCall, node_call: NodeCall, *, is_substitute: bool) -> ToolCallOutcome:
        tool = self._tools.get(call.tool)
        if tool is None:
            return _invalid_outcome(call.tool, describe_unknown_tool(call.tool, self._tools))
        try:
            args = tool.spec.args.model_validate(call.args)
        except ValidationError as error:
            return _invalid_outcome(call.tool, describe_invalid_args(tool.spec, error))
        decision = await self._decide(
            self.tool_policy, tool.spec, args.model_dump(mode="json"), node_call, is_substitute=is_substitute
        )
        if decision.type is DecisionType.REPLACE:
            return await self._execute_substitute(tool.spec, decision, node_call)
        if not decision.is_allowed:
            return _denied_outcome(tool.spec, decision)
        return await self._start_call(tool, call, args, node_call, decision)

    async def _decide(
        self,
        tool_policy: ToolPolicy | None,
        spec: ToolSpec,
        args: dict[str, Any],
        node_call: NodeCall,
        *,
        is_substitute: bool,
    ) -> ToolPolicyDecision:
        async with self._decision_lock:
            context = await self._taint.current_taint(self._call_counts, self._received_bytes)
            decision = decide(tool_policy, spec, args, replace(context, is_substitute=is_substitute))
        if decision.type is not DecisionType.ASK:
            return decision
        answer = await self._approver.approve(
            ApprovalRequest(spec.name, args, decision.rule, decision.reason), node_call
        )
        if answer.is_approved:
            return ToolPolicyDecision(DecisionType.ALLOW, decision.rule)
        return ToolPolicyDecision(DecisionType.DENY, decision.rule, answer.comment or "A person was asked and said no.")

    async def _execute_substitute(
        self, spec: ToolSpec, decision: ToolPolicyDecision, node_call: NodeCall
    ) -> ToolCallOutcome:
        """Return the message of a replace rule as a denial, or execute its substitute call.

        The substitute is decided like any other call.
        """
        if decision.replacement is None:
            return _denied_outcome(spec, decision)
        instead = ToolCall(decision.replacement.tool, decision.replacement.args)
        outcome = await self._decide_and_execute(instead, node_call, is_substitute=True)
        rule = f"{decision.rule}; {outcome.rule}" if outcome.rule else decision.rule
        return replace(outcome, rule=rule, instead=outcome.instead or instead)

    async def _start_call(
        self, tool: Tool, call: ToolCall, args: BaseModel, node_call: NodeCall, decision: ToolPolicyDecision
    ) -> ToolCallOutcome:
        self._call_counts[tool.spec.name] += 1
        if not await self._may_start(tool.spec, call, node_call):
            return _unknown_outcome(tool.spec)
        outcome = await self._execute(tool, args, node_call, decision)
        self._received_bytes[tool.spec.name] += count_bytes(outcome.content)
        return outcome

    async def _may_start(self, spec: ToolSpec, call: ToolCall, node_call: NodeCall) -> bool:
        """Declare a side effect. Return `False` if it was declared before a crash and must not be repeated."""
        if spec.side_effect is SideEffect.PURE:
            return True
        fresh = await self._journal.declare_side_effect(node_call, spec.name, redact_value(call.args), spec.side_effect)
        return fresh or spec.side_effect is SideEffect.IDEMPOTENT

    async def _execute(
        self, tool: Tool, args: BaseModel, node_call: NodeCall, decision: ToolPolicyDecision
    ) -> ToolCallOutcome:
        self._journal.check_open()
        spec, scope = tool.spec, replace(self._scope, idempotency_key=node_call.idempotency_key(self._scope.run_id))
        try:
            async with asyncio.timeout(spec.timeout_seconds):
                output = await _call_tool_with_retry(tool, args, scope)
        except TimeoutError:
            message = f"{spec.name} did not finish within {spec.timeout_seconds:g} seconds."
            return _failure_outcome(ToolStatus.TIMEOUT, spec, message, decision, PLATFORM_LABEL)
        except (ToolFailedError, InvalidInput, NotFound) as error:
            return _failure_outcome(ToolStatus.FAILED, spec, str(error), decision, label_tool_result(spec, {}))
        return _success_outcome(spec, output, decision)


async def _call_tool_with_retry(tool: Tool, args: BaseModel, scope: ToolScope) -> ToolOutput:
    """Call a tool. If a server of the platform is unavailable and a repetition is harmless, retry."""
    while True:
        try:
            return await tool(args, scope)
        except Unavailable:
            if tool.spec.side_effect is SideEffect.AT_MOST_ONCE:
                raise
            await asyncio.sleep(RETRY_SECONDS)


def count_bytes(content: Mapping[str, Any]) -> int:
    """Return the size of a tool result as JSON in UTF-8, formatted like Postgres does, in bytes."""
    return len(json.dumps(content, ensure_ascii=False).encode()) if content else 0


def _success_outcome(spec: ToolSpec, output: ToolOutput, decision: ToolPolicyDecision) -> ToolCallOutcome:
    return ToolCallOutcome(
        ToolStatus.OK,
        output.title,
        spec.label,
        content=output.content,
        detail=output.detail,
        spans=output.spans,
        rule=decision.rule,
        provenance=label_tool_result(spec, output.content),
    )


def _failure_outcome(
    status: ToolStatus, spec: ToolSpec, message: str, decision: ToolPolicyDecision, provenance: ProvenanceLabel
) -> ToolCallOutcome:
    return ToolCallOutcome(status, message, spec.label, message=message, rule=decision.rule, provenance=provenance)


def _invalid_outcome(name: str, message: str) -> ToolCallOutcome:
    return ToolCallOutcome(
        ToolStatus.INVALID, f"{name or 'tool'}: {message}", "failed", message=message, provenance=PLATFORM_LABEL
    )


def _denied_outcome(spec: ToolSpec, decision: ToolPolicyDecision) -> ToolCallOutcome:
    message = f"{spec.name} is not allowed: {decision.reason}"
    return ToolCallOutcome(
        ToolStatus.DENIED, message, "failed", message=message, rule=decision.rule, provenance=PLATFORM_LABEL
    )


def _unknown_outcome(spec: ToolSpec) -> ToolCallOutcome:
    message = (
        f"A worker was lost while {spec.name} ran; whether it had its effect is not known, and it is not repeated."
    )
    return ToolCallOutcome(ToolStatus.UNKNOWN_OUTCOME, message, "failed", message=message, provenance=PLATFORM_LABEL)


def _add_repairs(outcome: ToolCallOutcome, repaired: RepairedCall) -> ToolCallOutcome:
    """Add the repairs to an outcome. The content of a result says what was repaired."""
    if outcome.status is not ToolStatus.OK:
        return replace(outcome, repaired=repaired)
    notices = [*outcome.content.get("notices", ()), *repaired.notices]
    return replace(outcome, repaired=repaired, content={**outcome.content, "notices": notices})
