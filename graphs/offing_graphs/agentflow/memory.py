"""The run's memory: how a finished tool call becomes a record, and how records and passages are read back.

Records live as steps; how they are bounded in a prompt is in `prompts`.
"""

from collections.abc import Iterable, Sequence

from offing.sdk import Evidence, Step, StepDraft, StepKind, ToolResult, ToolStatus, shortened
from offing_graphs.agentflow.shapes import Verdict
from offing_graphs.parts.findings import finding, value_of
from offing_graphs.parts.shapes import Plan, Record

KEPT = 64
"""Records read back at most; older ones stay in the run's steps."""
SEEN = 240
"""Passages read back at most."""


def records(steps: Iterable[Step]) -> tuple[Record, ...]:
    """Memory steps as records."""
    return tuple(Record.model_validate(step.payload) for step in steps)


def record_of(
    plan: Plan, result: ToolResult, back: Sequence[Evidence], fresh: int, turn: int, verdict: Verdict | None
) -> Record:
    """What a turn did and found. `fresh`: how many of `back` the run had not seen before."""
    return Record(
        turn=turn,
        sub_goal=shortened(plan.sub_goal, 400),
        tool=result.tool,
        args=result.args,
        status=result.status,
        finding=finding(plan.sub_goal, result, back),
        value=value_of(result),
        evidence=tuple(e.id for e in back),
        fresh=fresh,
        verdict_before=shortened(verdict.analysis, 240) if verdict else "",
    )


def step_of(record: Record) -> StepDraft:
    """The record as a step to append."""
    ok = record.status == ToolStatus.OK
    count = len(record.evidence)
    found = f"{count} passage{'s' * (count != 1)}, {record.fresh} new" if count else shortened(record.finding)
    return StepDraft(
        kind=StepKind.MEMORY,
        title=shortened(record.sub_goal),
        payload=record.model_dump(mode="json"),
        label="memory",
        detail=found if ok else shortened(record.finding),
        ok=ok,
        turn=record.turn,
    )
