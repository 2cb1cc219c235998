"""Using a tool: validate, decide, declare the effect, execute within its time, and say what came of it.

The one place where the tool policy is enforced. Never raises for what a tool or a model did.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel, ValidationError

from offing.core.errors import InvalidInput, NotFound, Unavailable
from offing.core.policy import Decision, Policy, PolicyContext, decide
from offing.core.provenance import NOBODY, PLATFORM, Label, observation
from offing.core.step import CallKey
from offing.core.tool import Effect, Span, ToolOutput, ToolSpec, ToolStatus
from offing.sdk import ToolCall
from offing.storage import intents
from offing.storage.pool import Database
from offing.tools.tool import Tool, ToolFailed, ToolScope
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
    """The policy rule that decided. Empty: it was not asked."""
    label: Label = NOBODY
    """Where content and message came from, by the tool that really ran."""


class Toolbelt:
    """The tools of one claim.

    `policy` None: the run has no valid one, and every call is denied. `used`: calls of each tool that earlier claims
    made, for limits on their number.
    """

    def __init__(
        self,
        tools: Mapping[str, Tool],
        policy: Policy | None,
        scope: ToolScope,
        database: Database,
        recorder: Recorder,
        used: Mapping[str, int],
    ) -> None:
        self._tools, self._policy, self._scope = tools, policy, scope
        self._database, self._recorder = database, recorder
        self._used = Counter[str](used)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        rules = self._policy.rules if self._policy else ()
        allowed = {rule.tool for rule in rules if rule.effect == "allow"}
        return tuple(tool.spec for name, tool in self._tools.items() if name in allowed)

    async def use(self, call: ToolCall, key: CallKey) -> Outcome:
        tool = self._tools.get(call.tool)
        if tool is None:
            return _invalid(call.tool, f"There is no tool {call.tool!r}. Use one of: {', '.join(sorted(self._tools))}.")
        try:
            args = tool.spec.args.model_validate(call.args)
        except ValidationError as error:
            return _invalid(call.tool, _complaint(error))
        decision = decide(self._policy, tool.spec, args.model_dump(mode="json"), PolicyContext(used=self._used))
        if not decision.allowed:
            return _denied(tool.spec, decision)
        self._used[call.tool] += 1
        if not await self._may_start(tool.spec, call, key):
            return _unknown(tool.spec)
        return await self._execute(tool, args, key, decision)

    async def _may_start(self, spec: ToolSpec, call: ToolCall, key: CallKey) -> bool:
        """Declare an effect. False: it was declared before a loss and must not happen twice."""
        if spec.effect is Effect.PURE:
            return True
        fence, term = self._recorder.fence, self._recorder.term
        async with self._database.transaction(fence.tenant) as connection:
            fresh = await intents.declare(connection, fence, term, key, spec.name, call.args, spec.effect)
        return fresh or spec.effect is Effect.IDEMPOTENT

    async def _execute(self, tool: Tool, args: BaseModel, key: CallKey, decision: Decision) -> Outcome:
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
