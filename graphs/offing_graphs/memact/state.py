"""State of the graph, and the agent's input, which is loaded from the steps that the state names.

The context limit bounds the list of records in the state, however long the run is. The same
state gives the same input, so that a node that runs again makes the same call.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, TypedDict

from offing.sdk import Evidence, RunContext, SourceSpan, Step, StepKind, ToolResult, ToolStatus, tool_result_from_step
from offing_graphs.memact.context import ContextConfig, RecordLocation
from offing_graphs.memact.prompts import Observation, build_observations, join_observations
from offing_graphs.memact.schemas import (
    EDIT_ACTIONS,
    PRUNE,
    WRITE,
    Act,
    AgentInput,
    ContextRecord,
    PruneArgs,
    ToolFinding,
    WriteArgs,
)
from offing_graphs.shared.findings import extract_evidence_ids, passages_from_evidence, render_value
from offing_graphs.shared.schemas import ToolCard
from offing_graphs.shared.state import load_output, output_from_step
from offing_graphs.shared.task import build_tool_cards, get_message_text, task_from_run

MAX_EVIDENCE = 10_000
"""Maximum number of passages that are loaded. A run's evidence holds no more."""
MEMORY_CARDS = (
    ToolCard(
        name=PRUNE,
        description="Remove records from the conversation by their ids. A note keeps what they told that is needed.",
        parameters=PruneArgs.model_json_schema(),
    ),
    ToolCard(
        name=WRITE,
        description="Keep a note in the conversation. It removes nothing.",
        parameters=WriteArgs.model_json_schema(),
    ),
)


class State(TypedDict):
    """State of one run.

    Every number is 0, and every list and string is empty until a node sets it.
    """

    turn: int
    """Number of turns begun."""
    call: int
    """Seq of the latest action."""
    next: str
    """Next node after the latest action: tool, memory or finish."""
    records: list[int]
    """The records of the context, oldest first.

    Each has three numbers: its turn, and the seqs of its action and observation. A record of several tool
    calls has three numbers for each of them, one after another.
    """
    since: int
    """Last turn whose record was in the context when the current segment began."""
    boundary_reason: str
    """Why the next call begins a new segment. Empty means that it continues the segment."""
    summary: int
    """Seq of the latest summary."""
    summaries: int
    """Number of summaries so far."""
    seen_messages: list[int]
    """The user messages shown so far.

    Each has two numbers: its seq, and the turn before which it was first shown.
    """
    window: int
    """Context window of the model, as its provider named it. 0 means that it has rejected no prompt as too long."""
    stop: str
    """Reason why the work ended, a `StopReason`. Empty means that it continues."""


@dataclass(frozen=True, slots=True)
class RecordWithEvidence:
    """A record with the evidence that it shows."""

    record: ContextRecord
    evidence: tuple[Evidence, ...] = ()


def list_records(state: State) -> tuple[RecordLocation, ...]:
    """Return the records of the context, oldest first."""
    flat = state["records"]
    return tuple(RecordLocation(*flat[n : n + 3]) for n in range(0, len(flat), 3))


def flatten_records(records: Sequence[RecordLocation]) -> list[int]:
    """Return the records as a flat list for the state."""
    return [number for record in records for number in (record.turn, record.action_seq, record.observation_seq)]


async def load_inputs(
    ctx: RunContext,
    state: State,
    config: ContextConfig,
    context_tokens: int | None,
    request: Literal["action", "summary", "answer"] = "action",
    reason: str = "",
) -> AgentInput:
    """Load the input of turn `state["turn"] + 1` from the context in the state.

    `context_tokens` is the context window of the model, to which `config` is fitted. `None` means that it is unknown.
    """
    retrieved = await ctx.get_evidence(MAX_EVIDENCE) if state["turn"] else ()
    records = await _load_records(ctx, state, config, retrieved)
    summary = (await load_output(ctx, state["summary"], Act)).summary if state["summary"] else ""
    seen_messages = dict(zip(state["seen_messages"][::2], state["seen_messages"][1::2], strict=True))
    messages = {m.seq: m for m in await ctx.get_user_messages(0)} if seen_messages else {}
    messages_with_turns = [
        (get_message_text(messages[seq]), turn) for seq, turn in seen_messages.items() if seq in messages
    ]
    cards = build_tool_cards(ctx.tools)
    task = task_from_run(ctx.run, (text for text, _ in messages_with_turns))
    return AgentInput(
        **dict(task.model_copy(update={"context_tokens": context_tokens})),
        message_turns=tuple(turn for _, turn in messages_with_turns),
        tools=(*cards, *MEMORY_CARDS) if config.allows_edits else cards,
        records=tuple(record.record for record in records),
        summary=summary,
        stage=1 + state["summaries"],
        evidence=passages_from_evidence(_list_visible_evidence(records, summary, retrieved)),
        request=request,
        reason=reason,
        max_context_tokens=config.max_context_tokens,
        allows_edits=config.allows_edits,
        shows_room=config.shows_room,
        turn=state["turn"] + 1,
        remaining=ctx.run.budget.max_turns - state["turn"],
    )


async def _load_records(
    ctx: RunContext, state: State, config: ContextConfig, retrieved: Sequence[Evidence]
) -> tuple[RecordWithEvidence, ...]:
    live = list_records(state)
    if not live:
        return ()
    seqs = sorted({seq for location in live for seq in (location.action_seq, location.observation_seq)})
    steps = {step.seq: step for step in await ctx.get_steps(seqs)}
    by_span = {e.span: e for e in retrieved}
    records = [tuple(locations) for _, locations in groupby(live, key=lambda location: location.id)]
    return tuple(_build_record(locations, steps, by_span, state["since"], config) for locations in records)


def _list_visible_evidence(
    records: Sequence[RecordWithEvidence], summary: str, retrieved: Sequence[Evidence]
) -> tuple[Evidence, ...]:
    """Return the evidence that the context shows or names, in the order of first retrieval."""
    notes = [
        str(record.record.action.args.get("note", ""))
        for record in records
        if record.record.action.tool in EDIT_ACTIONS
    ]
    named = set(extract_evidence_ids("\n".join([*notes, summary])))
    ids = {e.id for record in records for e in record.evidence} | named
    return tuple(e for e in retrieved if e.id in ids)


def _build_record(
    locations: Sequence[RecordLocation],
    steps: Mapping[int, Step],
    retrieved: Mapping[SourceSpan, Evidence],
    since_turn: int,
    config: ContextConfig,
) -> RecordWithEvidence:
    location = locations[0]
    act = output_from_step(steps[location.action_seq], Act)
    observation_step = steps[location.observation_seq]
    base: dict[str, Any] = {"id": location.id, "turn": location.turn, "seq": location.action_seq, "action": act}
    base["in_segment"] = location.turn > since_turn
    if observation_step.kind is not StepKind.TOOL_RESULT:
        return RecordWithEvidence(
            ContextRecord(
                **base, observation=str(observation_step.payload["message"]), ok=bool(observation_step.payload["ok"])
            )
        )
    results = [tool_result_from_step(steps[one.observation_seq]) for one in locations]
    observations = build_observations(results, retrieved, config.max_observation_tokens)
    finding, *more = map(_build_finding, results, observations)
    record = ContextRecord(
        **base,
        observation=join_observations(results, observations),
        ok=all(result.status is ToolStatus.OK for result in results),
        finding=finding,
        more_findings=tuple(more),
        omitted_passages=sum(observation.omitted for observation in observations),
    )
    return RecordWithEvidence(record, tuple(e for observation in observations for e in observation.evidence))


def _build_finding(result: ToolResult, observation: Observation) -> ToolFinding:
    return ToolFinding(
        tool=result.tool,
        args=result.args,
        status=result.status,
        content=_drop_passage_text(result.content),
        value=render_value(result),
        evidence=tuple(e.id for e in observation.evidence),
    )


def _drop_passage_text(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a result without the text of passages."""
    return {k: v for k, v in content.items() if k not in {"passages", "text"} or "expression" in content}


def add_new_messages(seen_messages: Sequence[int], messages: Sequence[Step], turn: int) -> list[int]:
    """Add the new user messages to the list in the state, with the turn that shows them first."""
    known = set(seen_messages[::2])
    return [*seen_messages, *(n for m in messages if m.seq not in known for n in (m.seq, turn))]
