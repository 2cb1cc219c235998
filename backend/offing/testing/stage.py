"""What of a rehearsed run outlives its workers: steps, checkpoints, effects that were declared, and what was executed.

The only home of the moments at which a worker can be lost. Knows no graph's nodes.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid5

import orjson

from offing.core.evidence import EvidenceBook
from offing.core.policy import Policy
from offing.core.report import Report
from offing.core.run import Spent
from offing.core.step import CallKey, Step, StepDraft, StepKind
from offing.core.tool import Span
from offing.sdk import Graph, RunView
from offing.services.graphs import Catalogue
from offing.services.tool_rules import starting_policy
from offing.testing.clock import VirtualClock
from offing.testing.documents import NAMES, Documents
from offing.testing.saving import MemorySaver
from offing.testing.scene import Scene
from offing.tools import Tool, registry


class Lost(BaseException):
    """The worker is gone. A node must not catch it, as it could not catch a power cut."""


@dataclass(frozen=True, slots=True)
class Executed:
    """A role or tool that really was asked: not one that was read back."""

    name: str
    given: Any
    key: CallKey
    turn: int


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
        self.tools: dict[str, Tool] = {tool.spec.name: tool for tool in registry(own=own)}
        self.saver = MemorySaver(graph.turn_key)
        self.text_of: Callable[[Span], str] = self.documents.text_of
        self.steps: list[Step] = []
        self.executed: list[Executed] = []
        self.intents: set[CallKey] = set()
        self.spent = Spent()
        self.report: Report | None = None
        self.moments, self.losses, self._gone = 0, 0, False
        self.lost_in: Executed | None = None

    def check_worker(self) -> None:
        """Raises Lost where the worker is gone: what ran beside the branch that was lost does nothing more."""
        if self._gone:
            raise Lost("The worker is gone.")

    def moment(self) -> None:
        """A worker may be lost here. Raises Lost where it is."""
        self.check_worker()
        nth, self.moments = self.moments, self.moments + 1
        if nth == self._lose_at:
            self._gone = True
            self.losses += 1
            self.lost_in = self.executed[-1] if self.executed else None
            raise Lost(f"The worker was lost at moment {nth}.")

    def append(self, drafts: Sequence[StepDraft]) -> list[Step]:
        """Record steps, with the checkpoint that is due. Raises Lost where the worker is gone."""
        self.check_worker()
        new = [self._placed(draft) for draft in drafts]
        self.saver.save()
        return new

    def journal(self, superstep: int | None) -> dict[CallKey, Step]:
        """What was recorded after a superstep, for the next worker. None: everything."""
        self._gone = False
        after = -2 if superstep is None else superstep
        return {s.key: s for s in self.steps if s.key is not None and s.key.superstep > after}

    def used(self) -> Counter[str]:
        """Calls of each tool that were recorded."""
        return Counter(step.payload["tool"] for step in self.steps if step.kind is StepKind.TOOL)

    def book(self) -> EvidenceBook:
        book = EvidenceBook()
        for step in self.steps:
            if step.kind is StepKind.TOOL:
                book.add(step.payload["content"])
        return book

    def asked(self, role: str) -> int:
        """Calls of a role that were recorded."""
        return sum(step.payload.get("role") == role for step in self.steps)

    def count(self, **changes: Any) -> None:
        self.spent = replace(self.spent, **changes)

    def _placed(self, draft: StepDraft) -> Step:
        if words := self.scene.people.get(len(self.steps)):
            self._place(StepDraft(StepKind.HUMAN, words, {"text": words}))
        return self._place(draft)

    def _place(self, draft: StepDraft) -> Step:
        d, seq = draft, len(self.steps) + 1
        payload = orjson.loads(orjson.dumps(d.payload, default=str, option=orjson.OPT_SORT_KEYS))
        label, at = d.label or d.kind, self.clock.now
        step = Step(seq, d.kind, d.title, payload, label, d.detail, d.ok, d.ms, d.tokens, d.turn, at, 1, d.key)
        self.steps.append(step)
        return step
