"""A stored run replayed in a test: every call is answered from its record, and the graph must ask for the same.

The only home of the recording's form. What time, money or a person decided is not on record; at which look such a stop
showed is found by trying.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson

from offing.core.run import Budget, StopReason, exhausted
from offing.core.step import CallKey, Step, StepKind
from offing.core.tool import Span
from offing.sdk import Graph, Role, ToolCall
from offing.testing.context import RehearsedContext
from offing.testing.rehearsal import Rehearsal, finished, worked
from offing.testing.scene import Scene
from offing.testing.stage import Stage

FORMAT = "offing-recording/1"
LOOKS = 8
"""How many looks back from a difference are tried for a stop that is not on record."""


class Diverged(AssertionError):
    """The graph did something else than what is recorded."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A run as `offing graph record RUN FILE` writes it."""

    question: str
    steps: tuple[Step, ...]
    budget: Budget = field(default_factory=Budget)
    earlier: tuple[tuple[str, str], ...] = ()
    seed: int = 0
    reason: str = ""
    """Why the run ended, a StopReason."""

    @classmethod
    def read(cls, file: Path) -> "Recording":
        """Raises ValueError for a file in another form."""
        return cls.of(orjson.loads(file.read_bytes()))

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "Recording":
        if data.get("format") != FORMAT:
            raise ValueError(f"This is no recording: its format is {data.get('format')!r}, and must be {FORMAT}.")
        budget = dict(data["budget"])
        if budget.get("usd") is not None:
            budget["usd"] = Decimal(str(budget["usd"]))
        earlier = tuple((question, answer) for question, answer in data["earlier"])
        steps = tuple(map(_step, data["steps"]))
        return cls(data["question"], steps, Budget(**budget), earlier, data["seed"], data["reason"])


async def replayed(graph: Graph, recording: Recording) -> Rehearsal:
    """Replay a recording. Raises Diverged with the first difference."""
    looks = _Looks()
    try:
        return await _attempt(graph, recording, looks)
    except Diverged as first:
        if recording.reason in (StopReason.ANSWERED, StopReason.NOTHING_FOUND, StopReason.TURN_LIMIT):
            raise
        for look in range(looks.count - 1, max(-1, looks.count - 1 - LOOKS), -1):
            try:
                return await _attempt(graph, recording, _Looks(look))
            except Diverged:
                continue
        raise first from None


@dataclass
class _Looks:
    """How often the graph asked whether to stop. `stop_at`: the look from which it is told to. None: never."""

    stop_at: int | None = None
    count: int = 0


async def _attempt(graph: Graph, recording: Recording, looks: _Looks) -> Rehearsal:
    r = recording
    stage = Stage(graph, Scene(r.question, budget=r.budget, earlier=r.earlier, seed=r.seed))
    context = ReplayingContext(stage, r, looks)
    state = await worked(stage, context, begun=False)
    context.finish()
    return finished(stage, state)


class ReplayingContext(RehearsedContext):
    """Answers from a record; nothing is executed."""

    def __init__(self, stage: Stage, recording: Recording, looks: _Looks) -> None:
        keyed = {step.key: step for step in recording.steps if step.key is not None}
        super().__init__(stage, keyed)
        self._recording, self._looks = recording, looks
        self._first = min((key.superstep for key in keyed), default=0)
        self._shift: int | None = None
        stage.text_of = self._text_of

    def stop(self) -> StopReason | None:
        look, self._looks.count = self._looks.count, self._looks.count + 1
        if self._looks.stop_at is not None and look >= self._looks.stop_at:
            return StopReason(self._recording.reason)
        budget = replace(self.run.budget, tokens=None, usd=None, seconds=None)
        return exhausted(replace(self.spent, turns=self.spent.turns - 1), budget)

    async def call(self, role: Role[Any, Any], given: Any, *, turn: int = 0, fracture: Any = None) -> Any:
        self._expect("role", role.name)
        return await super().call(role, given, turn=turn, fracture=fracture)

    async def use(self, call: ToolCall, *, turn: int = 0) -> Any:
        self._expect("tool", call.tool)
        result = await super().use(call, turn=turn)
        now = orjson.loads(orjson.dumps(call.args, default=str))
        if now != result.args:
            raise Diverged(f"step {result.seq}: {call.tool} was called with {result.args}, and now with {now}")
        return result

    def finish(self) -> None:
        """The graph has ended: nothing may be left of the record."""
        self.settle()
        if self._journal:
            left = min(self._journal.values(), key=lambda step: step.seq)
            raise Diverged(f"the graph ended, and the record goes on with step {left.seq}: {left.kind} {left.title!r}")

    def _expect(self, what: str, name: str) -> None:
        self._wanted = what, name

    def _key(self) -> CallKey:
        key = super()._key()
        if self._shift is None:
            self._shift = self._first - key.superstep
        return replace(key, superstep=key.superstep + self._shift)

    def _recorded(self, key: CallKey, expected: frozenset[str]) -> Step | None:
        step = self._journal.get(key)
        what, name = getattr(self, "_wanted", ("", ""))
        self._wanted = "", ""
        if step is None:
            raise Diverged(f"the graph asks for {name or ' or '.join(sorted(expected))} at {key}; nothing is recorded")
        if step.kind not in expected:
            raise Diverged(f"step {step.seq}: recorded {step.kind} {step.title!r}, and the graph asks for {name}")
        if what and step.payload.get(what) != name:
            raise Diverged(f"step {step.seq}: {what} {step.payload.get(what)!r} is recorded, and now it is {name!r}")
        del self._journal[key]
        self._show(step)
        return step

    def _show(self, step: Step) -> None:
        """What the run had seen by then."""
        shown = {s.seq for s in self._stage.steps}
        new = [s for s in self._recording.steps if s.seq <= step.seq and s.seq not in shown and self._may_show(s, step)]
        self._stage.steps = sorted([*self._stage.steps, *new], key=lambda s: s.seq)

    def _may_show(self, other: Step, step: Step) -> bool:
        return other.key is None or other is step

    def _text_of(self, span: Span) -> str:
        return next((e.text for e in self._stage.book().all().values() if e.span == span), "")


def _step(data: Mapping[str, Any]) -> Step:
    key = data["key"]
    fields = {name: data[name] for name in ("seq", "title", "payload", "label", "detail", "ok", "ms", "tokens", "turn")}
    at = datetime.fromisoformat(data["at"])
    return Step(**fields, kind=StepKind(data["kind"]), at=at, fence=1, key=CallKey(*key) if key else None)


def as_json(recording: Recording) -> dict[str, Any]:
    """The recording as its file holds it."""
    r = recording
    return {
        "format": FORMAT,
        "question": r.question,
        "earlier": [list(pair) for pair in r.earlier],
        "budget": {
            "turns": r.budget.turns,
            "tokens": r.budget.tokens,
            "usd": None if r.budget.usd is None else str(r.budget.usd),
            "seconds": r.budget.seconds,
        },
        "seed": r.seed,
        "reason": r.reason,
        "steps": [_as_json(step) for step in r.steps],
    }


def _as_json(step: Step) -> dict[str, Any]:
    s, key = step, step.key
    names: Sequence[str] = ("seq", "kind", "title", "payload", "label", "detail", "ok", "ms", "tokens", "turn")
    where = [key.superstep, key.path, key.ordinal] if key else None
    return {name: getattr(s, name) for name in names} | {"at": s.at.isoformat(), "key": where}
