"""A stored run replayed in a test: every call is answered from its record, and the graph must ask for the same.

The form of the recording's file is here; the replay is the platform's own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid5

import orjson
from langgraph.checkpoint.memory import InMemorySaver

from offing.core.evidence import EvidenceBook
from offing.core.provenance import label_in
from offing.core.run import Budget
from offing.core.step import CallKey, Step, StepKind
from offing.core.tool import Span
from offing.kernel import replay
from offing.sdk import Graph, RunView
from offing.services.graphs import Catalogue
from offing.services.tool_rules import starting_policy
from offing.testing.documents import NAMES
from offing.testing.rehearsal import Rehearsal
from offing.tools import registry

FORMAT = "offing-recording/1"


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


class Diverged(AssertionError):
    """The graph did something else than what is recorded."""


async def replayed(graph: Graph, recording: Recording) -> Rehearsal:
    """Replay a recording. Raises Diverged with the first difference."""
    texts = _passages(recording.steps)
    own = Catalogue([graph])[graph.name]
    tools = tuple(tool for tool in own.tools if not isinstance(tool, str))
    result = await replay.replay(
        graph,
        replay.Recording(
            run=_run(recording),
            steps=recording.steps,
            stop_reason=recording.reason,
            policy=starting_policy(own),
            tools=registry(own=tools),
        ),
        lambda span: texts.get(span, ""),
        None,
        InMemorySaver,
    )
    if not result.same:
        raise Diverged(result.detail)
    return Rehearsal(
        report=result.report,
        steps=recording.steps,
        state=result.values,
        executed=(),
        evidence=_book(recording.steps).latest(10_000),
        spent=result.spent,
        moments=0,
        losses=0,
        lost_in=None,
        checkpoint_sizes=(),
    )


def _run(recording: Recording) -> RunView:
    r = recording
    return RunView(uuid5(NAMES, r.question), r.question, r.earlier, r.budget, r.seed)


def _book(steps: Sequence[Step]) -> EvidenceBook:
    book = EvidenceBook()
    for step in steps:
        if step.kind is StepKind.TOOL:
            book.add(step.payload["content"], label_in(step.payload))
    return book


def _passages(steps: Sequence[Step]) -> Mapping[Span, str]:
    """What the run retrieved: the only texts that a recording has."""
    return {piece.span: piece.text for piece in _book(steps).all().values()}


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
    where = [key.superstep, key.path, key.ordinal, key.digest] if key else None
    return {name: getattr(s, name) for name in names} | {"at": s.at.isoformat(), "key": where}
