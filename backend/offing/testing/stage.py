"""What of a rehearsed run outlives its workers: its store, its checkpoints, and what was executed.

Here are the moments at which a worker can be lost: before and after each write, and after each declared side effect.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid5

from offing.core.evidence import EvidenceBook
from offing.core.model import Answer, EngineChoice, EngineFailure
from offing.core.policy import Policy, graph_tool
from offing.core.provenance import label_in
from offing.core.run import StopReason
from offing.core.step import CallKey, Step, StepDraft, StepKind
from offing.core.store_item import ItemPut
from offing.core.tool import Effect, ToolOutput, ToolSpec
from offing.core.usage import UsageDelta
from offing.kernel.memory_store import MemoryRunStore
from offing.kernel.opening import OpenRun, RunSetup, open_run
from offing.kernel.recorded_calls import CallsSinceCheckpoint, Intent
from offing.kernel.store import Entry, Hook
from offing.models.engine import RoleRequest
from offing.sdk import Graph, RunView
from offing.sdk.tool import ToolFailed
from offing.services.graphs import Catalogue
from offing.services.tool_rules import starting_policy
from offing.storage.migrate import LOCAL_TENANT
from offing.testing.clock import VirtualClock
from offing.testing.documents import NAMES, Documents
from offing.testing.saving import MemorySaver
from offing.testing.scene import Scene
from offing.tools import Tool, registry
from offing.tools.tool import ToolScope


class Lost(BaseException):
    """The worker is gone. A node must not catch it, as it could not catch a power cut."""


@dataclass(frozen=True, slots=True)
class Executed:
    """A role or tool that really was asked: not one that was read back."""

    name: str
    given: Any
    key: CallKey
    turn: int
    """Of a role call. 0: outside the loop, or a tool call."""


class Stage:
    """One run. `lose_at`: the moment, from 0, at which its worker is lost. None: it never is."""

    def __init__(self, graph: Graph, scene: Scene, lose_at: int | None = None) -> None:
        offered = {tool.spec.name: tool for tool in scene.tools}
        self.graph = Catalogue([graph], offered)[graph.name]
        self.scene, self._lose_at = scene, lose_at
        self.run = RunView(uuid5(NAMES, scene.question), scene.question, scene.earlier, scene.budget, scene.seed)
        self.documents, self.clock = Documents(scene.documents), VirtualClock(dict(scene.takes))
        self.policy: Policy = scene.policy or starting_policy(self.graph)
        own = tuple(tool for tool in self.graph.tools if not isinstance(tool, str))
        self.tools = tuple(_Rehearsed(self, tool) for tool in registry(own=own))
        self.saver = MemorySaver(graph.turn_key)
        self.store = _Store(self)
        self.executed: list[Executed] = []
        self.moments, self.losses, self._gone = 0, 0, False
        self.lost_in: Executed | None = None

    @property
    def steps(self) -> list[Step]:
        return self.store.steps

    def open(self, after: int | None) -> OpenRun:
        """Let a worker take the run. `after`: the superstep that it continues behind. None: from the beginning."""
        self._gone, first = False, not self.store.stored
        behind = -2 if after is None else after
        recorded = {s.key: s for s in self.steps if s.key is not None and s.key.superstep > behind}
        intents = self.store.intents.items()
        setup = RunSetup(
            run=self.run,
            graph=self.graph,
            recorded=CallsSinceCheckpoint(recorded, [Intent(k, *i) for k, i in intents if k.superstep > behind]),
            last_seq=len(self.steps),
            fence=1,
            scope=ToolScope(LOCAL_TENANT, self.run.id, "", self.documents),
            tools=self.tools,
            policy=self.policy,
            spent=self.store.spent,
            fresh=first,
            used=self._used(),
            items=[ItemPut(*one) for one in self.scene.items],
        )
        clock = self.clock
        return open_run(setup, self.store, _Engines(self), _Controls(self), _Nobody(), lambda: clock.seconds)

    @property
    def is_lost(self) -> bool:
        """Whether the worker that holds the run is gone."""
        return self._gone

    def check_worker(self) -> None:
        """Raises Lost where the worker is gone: what ran beside the branch that was lost does nothing more."""
        if self._gone:
            raise Lost("The worker is gone.")

    def moment(self, doing: Executed | None = None) -> None:
        """A worker may be lost here. Raises Lost where it is. `doing`: what had been begun and not executed."""
        self.check_worker()
        nth, self.moments = self.moments, self.moments + 1
        if nth == self._lose_at:
            self._gone = True
            self.losses += 1
            self.lost_in = doing or (self.executed[-1] if self.executed else None)
            raise Lost(f"The worker was lost at moment {nth}.")

    def note(self, name: str, given: Any, key: CallKey, turn: int = 0) -> float:
        """Note that something is really executed, and let its time pass; the seconds that it takes."""
        self.check_worker()
        self.executed.append(Executed(name, given, key, turn))
        return self.clock.pass_for(name)

    def asked(self, role: str) -> int:
        """Calls of a role that were recorded."""
        return sum(step.payload.get("role") == role for step in self.steps)

    def book(self) -> EvidenceBook:
        book = EvidenceBook()
        for step in self.steps:
            if step.kind is StepKind.TOOL:
                book.add(step.payload["content"], label_in(step.payload))
        return book

    def respond(self, numbers: Sequence[int]) -> None:
        """Let a person answer what the run waits for. Raises OutOfAnswers for a request that nobody answers."""
        for number in numbers:
            if (request := self.store.requests[number]).answer is None:
                self.store.respond(number, self.scene.reply(request.asking))

    def _used(self) -> Mapping[str, int]:
        used: dict[str, int] = {}
        for step in self.steps:
            if step.kind is StepKind.TOOL and step.payload["rule"] and step.payload["status"] != "denied":
                ran = (step.payload.get("instead") or step.payload)["tool"]
                ran = graph_tool(ran) if step.payload.get("own") else ran
                used[ran] = used.get(ran, 0) + 1
        return used


@dataclass(frozen=True)
class _Controls:
    """What the scene's person wants."""

    stage: Stage

    def forced_stop(self) -> StopReason | None:
        after = self.stage.scene.write_after
        return StopReason.ASKED_TO_WRITE if after is not None and len(self.stage.steps) >= after else None

    def turn_begun(self) -> None: ...


class _Nobody:
    """Watches nothing."""

    async def steps(self, steps: Sequence[Step], /) -> None: ...

    async def action(self, text: str | None, /) -> None: ...


@dataclass(frozen=True)
class _Engines:
    """Answers roles by the scene."""

    stage: Stage

    def choice(self, role: str) -> EngineChoice:
        scene = self.stage.scene
        form = scene.forms.get(role, "")
        if role in scene.answers:
            return EngineChoice(engine="scripted", form=form)
        if role in scene.rules:
            return EngineChoice(engine="rules", model=scene.rules[role], form=form)
        return EngineChoice(form=form)

    async def answer(self, request: RoleRequest) -> Answer | EngineFailure:
        stage, role = self.stage, request.role
        stage.note(role.name, request.given, _key_in(request.place, "/"), request.turn)
        said = stage.scene.answer(role, request.given, stage.asked(role.name), request.turn)
        return said if isinstance(said, EngineFailure) else Answer(output=said)


@dataclass(frozen=True)
class _Rehearsed:
    """A tool that takes its time on the virtual clock, and fails where the scene says so."""

    stage: Stage
    tool: Tool

    @property
    def spec(self) -> ToolSpec:
        return self.tool.spec

    async def __call__(self, args: Any, scope: ToolScope) -> ToolOutput:
        name = self.spec.name
        key = _key_in(scope.idempotency_key.partition(":")[2], ":")
        seconds = self.stage.note(name, args.model_dump(mode="json"), key)
        if words := self.stage.scene.failing_tools.get(name):
            raise ToolFailed(words)
        if seconds > self.spec.timeout_seconds:
            raise TimeoutError
        return await self.tool(args, scope)


class _Store(MemoryRunStore):
    """The run's store. A worker may be lost before and after each write."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage.documents.text_of, lambda: stage.clock.now)
        self.stage = stage

    async def write(self, entries: Sequence[Entry], usage: UsageDelta, hook: Hook | None = None) -> list[Step]:
        """With the checkpoints that are due, and behind what people have written by then."""
        self.stage.moment()
        if words := self.stage.scene.people.get(len(self.stored)):
            self.place(StepDraft(StepKind.HUMAN, words, {"text": words}))
        new = await super().write(entries, usage, hook)
        saver = self.stage.saver
        saver.saved(await saver.save(None))
        self.stage.moment()
        return new

    async def declare_intent(self, key: CallKey, tool: str, args: Mapping[str, Any], effect: Effect) -> bool:
        self.stage.check_worker()
        fresh = await super().declare_intent(key, tool, args, effect)
        self.stage.moment(Executed(tool, args, key, 0))
        return fresh


def _key_in(text: str, mark: str) -> CallKey:
    """The call key in a text of superstep, path and ordinal with marks between them."""
    superstep, _, rest = text.partition(mark)
    path, _, ordinal = rest.rpartition(mark)
    return CallKey(int(superstep), path, int(ordinal))
