"""Segments of turns with the same subgoal, and the records of turns with their segments.

Records, loss masks and the web UI use the same rule for the boundaries of segments.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from offing.sdk import Evidence, StepDraft, ToolResult
from offing_graphs.hiper.schemas import Switch, Turn, TurnRecord
from offing_graphs.shared.findings import list_returned_evidence
from offing_graphs.shared.memory import build_result_fields, draft_record


@dataclass(frozen=True, slots=True)
class SubgoalPosition:
    """The position of a turn in its segment."""

    boundary: bool
    subgoal: str
    segment_number: int
    """Number of the segment, from 1."""
    drifted: bool


def locate_turn(output: Turn, previous: TurnRecord | None) -> SubgoalPosition:
    """Return the position of a turn.

    `previous` is the record of the previous turn. `None` means that this is the first turn,
    which always opens a segment. Under KEEP the current subgoal stays, even if the turn states
    another one; that is recorded as drift.
    """
    subgoal = output.subgoal.strip()
    if previous is None or output.switch is Switch.SWITCH:
        return SubgoalPosition(True, subgoal, (previous.subgoal_nr if previous else 0) + 1, drifted=False)
    return SubgoalPosition(False, previous.subgoal, previous.subgoal_nr, drifted=subgoal != previous.subgoal)


def build_tool_record(
    output: Turn,
    seq: int,
    result: ToolResult,
    evidence: Sequence[Evidence],
    earlier_records: Sequence[TurnRecord],
    turn: int,
) -> TurnRecord:
    """Build the record of a turn that called a tool."""
    record = build_empty_record(output, seq, earlier_records, turn)
    returned = list_returned_evidence(result, evidence)
    return record.model_copy(update=build_result_fields(record.subgoal, result, returned, earlier_records))


def build_empty_record(
    output: Turn, seq: int, earlier_records: Sequence[TurnRecord], turn: int, status: str = "ok", finding: str = ""
) -> TurnRecord:
    """Build the record of a turn without a tool result: an answer, or a call that was not made."""
    position = locate_turn(output, earlier_records[-1] if earlier_records else None)
    return TurnRecord(
        turn=turn,
        sub_goal=position.subgoal,
        tool=output.action.tool,
        args=output.action.args,
        status=status,
        finding=finding,
        output_seq=seq,
        switch=output.switch,
        boundary=position.boundary,
        subgoal=position.subgoal,
        subgoal_nr=position.segment_number,
        drifted=position.drifted,
    )


def draft_turn_record(record: TurnRecord) -> StepDraft:
    """Return a step draft that stores the record."""
    label = "subgoal" if record.boundary else "memory"
    return draft_record(record, record.subgoal or "No subgoal", label)
