"""Using a tool: validate, decide, declare the effect, execute within its time, and say what came of it.

The one place where the tool policy is enforced. Never raises for what a tool or a model did.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pydantic import BaseModel, ValidationError

from offing.core.errors import InvalidInput, NotFound, Unavailable
from offing.core.policy import Decision, Policy, PolicyContext, Verdict, decide
from offing.core.provenance import NOBODY, PLATFORM, Label, observation
from offing.core.step import CallKey
from offing.core.tool import Effect, Span, ToolOutput, ToolSpec, ToolStatus
from offing.sdk import ToolCall
from offing.storage import intents
from offing.storage.pool import Database
from offing.telemetry.redaction import redact_value
from offing.tools.tool import Tool, ToolFailed, ToolScope
from offing_workers.approving import Approval, Approver, NobodyToAsk
from offing_workers.recorder import RETRY_PAUSE, Recorder


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a tool call, before it is a step."""

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


class Taint(Protocol):
    """What untrusted text has entered the run's context."""

    async def moment(self, used: Mapping[str, int], received: Mapping[str, int]) -> PolicyContext:
        """The run as the policy is to see it now."""
        ...

    def note(self, tool: str, status: str, said: Mapping[str, Any], label: Label) -> None:
        """A call is finished, and the graph is about to see what came of it."""
        ...


class Untouched:
    """For a run whose taint nobody follows."""

    async def moment(self, used: Mapping[str, int], received: Mapping[str, int]) -> PolicyContext:
        return PolicyContext(used=used, received=received)

    def note(self, tool: str, status: str, said: Mapping[str, Any], label: Label) -> None:
        """Nothing is followed."""


class Toolbelt:
    """The tools of one claim.

    `policy` None: the run has no valid one, and every call is denied. `used` and `received`: calls of each tool that
    earlier claims made, and bytes that it answered, for limits on them. `taint` None: nobody follows it. `approver`
    None: nobody can be asked.
    """

    def __init__(
        self,
        tools: Mapping[str, Tool],
        policy: Policy | None,
        scope: ToolScope,
        database: Database,
        recorder: Recorder,
        used: Mapping[str, int],
        *,
        received: Mapping[str, int] | None = None,
        taint: Taint | None = None,
        approver: Approver | None = None,
    ) -> None:
        self._tools, self.policy, self._scope = tools, policy, scope
        self.narrowing = asyncio.Lock()
        """Held while the policy is exchanged for a narrower one."""
        self._database, self._recorder = database, recorder
        self._used, self._received = Counter[str](used), Counter[str](received or {})
        self._taint, self._approver = taint or Untouched(), approver or NobodyToAsk()

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        offered = self.policy.offered if self.policy else frozenset[str]()
        return tuple(tool.spec for name, tool in self._tools.items() if name in offered)

    @property
    def used(self) -> Mapping[str, int]:
        """Calls of each tool that this run has made, or that runs made which it started."""
        return dict(self._used)

    @property
    def received(self) -> Mapping[str, int]:
        """Bytes that each tool has answered."""
        return dict(self._received)

    def expect(self, name: str, brought: Mapping[str, Any], label: Label) -> None:
        """What no tool brought is about to be recorded. Noted before, since other branches read it as soon as it is."""
        said = {"content": brought["content"], "message": brought["message"]}
        self._taint.note(name, brought["status"], said, label)

    def adopt(self, brought: Mapping[str, Any]) -> None:
        """Count what a run that this one started has used of the tools, once that is recorded."""
        self._used.update(brought["used"])
        self._received.update(brought["received"])

    async def use(self, call: ToolCall, key: CallKey) -> Outcome:
        """May leave by an exception of `approver` alone, which suspends the run."""
        outcome = await self._judged(call, key, stands_in=False)
        ran, said = (outcome.instead or call).tool, {"content": outcome.content, "message": outcome.message}
        self._taint.note(ran, outcome.status, said, outcome.label)
        return outcome

    async def _judged(self, call: ToolCall, key: CallKey, *, stands_in: bool) -> Outcome:
        tool = self._tools.get(call.tool)
        if tool is None:
            return _invalid(call.tool, f"There is no tool {call.tool!r}. Use one of: {', '.join(sorted(self._tools))}.")
        try:
            args = tool.spec.args.model_validate(call.args)
        except ValidationError as error:
            return _invalid(call.tool, _complaint(error))
        told = args.model_dump(mode="json")
        moment = await self._taint.moment(self._used, self._received)
        decision = decide(self.policy, tool.spec, told, replace(moment, stands_in=stands_in))
        if decision.verdict is Verdict.ASK:
            decision = await self._asked(tool.spec, told, decision, key)
        if decision.verdict is Verdict.REPLACE:
            return await self._replaced(tool.spec, decision, key)
        if not decision.allowed:
            return _denied(tool.spec, decision)
        return await self._started(tool, call, args, key, decision)

    async def _asked(self, spec: ToolSpec, args: dict[str, Any], decision: Decision, key: CallKey) -> Decision:
        """What a person says to a call that a rule leaves to one."""
        answer = await self._approver.approve(Approval(spec.name, args, decision.rule, decision.reason), key)
        if answer.allowed:
            return Decision(Verdict.ALLOW, decision.rule)
        words = answer.words or "A person was asked and said no."
        return Decision(Verdict.DENY, decision.rule, words)

    async def _replaced(self, spec: ToolSpec, decision: Decision, key: CallKey) -> Outcome:
        """A message for a result, or another call, which is judged like any and stands in for this one."""
        if decision.instead is None:
            return _denied(spec, decision)
        instead = ToolCall(decision.instead.tool, decision.instead.args)
        outcome = await self._judged(instead, key, stands_in=True)
        rule = f"{decision.rule}; {outcome.rule}" if outcome.rule else decision.rule
        return replace(outcome, rule=rule, instead=outcome.instead or instead)

    async def _started(self, tool: Tool, call: ToolCall, args: BaseModel, key: CallKey, decision: Decision) -> Outcome:
        self._used[tool.spec.name] += 1
        if not await self._may_start(tool.spec, call, key):
            return _unknown(tool.spec)
        outcome = await self._execute(tool, args, key, decision)
        self._received[tool.spec.name] += size_of(outcome.content)
        return outcome

    async def _may_start(self, spec: ToolSpec, call: ToolCall, key: CallKey) -> bool:
        """Declare an effect. False: it was declared before a loss and must not happen twice."""
        if spec.effect is Effect.PURE:
            return True
        fence = self._recorder.fence
        async with self._database.transaction(fence.tenant) as connection:
            args = redact_value(call.args)
            fresh = await intents.declare(connection, fence, key, spec.name, args, spec.effect)
        return fresh or spec.effect is Effect.IDEMPOTENT

    async def _execute(self, tool: Tool, args: BaseModel, key: CallKey, decision: Decision) -> Outcome:
        self._recorder.check()
        spec = tool.spec
        name = f"{self._recorder.fence.run}:{key.superstep}:{key.path}:{key.ordinal}"
        try:
            async with asyncio.timeout(spec.timeout_seconds):
                output = await _answered(tool, args, replace(self._scope, idempotency_key=name))
        except TimeoutError:
            message = f"{spec.name} did not finish within {spec.timeout_seconds:g} seconds."
            return Outcome(ToolStatus.TIMEOUT, message, spec.verb, message=message, rule=decision.rule, label=PLATFORM)
        except (ToolFailed, InvalidInput, NotFound) as error:
            label = observation(spec, {})
            return Outcome(
                ToolStatus.FAILED, str(error), spec.verb, message=str(error), rule=decision.rule, label=label
            )
        return _done(spec, output, decision)


async def _answered(tool: Tool, args: BaseModel, scope: ToolScope) -> ToolOutput:
    """The tool's answer, asked for again while a server of ours is away and repeating does no harm."""
    while True:
        try:
            return await tool(args, scope)
        except Unavailable:
            if tool.spec.effect is Effect.AT_MOST_ONCE:
                raise
            await asyncio.sleep(RETRY_PAUSE)


def size_of(content: Mapping[str, Any]) -> int:
    """Bytes of what a tool answered, as JSON in UTF-8, spaced as Postgres does it."""
    return len(json.dumps(content, ensure_ascii=False).encode()) if content else 0


def _done(spec: ToolSpec, output: ToolOutput, decision: Decision) -> Outcome:
    return Outcome(
        ToolStatus.OK,
        output.title,
        spec.verb,
        content=output.content,
        detail=output.detail,
        spans=output.spans,
        rule=decision.rule,
        label=observation(spec, output.content),
    )


def _invalid(name: str, message: str) -> Outcome:
    return Outcome(ToolStatus.INVALID, f"{name or 'tool'}: {message}", "failed", message=message, label=PLATFORM)


def _denied(spec: ToolSpec, decision: Decision) -> Outcome:
    message = f"{spec.name} is not allowed: {decision.reason}"
    return Outcome(ToolStatus.DENIED, message, "failed", message=message, rule=decision.rule, label=PLATFORM)


def _unknown(spec: ToolSpec) -> Outcome:
    message = (
        f"A worker was lost while {spec.name} ran; whether it had its effect is not known, and it is not repeated."
    )
    return Outcome(ToolStatus.UNKNOWN_OUTCOME, message, "failed", message=message, label=PLATFORM)


def _complaint(error: ValidationError) -> str:
    """Which arguments are wrong and how, for a model that will try again."""
    return "; ".join(f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg']}" for e in error.errors()[:5])
