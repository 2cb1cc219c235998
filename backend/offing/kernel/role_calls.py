"""Execute the role calls of one claim.

A role call passes its call key, the journal, the budget, the engine and the output check, and ends
with one append.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from offing.core.model import (
    EngineConfig,
    EngineFailure,
    EngineResponse,
    FailedAttempt,
    FailureKind,
    get_smallest_answer,
    get_smallest_window,
)
from offing.core.role_call import CallOrigin, extract_rejected_completions
from offing.core.step import Step, StepDraft, StepKind
from offing.core.token_checks import check_token_trace
from offing.core.trajectory import BoundaryReason
from offing.kernel import step_drafts
from offing.kernel.answer_drafts import create_draft_writer
from offing.kernel.budget import RunBudget
from offing.kernel.call_key import CallKeys, NodeCall
from offing.kernel.journal import Journal
from offing.kernel.report_writer import ReportWriter
from offing.kernel.run_store import JournalEntry, LiveSink, RoleCallAttachment
from offing.kernel.segment_tracker import SegmentTracker
from offing.kernel.trace_spans import CallSpans, set_response_attributes
from offing.models.engine import RoleRequest, TextListener, can_revise, create_engine
from offing.models.stored_provider import FindProvider, find_no_provider
from offing.sdk import Role, RoleReply
from offing.sdk.library_excerpt import LibraryExcerpt, add_excerpt
from offing.sdk.type_vars import Input, Output
from offing.telemetry.redaction import redact
from offing.tools.environment import extend_role


class RoleEngines(Protocol):
    """Answers the roles of a run."""

    def get_config(self, role: str) -> EngineConfig:
        """Return the engine config of a role."""
        ...

    def has_config(self, role: str) -> bool:
        """Return whether the run names an engine for a role."""
        ...

    async def answer_role(self, request: RoleRequest) -> EngineResponse | EngineFailure: ...


@dataclass(frozen=True, slots=True)
class ConfiguredEngines:
    """The engines in the configuration of a run, by role."""

    configs: Mapping[str, EngineConfig]
    find_provider: FindProvider = find_no_provider
    """Finds the stored providers of the run's tenant."""

    def get_config(self, role: str) -> EngineConfig:
        return self.configs.get(role, EngineConfig())

    def has_config(self, role: str) -> bool:
        return role in self.configs

    async def answer_role(self, request: RoleRequest) -> EngineResponse | EngineFailure:
        engine = create_engine(request.engine_config)
        if isinstance(engine, EngineFailure):
            return engine
        return await engine.answer(replace(request, find_provider=self.find_provider))


@dataclass(frozen=True, slots=True)
class _NewRoleCall:
    """A role call that is not recorded."""

    role: Role[Any, Any]
    inputs: Any
    engine_config: EngineConfig
    call: NodeCall
    turn: int
    boundary: BoundaryReason | None


@dataclass(frozen=True, slots=True)
class RoleCallComponents:
    """The components of a run that its role calls pass. All belong to one epoch of a claim."""

    call_keys: CallKeys
    journal: Journal
    budget: RunBudget
    segments: SegmentTracker
    reports: ReportWriter
    spans: CallSpans
    sink: LiveSink
    monotonic: Callable[[], float]


@dataclass(frozen=True, slots=True)
class RoleCallSettings:
    """Settings for all role calls of a run."""

    seed: int
    counts_calls_as_turns: bool = False
    """Each call counts as a turn, for graphs that do not count turns."""
    excerpts: Mapping[str, LibraryExcerpt] = field(default_factory=dict[str, LibraryExcerpt])
    """Texts of prompt libraries, by role."""
    flushes_before_calls: bool = True
    """Buffered steps are written before a slow call, so that a person sees them during the call."""


class RoleCaller:
    """Executes the role calls of one claim."""

    def __init__(self, components: RoleCallComponents, engines: RoleEngines, settings: RoleCallSettings) -> None:
        self._components, self._engines, self._settings = components, engines, settings

    def get_context_tokens(self, role: str) -> int | None:
        """See `offing.sdk.RunContext.get_context_tokens`."""
        return get_smallest_window(self._engines.get_config(role))

    def get_answer_tokens(self, role: str) -> int | None:
        """See `offing.sdk.RunContext.get_answer_tokens`."""
        return get_smallest_answer(self._engines.get_config(role))

    async def call_role(
        self, role: Role[Input, Output], inputs: Input, *, turn: int = 0, boundary: BoundaryReason | None = None
    ) -> RoleReply[Output] | EngineFailure:
        """See `offing.sdk.RunContext.call_role`."""
        role = extend_role(role)
        call = self._components.call_keys.next_call(role.name, inputs)
        if step := self._components.journal.take_recorded(call, frozenset({role.step_kind, StepKind.FAILURE})):
            self._components.journal.recorded_calls.compare_prompt(role, inputs, step)
            self._components.reports.note_author(role, step)
            return reply_from_step(role, step)
        if self._settings.counts_calls_as_turns and (reason := self._components.budget.begin_call_turn(call.key)):
            return EngineFailure(FailureKind.BUDGET_EXHAUSTED, "No room for another call.", stop_reason=reason)
        self._components.journal.check_new(call)
        new_call = _NewRoleCall(role, inputs, self._engines.get_config(role.name), call, turn, boundary)
        if new_call.engine_config.engine != "extractive":
            if self._settings.flushes_before_calls:
                await self._components.journal.flush()  # a slow call must not delay the steps before it
            await self._components.segments.load()  # before the call, so that its answer can be recorded without delay
        listener = create_draft_writer(self._components.sink, role, call.key)
        try:
            return await self._execute(new_call, listener)
        except BaseException:
            self._components.journal.usage_ledger.detach_call(call.key)
            raise
        finally:
            if listener is not None:
                await listener.end()  # after the step, which replaces the draft

    def can_revise(self, role: str) -> bool:
        """See `offing.sdk.RunContext.can_revise`."""
        return can_revise(self._engines.get_config(role))

    def has_engine(self, role: str) -> bool:
        """See `offing.sdk.RunContext.has_engine`."""
        return self._engines.has_config(role)

    async def _execute(self, new_call: _NewRoleCall, listener: TextListener | None) -> RoleReply[Any] | EngineFailure:
        role, choice, began = new_call.role, new_call.engine_config, self._components.monotonic()
        await self._components.sink.publish_action(
            redact(f"{role.label or role.step_kind}: {choice.model or choice.engine}")
        )
        with self._components.spans.open_role_span(new_call.call, role.name, choice, new_call.turn) as opened:
            answer = await self._engines.answer_role(replace(self._build_request(new_call), text_listener=listener))
            set_response_attributes(opened, answer)
        ms = int((self._components.monotonic() - began) * 1000)
        if isinstance(answer, EngineFailure):
            draft = step_drafts.draft_failure(role, choice, answer, new_call.call.key, new_call.turn, ms)
            draft = self._components.journal.mark_reexecuted(new_call.call, draft, answer.usage.cost_usd)
            await self._append(new_call, draft, answer.attempts)
            return answer
        draft = step_drafts.draft_role_call(role, choice, answer, new_call.call.key, new_call.turn, ms)
        draft = self._components.journal.mark_reexecuted(new_call.call, draft, answer.usage.cost_usd)
        step = await self._append(new_call, draft, answer.attempts, answer)
        self._components.reports.note_author(role, step)
        return RoleReply(step.seq, answer.output, (answer.usage.prompt_tokens, answer.usage.completion_tokens))  # pyright: ignore[reportUnknownVariableType]

    def _build_request(self, new_call: _NewRoleCall) -> RoleRequest:
        role, call = new_call.role, new_call.call
        if advice := self._settings.excerpts.get(role.name):
            role = add_excerpt(role, advice)
        meter, seconds_left = self._components.budget.create_meter(call.key), self._components.budget.seconds_left
        recall, seed_text = self._components.segments.find_prefix, call.seed_text
        return RoleRequest(
            role,
            new_call.inputs,
            new_call.engine_config,
            new_call.turn,
            self._settings.seed,
            meter,
            seconds_left,
            recall,
            seed_text,
        )

    async def _append(
        self,
        new_call: _NewRoleCall,
        draft: StepDraft,
        attempts: Sequence[FailedAttempt],
        response: EngineResponse | None = None,
    ) -> Step:
        """Append a role call: one entry per rejected completion, followed by the entry of the call."""
        role, rejected = new_call.role.name, extract_rejected_completions(attempts)
        for sampled in (r.completion.trace for r in rejected):
            check_token_trace(sampled, sampled.text)
        if response is not None and response.trace is not None:
            check_token_trace(response.trace, response.text)
        origin = CallOrigin(role, new_call.engine_config.engine, new_call.call.key.superstep)
        unusable = [
            JournalEntry(
                step_drafts.draft_rejected(new_call.role, new_call.engine_config, one, new_call.turn),
                RoleCallAttachment(origin, one, self._components.segments.assign_rejected(role, one.completion)),
            )
            for one in rejected
        ]
        position = self._components.segments.assign_position(role, response, new_call.boundary) if response else None
        record = RoleCallAttachment(origin, response, position) if response else None
        *_, step = await self._components.journal.append(*unusable, JournalEntry(draft, record))
        self._components.segments.set_tail_seq(role, position, step.seq)
        return step


def reply_from_step(role: Role[Any, Output], step: Step) -> RoleReply[Output] | EngineFailure:
    """Return the recorded result of a role call."""
    payload = step.payload
    if step.kind is StepKind.FAILURE:
        return EngineFailure(FailureKind(payload["failure"]), payload["message"], stop_reason=payload["stop"])
    prompt, completion = payload.get("used", (0, 0))
    return RoleReply(step.seq, role.output.model_validate(payload["output"]), (prompt, completion))
