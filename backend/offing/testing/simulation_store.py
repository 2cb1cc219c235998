"""State of a simulated run that outlives its workers: store, checkpoints and executed calls.

A worker can crash before and after each write, and after each recorded intent of a side effect.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid5

from offing.core.answer_draft import DraftPart
from offing.core.evidence import EvidenceIndex
from offing.core.model import EngineConfig, EngineFailure, EngineResponse
from offing.core.plan_outline import draft_plan_change
from offing.core.provenance import parse_label
from offing.core.run import StopReason
from offing.core.step import CallKey, Step, StepDraft, StepKind
from offing.core.store_item import ItemPut
from offing.core.tool import SideEffect, ToolOutput, ToolSpec
from offing.core.tool_batch import order_tool_results
from offing.core.tool_policy import ToolPolicy, graph_tool_name
from offing.core.usage import UsageDelta
from offing.kernel.memory_run_store import MemoryRunStore
from offing.kernel.recorded_calls import CallsSinceCheckpoint, Intent
from offing.kernel.run_setup import ActiveRun, RunSetup, build_active_run
from offing.kernel.run_store import JournalEntry, TransactionHook
from offing.models.engine import RoleRequest
from offing.models.own_model import OwnModelEngine, has_own_model
from offing.sdk import Graph, RunInfo
from offing.sdk.tool import ToolFailedError
from offing.services.graphs import GraphRegistry
from offing.services.run_tool_policy import build_default_tool_policy
from offing.storage.migrate import LOCAL_TENANT
from offing.testing.clock import VirtualClock
from offing.testing.documents import UUID_NAMESPACE, Documents
from offing.testing.memory_checkpointer import MemoryCheckpointer
from offing.testing.scenario import Scenario
from offing.tools import Tool, create_tools
from offing.tools.tool import ToolScope


class WorkerLost(BaseException):
    """The worker has crashed.

    A node must not catch this exception, just as it could not catch a power failure.
    """


@dataclass(frozen=True, slots=True)
class ExecutedCall:
    """A call of a role or tool that was executed, not read back from the record."""

    name: str
    inputs: Any
    call_key: CallKey
    turn: int
    """Turn of a role call. 0 means outside the loop, or a tool call."""


class SimulationStore:
    """State of one simulated run.

    `crash_at` is the crash point, from 0, at which its worker crashes. `None` means never.
    """

    def __init__(self, graph: Graph, scenario: Scenario, crash_at: int | None = None) -> None:
        offered = {tool.spec.name: tool for tool in scenario.tools}
        self.graph = GraphRegistry([graph], offered)[graph.name]
        self.scene, self._lose_at = scenario, crash_at
        self.run = RunInfo(
            uuid5(UUID_NAMESPACE, scenario.question),
            scenario.question,
            scenario.prior_exchanges,
            scenario.budget,
            scenario.seed,
            report_style=scenario.report_style,
            interactions=scenario.interactions,
        )
        self.documents, self.clock = Documents(scenario.documents), VirtualClock(dict(scenario.durations_seconds))
        self.policy: ToolPolicy = scenario.tool_policy or build_default_tool_policy(self.graph)
        own = tuple(tool for tool in self.graph.tools if not isinstance(tool, str))
        self.tools = tuple(_SimulatedTool(self, tool) for tool in create_tools(custom=own))
        self.saver = MemoryCheckpointer(graph.turn_counter)
        self.store = _SimulatedRunStore(self)
        self.executed: list[ExecutedCall] = []
        self.moments, self.losses, self._has_crashed = 0, 0, False
        self.lost_in: ExecutedCall | None = None

    @property
    def steps(self) -> list[Step]:
        return self.store.steps

    def open_claim(self, after_superstep: int | None) -> ActiveRun:
        """Let a worker claim the run.

        The worker continues after superstep `after_superstep`. `None` means that it starts from the
        beginning.
        """
        self._has_crashed, first = False, not self.store.stored_entries
        behind = -2 if after_superstep is None else after_superstep
        recorded = {s.call_key: s for s in self.steps if s.call_key is not None and s.call_key.superstep > behind}
        intents = self.store.intents.items()
        setup = RunSetup(
            run=self.run,
            graph=self.graph,
            recorded_calls=CallsSinceCheckpoint(recorded, [Intent(k, *i) for k, i in intents if k.superstep > behind]),
            last_seq=len(self.steps),
            fence=1,
            scope=ToolScope(LOCAL_TENANT, self.run.id, "", self.documents),
            tools=self.tools,
            tool_policy=self.policy,
            run_usage=self.store.run_usage,
            is_first_claim=first,
            call_counts=self._count_tool_calls(),
            items=[ItemPut(*one) for one in self.scene.store_items],
        )
        clock = self.clock
        return build_active_run(
            setup, self.store, _ScenarioEngines(self), _ScenarioControls(self), _NoSubscribers(), lambda: clock.seconds
        )

    @property
    def is_worker_lost(self) -> bool:
        """Whether the worker that claimed the run has crashed."""
        return self._has_crashed

    def check_worker(self) -> None:
        """Raise WorkerLost if the worker has crashed, so that parallel branches do nothing more."""
        if self._has_crashed:
            raise WorkerLost("The worker has crashed.")

    def crash_point(self, call: ExecutedCall | None = None) -> None:
        """Mark a point at which the worker may crash. Raises WorkerLost if it does.

        `call` is a call that has begun but was not executed.
        """
        self.check_worker()
        nth, self.moments = self.moments, self.moments + 1
        if nth == self._lose_at:
            self._has_crashed = True
            self.losses += 1
            self.lost_in = call or (self.executed[-1] if self.executed else None)
            raise WorkerLost(f"The worker crashed at point {nth}.")

    def execute_call(self, name: str, inputs: Any, key: CallKey, turn: int = 0) -> float:
        """Record an executed call, advance the clock by its duration, and return that duration in seconds."""
        self.check_worker()
        self.executed.append(ExecutedCall(name, inputs, key, turn))
        return self.clock.advance_for(name)

    def count_calls(self, role: str) -> int:
        """Return the number of recorded calls of a role."""
        return sum(step.payload.get("role") == role for step in self.steps)

    def build_evidence_index(self) -> EvidenceIndex:
        book = EvidenceIndex()
        for step in order_tool_results(step for step in self.steps if step.kind is StepKind.TOOL_RESULT):
            book.add(step.payload["content"], parse_label(step.payload))
        return book

    def respond(self, seqs: Sequence[int]) -> None:
        """Let a person respond to the pending input requests.

        Raises OutOfAnswersError if the scenario has no response to one of them.
        """
        for number in seqs:
            if (request := self.store.requests[number]).response is None:
                self.store.store_response(number, self.scene.respond(request.input_prompt))

    def _count_tool_calls(self) -> Mapping[str, int]:
        used: dict[str, int] = {}
        for step in self.steps:
            if step.kind is StepKind.TOOL_RESULT and step.payload["rule"] and step.payload["status"] != "denied":
                ran = (step.payload.get("substitute") or step.payload)["tool"]
                ran = graph_tool_name(ran) if step.payload.get("own") else ran
                used[ran] = used.get(ran, 0) + 1
        return used


@dataclass(frozen=True)
class _ScenarioControls:
    """Control requests of the scenario's person."""

    store: SimulationStore

    def forced_stop_reason(self) -> StopReason | None:
        after = self.store.scene.finish_after_steps
        return StopReason.FINISH_REQUESTED if after is not None and len(self.store.steps) >= after else None

    def on_turn_begin(self) -> None: ...


class _NoSubscribers:
    """Live sink without subscribers."""

    async def publish_steps(self, steps: Sequence[Step], /) -> None: ...

    async def publish_action(self, text: str | None, /) -> None: ...

    shows_drafts = False

    async def publish_draft(self, part: DraftPart, /) -> None: ...

    async def end_draft(self, call_id: str, /) -> None: ...


@dataclass(frozen=True)
class _ScenarioEngines:
    """Engines that answer roles from the scenario."""

    store: SimulationStore

    def get_config(self, role: str) -> EngineConfig:
        scene = self.store.scene
        chosen = EngineConfig(
            prompt_format=scene.prompt_formats.get(role, ""),
            context_tokens=scene.context_tokens.get(role),
            answer_tokens=scene.answer_tokens.get(role),
        )
        if role in scene.answers:
            options = {"revises": True} if role in scene.revises else {}
            return chosen.model_copy(update={"engine": "scripted", "options": options})
        if role in scene.rules:
            return chosen.model_copy(update={"engine": "rules", "model": scene.rules[role]})
        return chosen

    def has_config(self, role: str) -> bool:
        return role in self.store.scene.answers or role in self.store.scene.rules

    async def answer_role(self, request: RoleRequest) -> EngineResponse | EngineFailure:
        stage, role = self.store, request.role
        stage.execute_call(role.name, request.inputs, _parse_call_key(request.call_path, "/"), request.turn)
        if role.name not in stage.scene.answers and has_own_model():
            return await OwnModelEngine().answer(request)
        response = stage.scene.answer(role, request.inputs, stage.count_calls(role.name), request.turn)
        return response if isinstance(response, EngineFailure) else EngineResponse(output=response)


@dataclass(frozen=True)
class _SimulatedTool:
    """A tool that advances the virtual clock, and fails if the scenario requires it."""

    store: SimulationStore
    tool: Tool

    @property
    def spec(self) -> ToolSpec:
        return self.tool.spec

    async def __call__(self, args: Any, scope: ToolScope) -> ToolOutput:
        name = self.spec.name
        key = _parse_call_key(scope.idempotency_key.partition(":")[2], ":")
        seconds = self.store.execute_call(name, args.model_dump(mode="json"), key)
        if words := self.store.scene.failing_tools.get(name):
            raise ToolFailedError(words)
        if seconds > self.spec.timeout_seconds:
            raise TimeoutError
        return await self.tool(args, scope)


class _SimulatedRunStore(MemoryRunStore):
    """Store of the run. The worker may crash before and after each write."""

    def __init__(self, store: SimulationStore) -> None:
        super().__init__(store.documents.lookup_text, lambda: store.clock.now)
        self.stage = store

    async def append_entries(
        self, entries: Sequence[JournalEntry], usage: UsageDelta, hook: TransactionHook | None = None
    ) -> list[Step]:
        """Write entries with the checkpoints that are due, after the user messages that have arrived by then."""
        self.stage.crash_point()
        if words := self.stage.scene.user_messages.get(len(self.stored_entries)):
            is_text = isinstance(words, str)
            self.append_external(
                StepDraft(StepKind.USER_MESSAGE, words, {"text": words}) if is_text else draft_plan_change(words)
            )
        new = await super().append_entries(entries, usage, hook)
        saver = self.stage.saver
        saver.confirm_saved(await saver.save_due(None))
        self.stage.crash_point()
        return new

    async def declare_intent(self, key: CallKey, tool: str, args: Mapping[str, Any], side_effect: SideEffect) -> bool:
        self.stage.check_worker()
        fresh = await super().declare_intent(key, tool, args, side_effect)
        self.stage.crash_point(ExecutedCall(tool, args, key, 0))
        return fresh


def _parse_call_key(text: str, separator: str) -> CallKey:
    """Parse a call key from superstep, path and ordinal with separators between them."""
    superstep, _, rest = text.partition(separator)
    path, _, ordinal = rest.rpartition(separator)
    return CallKey(int(superstep), path, int(ordinal))
