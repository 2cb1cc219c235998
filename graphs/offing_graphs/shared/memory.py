"""The run's memory: records of finished tool calls, stored as steps and read back.

The limits of records in a prompt are in the prompts of each graph.
"""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from offing.sdk import (
    EARLIER_REPORT,
    Evidence,
    RunContext,
    Step,
    StepDraft,
    StepKind,
    ToolResult,
    ToolStatus,
    shorten_line,
    tool_result_from_step,
)
from offing_graphs.shared.findings import build_finding, list_returned_evidence, render_value
from offing_graphs.shared.schemas import MemoryRecord, Plan

RecordT = TypeVar("RecordT", bound=MemoryRecord)

MAX_RECORDS = 64
"""Maximum number of records or tool calls that are read back. Older ones stay in the run's steps."""
MAX_EVIDENCE = 240
"""Maximum number of passages that are read back. The latest are kept."""
MAX_GOAL_CHARS = 400
"""Maximum number of characters of a record's sub-goal."""


async def load_records(ctx: RunContext, before_turn: int | None, schema: type[RecordT]) -> tuple[RecordT, ...]:
    """Load the records of the turns before `before_turn`, oldest first. `None` means all turns."""
    steps = await ctx.last_steps(StepKind.MEMORY, MAX_RECORDS)
    records = (schema.model_validate(step.payload) for step in steps)
    return tuple(r for r in records if before_turn is None or r.turn < before_turn)


def count_earlier_passages(evidence: Sequence[Evidence]) -> int:
    """Return how many passages of the run were retrieved before these. Their ids start at E1 and have no gaps."""
    return int(evidence[0].id.removeprefix("E")) - 1 if evidence else 0


async def load_call_records(ctx: RunContext, evidence: Sequence[Evidence]) -> tuple[MemoryRecord, ...]:
    """Build records from the results of the run's tool calls, for graphs that store no records."""
    records: list[MemoryRecord] = []
    for step in await ctx.last_steps(StepKind.TOOL_RESULT, MAX_RECORDS):
        if step.payload.get("tool") == EARLIER_REPORT:
            continue
        records.append(_record_from_call(step, evidence, records))
    return tuple(records)


async def append_record(
    ctx: RunContext,
    plan: Plan,
    result: ToolResult,
    earlier_records: Sequence[MemoryRecord],
    turn: int,
    verdict_before: str = "",
) -> tuple[Evidence, ...]:
    """Append the record of a planned tool call and return the evidence that the call returned."""
    returned = list_returned_evidence(result, await ctx.get_evidence(MAX_EVIDENCE))
    record = MemoryRecord(
        turn=turn,
        sub_goal=shorten_line(plan.sub_goal, MAX_GOAL_CHARS),
        tool=result.tool,
        **build_result_fields(plan.sub_goal, result, returned, earlier_records),
        verdict_before=shorten_line(verdict_before, 240),
    )
    await ctx.append_steps(draft_record(record))
    return returned


def build_result_fields(
    goal: str, result: ToolResult, returned: Sequence[Evidence], earlier_records: Iterable[MemoryRecord]
) -> dict[str, Any]:
    """Return the fields of a record that follow from a tool result and the evidence that it returned."""
    ids = tuple(e.id for e in returned)
    return {
        "args": result.args,
        "status": str(result.status),
        "finding": build_finding(goal, result, returned),
        "value": render_value(result),
        "evidence": ids,
        "fresh": count_new(ids, earlier_records),
    }


def count_new(evidence_ids: Iterable[str], earlier_records: Iterable[MemoryRecord]) -> int:
    """Return the number of passages that no earlier record returned."""
    known = {id for record in earlier_records for id in record.evidence}
    return sum(id not in known for id in evidence_ids)


def has_findings(evidence: Sequence[Any], records: Iterable[MemoryRecord]) -> bool:
    """Return whether there is something to write about: a passage, or another result such as a number."""
    return bool(evidence) or any(record.value for record in records)


def draft_record(record: MemoryRecord, title: str = "", label: str = "memory") -> StepDraft:
    """Return a step draft that stores the record. An empty title means the sub-goal."""
    ok = record.status == ToolStatus.OK
    count = len(record.evidence)
    detail = f"{count} passage{'s' * (count != 1)}, {record.fresh} new" if count else shorten_line(record.finding)
    return StepDraft(
        kind=StepKind.MEMORY,
        title=shorten_line(title or record.sub_goal),
        payload=record.model_dump(mode="json"),
        label=label,
        detail=detail if ok else shorten_line(record.finding),
        ok=ok,
        turn=record.turn,
    )


def _record_from_call(
    step: Step, evidence: Sequence[Evidence], earlier_records: Iterable[MemoryRecord]
) -> MemoryRecord:
    result = tool_result_from_step(step)
    returned = list_returned_evidence(result, evidence)
    texts = [str(v) for _, v in sorted(result.args.items()) if isinstance(v, str)]
    goal = str(result.args.get("query") or next(iter(texts), result.tool))
    return MemoryRecord(
        turn=step.turn,
        sub_goal=shorten_line(goal, MAX_GOAL_CHARS),
        tool=result.tool,
        **build_result_fields(goal, result, returned, earlier_records),
    )
