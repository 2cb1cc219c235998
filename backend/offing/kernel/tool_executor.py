"""Validate, decide and execute the tool calls of one claim.

Every tool call of a run goes through here, so the tool policy is enforced in one place. What a tool or a model does
never raises.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pydantic import BaseModel, ValidationError

from offing.core.errors import InvalidInput, NotFound, Unavailable
from offing.core.policy import (
    Decision,
    Policy,
    PolicyContext,
    Verdict,
    decide,
    denied,
    graph_tool,
    rules_for_graph_tool,
)
from offing.core.provenance import NOBODY, PLATFORM, Label, observation
from offing.core.tool import Effect, Span, ToolOutput, ToolSpec, ToolStatus
from offing.kernel.call_key import Call
from offing.kernel.human_input import Approval, Approver, NobodyToAsk
from offing.kernel.journal import RETRY_SECONDS, Journal
from offing.sdk import ToolCall
from offing.telemetry.redaction import redact_value
from offing.tools.tool import Tool, ToolFailed, ToolScope


@dataclass(frozen=True, slots=True)
class ToolCallOutcome:
    """The outcome of a tool call, before it is a step."""

    status: ToolStatus
    title: str
    verb: str
    content: dict[str, Any] = field(default_factory=dict[str, Any])
    message: str = ""
    detail: str = ""
    spans: tuple[Span, ...] = ()
    rule: str = ""
    """The policy rule that decided; of a replaced call both, with a semicolon. Empty: it was not asked."""
    instead: ToolCall | None = None
    """The call that was made in place of the one that was asked for. None: it was that one, or none."""
    label: Label = NOBODY
    """Where content and message came from, by the tool that really ran."""


class TaintSource(Protocol):
    """What untrusted text has entered the run's context."""

    async def current_taint(self, used: Mapping[str, int], received: Mapping[str, int]) -> PolicyContext:
        """The run as the policy is to see it now."""
        ...

    def note(self, tool: str, status: str, said: Mapping[str, Any], label: Label) -> None:
        """A call is finished, and the graph is about to see what came of it."""
        ...


class NoTaint:
    """For a run whose taint is not tracked."""

    async def current_taint(self, used: Mapping[str, int], received: Mapping[str, int]) -> PolicyContext:
        return PolicyContext(used=used, received=received)

    def note(self, tool: str, status: str, said: Mapping[str, Any], label: Label) -> None:
        """Nothing is tracked."""


class ToolExecutor:
    """Executes the tool calls of one claim.

    `policy` None: the run has no valid one, and every call is denied. `used` and `received`: calls of each tool that
    earlier claims made, and bytes that it answered, for limits on them. `taint` None: it is not tracked. `approver`
    None: nobody can be asked.
    """

    def __init__(
        self,
        tools: Mapping[str, Tool],
        policy: Policy | None,
        scope: ToolScope,
        journal: Journal,
        used: Mapping[str, int],
        *,
        received: Mapping[str, int] | None = None,
        taint: TaintSource | None = None,
        approver: Approver | None = None,
    ) -> None:
        self._tools, self.policy, self._scope = tools, policy, scope
        self.restricting = asyncio.Lock()
        """Held while the policy is exchanged for a narrower one."""
        self._journal = journal
        self._used, self._received = Counter[str](used), Counter[str](received or {})
        self._taint, self._approver = taint or NoTaint(), approver or NobodyToAsk()

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Tools that the policy does not forbid outright."""
        offered = self.policy.offered if self.policy else frozenset[str]()
        return tuple(tool.spec for name, tool in self._tools.items() if name in offered)

    @property
    def used(self) -> Mapping[str, int]:
        """Calls of each tool that this run and its child runs have made."""
        return dict(self._used)

    @property
    def received(self) -> Mapping[str, int]:
        """Bytes that each tool has answered."""
        return dict(self._received)

    def expect(self, name: str, brought: Mapping[str, Any], label: Label) -> None:
        """What no tool brought is about to be recorded. Noted before, since other branches read it as soon as it is."""
        said = {"content": brought["content"], "message": brought["message"]}
        self._taint.note(name, brought["status"], said, label)

    def add_child(self, brought: Mapping[str, Any]) -> None:
        """Count what a child run has used of the tools, once that is recorded."""
        self._used.update(brought["used"])
        self._received.update(brought["received"])

    async def decide_graph_tool(self, name: str, args: dict[str, Any], under: Call) -> Decision:
        """Decide about a call of one of the graph's own tools, which is allowed where no rule is about it.

        May leave by an exception of the approver.
        """
        if self.policy is None:
            return denied("The run has no valid tool policy.")
        named = graph_tool(name)
        rules = rules_for_graph_tool(self.policy, named)
        if not rules.rules:
            return Decision(Verdict.ALLOW)
        return await self._decided(rules, ToolSpec(named, "", BaseModel, "calls"), args, under, stands_in=False)

    def begin_graph_tool(self, name: str) -> None:
        """Count a call of such a tool, for limits on them."""
        self._used[graph_tool(name)] += 1

    def end_graph_tool(self, name: str, content: Mapping[str, Any]) -> None:
        """Count the bytes that it gave."""
        self._received[graph_tool(name)] += size_of(content)

    async def use(self, call: ToolCall, under: Call) -> ToolCallOutcome:
        """Execute a tool call. May leave by an exception of the approver alone, which suspends the run."""
        outcome = await self._judged(call, under, stands_in=False)
        ran, said = (outcome.instead or call).tool, {"content": outcome.content, "message": outcome.message}
        self._taint.note(ran, outcome.status, said, outcome.label)
        return outcome

    async def _judged(self, call: ToolCall, under: Call, *, stands_in: bool) -> ToolCallOutcome:
        tool = self._tools.get(call.tool)
        if tool is None:
            return _invalid(call.tool, f"There is no tool {call.tool!r}. Use one of: {', '.join(sorted(self._tools))}.")
        try:
            args = tool.spec.args.model_validate(call.args)
        except ValidationError as error:
            return _invalid(call.tool, _complaint(error))
        decision = await self._decided(self.policy, tool.spec, args.model_dump(mode="json"), under, stands_in=stands_in)
        if decision.verdict is Verdict.REPLACE:
            return await self._replaced(tool.spec, decision, under)
        if not decision.allowed:
            return _denied(tool.spec, decision)
        return await self._started(tool, call, args, under, decision)

    async def _decided(
        self, policy: Policy | None, spec: ToolSpec, args: dict[str, Any], under: Call, *, stands_in: bool
    ) -> Decision:
        context = await self._taint.current_taint(self._used, self._received)
        decision = decide(policy, spec, args, replace(context, stands_in=stands_in))
        if decision.verdict is not Verdict.ASK:
            return decision
        answer = await self._approver.approve(Approval(spec.name, args, decision.rule, decision.reason), under)
        if answer.allowed:
            return Decision(Verdict.ALLOW, decision.rule)
        return Decision(Verdict.DENY, decision.rule, answer.words or "A person was asked and said no.")

    async def _replaced(self, spec: ToolSpec, decision: Decision, under: Call) -> ToolCallOutcome:
        """A message for a result, or another call, which is judged like any and stands in for this one."""
        if decision.instead is None:
            return _denied(spec, decision)
        instead = ToolCall(decision.instead.tool, decision.instead.args)
        outcome = await self._judged(instead, under, stands_in=True)
        rule = f"{decision.rule}; {outcome.rule}" if outcome.rule else decision.rule
        return replace(outcome, rule=rule, instead=outcome.instead or instead)

    async def _started(
        self, tool: Tool, call: ToolCall, args: BaseModel, under: Call, decision: Decision
    ) -> ToolCallOutcome:
        self._used[tool.spec.name] += 1
        if not await self._may_start(tool.spec, call, under):
            return _unknown(tool.spec)
        outcome = await self._execute(tool, args, under, decision)
        self._received[tool.spec.name] += size_of(outcome.content)
        return outcome

    async def _may_start(self, spec: ToolSpec, call: ToolCall, under: Call) -> bool:
        """Declare a side effect. `False`: it was declared before a loss and must not happen twice."""
        if spec.effect is Effect.PURE:
            return True
        fresh = await self._journal.declare_effect(under, spec.name, redact_value(call.args), spec.effect)
        return fresh or spec.effect is Effect.IDEMPOTENT

    async def _execute(self, tool: Tool, args: BaseModel, under: Call, decision: Decision) -> ToolCallOutcome:
        self._journal.check_open()
        spec, scope = tool.spec, replace(self._scope, idempotency_key=under.idempotency_key(self._scope.run))
        try:
            async with asyncio.timeout(spec.timeout_seconds):
                output = await _answered(tool, args, scope)
        except TimeoutError:
            message = f"{spec.name} did not finish within {spec.timeout_seconds:g} seconds."
            return _failed(ToolStatus.TIMEOUT, spec, message, decision, PLATFORM)
        except (ToolFailed, InvalidInput, NotFound) as error:
            return _failed(ToolStatus.FAILED, spec, str(error), decision, observation(spec, {}))
        return _done(spec, output, decision)


async def _answered(tool: Tool, args: BaseModel, scope: ToolScope) -> ToolOutput:
    """The tool's answer, asked for again while a server of ours is away and repeating does no harm."""
    while True:
        try:
            return await tool(args, scope)
        except Unavailable:
            if tool.spec.effect is Effect.AT_MOST_ONCE:
                raise
            await asyncio.sleep(RETRY_SECONDS)


def size_of(content: Mapping[str, Any]) -> int:
    """Bytes of what a tool answered, as JSON in UTF-8, spaced as Postgres does it."""
    return len(json.dumps(content, ensure_ascii=False).encode()) if content else 0


def _done(spec: ToolSpec, output: ToolOutput, decision: Decision) -> ToolCallOutcome:
    return ToolCallOutcome(
        ToolStatus.OK,
        output.title,
        spec.verb,
        content=output.content,
        detail=output.detail,
        spans=output.spans,
        rule=decision.rule,
        label=observation(spec, output.content),
    )


def _failed(status: ToolStatus, spec: ToolSpec, message: str, decision: Decision, label: Label) -> ToolCallOutcome:
    return ToolCallOutcome(status, message, spec.verb, message=message, rule=decision.rule, label=label)


def _invalid(name: str, message: str) -> ToolCallOutcome:
    return ToolCallOutcome(
        ToolStatus.INVALID, f"{name or 'tool'}: {message}", "failed", message=message, label=PLATFORM
    )


def _denied(spec: ToolSpec, decision: Decision) -> ToolCallOutcome:
    message = f"{spec.name} is not allowed: {decision.reason}"
    return ToolCallOutcome(ToolStatus.DENIED, message, "failed", message=message, rule=decision.rule, label=PLATFORM)


def _unknown(spec: ToolSpec) -> ToolCallOutcome:
    message = (
        f"A worker was lost while {spec.name} ran; whether it had its effect is not known, and it is not repeated."
    )
    return ToolCallOutcome(ToolStatus.UNKNOWN_OUTCOME, message, "failed", message=message, label=PLATFORM)


def _complaint(error: ValidationError) -> str:
    """Which arguments are wrong and how, for a model that will try again."""
    return "; ".join(f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg']}" for e in error.errors()[:5])
