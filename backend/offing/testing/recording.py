"""Replay of a recorded run in a test.

Every call is answered from the recording, and the graph must make the same calls. This module
defines the format of the file; the platform does the replay.
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

from offing.core.evidence import EvidenceIndex
from offing.core.follow_up import FollowUp, follow_up_from_json, follow_up_to_json
from offing.core.interaction import Interaction
from offing.core.model import EngineConfig
from offing.core.provenance import parse_label
from offing.core.report_style import ReportStyle
from offing.core.run import Budget, Depth
from offing.core.step import CallKey, Step, StepKind
from offing.core.tool import SourceSpan
from offing.core.tool_batch import order_tool_results
from offing.kernel import replay
from offing.kernel.stored_run import StoredRun
from offing.sdk import Graph, RunInfo
from offing.services.graphs import GraphRegistry
from offing.services.run_tool_policy import build_default_tool_policy
from offing.testing.documents import UUID_NAMESPACE
from offing.testing.simulation import SimulatedRun
from offing.tools import create_tools

RECORDING_FORMAT = "offing-recording/1"
FOLLOW_UP_LABELS = frozenset({"classify", "answer", "edit", "merge"})
"""Labels of the calls that only a model answers in a follow-up."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded run, as `offing graph record RUN FILE` writes it."""

    question: str
    steps: tuple[Step, ...]
    budget: Budget = field(default_factory=Budget)
    earlier: tuple[tuple[str, str], ...] = ()
    seed: int = 0
    reason: str = ""
    """Value of StopReason: why the run ended."""
    context_tokens: Mapping[str, int] = field(default_factory=dict[str, int])
    """Tokens of the context windows of the models that answered roles, by role."""
    report_style: ReportStyle | None = None
    """The report style of the run. `None` means that it had none."""
    revises: tuple[str, ...] = ()
    """Roles whose engine can correct a draft. Empty means none, or that the recording does not say."""
    follow_up: FollowUp | None = None
    """The earlier report that the run is about. `None` means that there is none."""
    answer_tokens: Mapping[str, int] = field(default_factory=dict[str, int])
    """Maximum tokens of an answer of the models that answered roles, by role."""
    interactions: frozenset[Interaction] = frozenset()
    """When the run asked a person before it researched."""

    @classmethod
    def read_file(cls, path: Path) -> "Recording":
        """Read a recording from a file. Raises ValueError for a file in another format."""
        return cls.from_json(orjson.loads(path.read_bytes()))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Recording":
        if data.get("format") != RECORDING_FORMAT:
            raise ValueError(f"This is not a recording: its format is {data.get('format')!r}, not {RECORDING_FORMAT}.")
        budget = dict(data["budget"])
        if budget.get("max_cost_usd") is not None:
            budget["max_cost_usd"] = Decimal(str(budget["max_cost_usd"]))
        budget["depth"] = Depth(budget.get("depth", Depth.STANDARD))
        earlier = tuple((question, answer) for question, answer in data["earlier"])
        steps = tuple(map(_step_from_json, data["steps"]))
        style, follow_up = data.get("report_style"), data.get("follow_up")
        return cls(
            data["question"],
            steps,
            Budget(**budget),
            earlier,
            data["seed"],
            data["reason"],
            data.get("context_tokens", {}),
            None if style is None else ReportStyle.model_validate(style),
            tuple(data.get("revises", ())),
            follow_up_from_json(follow_up) if follow_up else None,
            data.get("answer_tokens", {}),
            frozenset(map(Interaction, data.get("interactions", ()))),
        )


class RecordingMismatchError(AssertionError):
    """The graph did not do what is recorded."""


async def replay_recording(graph: Graph, recording: Recording) -> SimulatedRun:
    """Replay a recording. Raises RecordingMismatchError with the first difference."""
    texts = _collect_passages(recording.steps)
    own = GraphRegistry([graph])[graph.name]
    tools = tuple(tool for tool in own.tools if not isinstance(tool, str))
    result = await replay.replay_stored_run(
        graph,
        StoredRun(
            run=_build_run_info(recording),
            steps=recording.steps,
            stop_reason=recording.reason,
            tool_policy=build_default_tool_policy(own),
            tools=create_tools(custom=tools),
            engines=_list_engines(graph, recording),
        ),
        lambda span: texts.get(span, ""),
        None,
        InMemorySaver,
    )
    if not result.is_same:
        raise RecordingMismatchError(result.detail)
    return SimulatedRun(
        report=result.report,
        steps=recording.steps,
        state=result.final_state,
        executed_calls=(),
        evidence=_build_evidence_index(recording.steps).latest(10_000),
        usage=result.usage,
        loss_points=0,
        losses=0,
        interrupted_call=None,
        checkpoint_sizes=(),
    )


def _list_engines(graph: Graph, recording: Recording) -> dict[str, EngineConfig]:
    """Return engines with the recorded limits. Those of a run whose draft had problems can correct it.

    An optional role has one if a call of it is recorded.
    """
    revised = any(
        (step.kind is StepKind.REPORT and "revision" in step.payload)
        or (recording.follow_up is not None and step.label in FOLLOW_UP_LABELS)
        for step in recording.steps
    )
    revisers = {*(role.name for role in graph.roles if revised), *recording.revises}
    called = {str(step.payload.get("role", "")) for step in recording.steps}
    optional = {role.name for role in graph.optional_roles if role.name in called}
    windows, answers = recording.context_tokens, recording.answer_tokens
    return {
        role: EngineConfig(
            engine="scripted" if role in revisers else "extractive",
            options={"revises": True} if role in revisers else {},
            context_tokens=windows.get(role),
            answer_tokens=answers.get(role),
        )
        for role in sorted({*revisers, *optional, *windows, *answers})
    }


def _build_run_info(recording: Recording) -> RunInfo:
    r = recording
    id = uuid5(UUID_NAMESPACE, r.question)
    return RunInfo(
        id,
        r.question,
        r.earlier,
        r.budget,
        r.seed,
        report_style=r.report_style,
        follow_up=r.follow_up,
        interactions=r.interactions,
    )


def _build_evidence_index(steps: Sequence[Step]) -> EvidenceIndex:
    book = EvidenceIndex()
    for step in order_tool_results(step for step in steps if step.kind is StepKind.TOOL_RESULT):
        book.add(step.payload["content"], parse_label(step.payload))
    return book


def _collect_passages(steps: Sequence[Step]) -> Mapping[SourceSpan, str]:
    """Return the passages that the run retrieved. A recording has no other texts."""
    return {passage.span: passage.text for passage in _build_evidence_index(steps).as_dict().values()}


def _step_from_json(data: Mapping[str, Any]) -> Step:
    key = data["key"]
    fields = {name: data[name] for name in ("seq", "title", "payload", "label", "detail", "ok", "ms", "tokens", "turn")}
    at = datetime.fromisoformat(data["at"])
    return Step(**fields, kind=StepKind(data["kind"]), at=at, fence=1, call_key=CallKey(*key) if key else None)


def recording_to_json(recording: Recording) -> dict[str, Any]:
    """Return the recording as its file stores it."""
    r = recording
    return {
        "format": RECORDING_FORMAT,
        "question": r.question,
        "earlier": [list(pair) for pair in r.earlier],
        **({"follow_up": follow_up_to_json(r.follow_up)} if r.follow_up else {}),
        "budget": {
            "max_turns": r.budget.max_turns,
            "max_tokens": r.budget.max_tokens,
            "max_cost_usd": None if r.budget.max_cost_usd is None else str(r.budget.max_cost_usd),
            "max_seconds": r.budget.max_seconds,
            **r.budget.depth_field(),
        },
        "seed": r.seed,
        "reason": r.reason,
        **({"context_tokens": dict(r.context_tokens)} if r.context_tokens else {}),
        **({"answer_tokens": dict(r.answer_tokens)} if r.answer_tokens else {}),
        **({"revises": list(r.revises)} if r.revises else {}),
        **({"report_style": r.report_style.model_dump(mode="json")} if r.report_style else {}),
        **({"interactions": sorted(r.interactions)} if r.interactions else {}),
        "steps": [_step_to_json(step) for step in r.steps],
    }


def _step_to_json(step: Step) -> dict[str, Any]:
    s, key = step, step.call_key
    names: Sequence[str] = ("seq", "kind", "title", "payload", "label", "detail", "ok", "ms", "tokens", "turn")
    where = [key.superstep, key.path, key.ordinal, key.digest] if key else None
    return {name: getattr(s, name) for name in names} | {"at": s.at.isoformat(), "key": where}
