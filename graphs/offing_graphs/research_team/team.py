"""What colleagues are asked, and what they bring as records of the lead's memory: pure."""

from collections.abc import Sequence

from offing.sdk import CHILD_RUN, Budget, ChildRequest, ChildResult, RunStatus, ToolStatus, shortened
from offing_graphs.parts.findings import FINDING
from offing_graphs.parts.shapes import Record

COLLEAGUE = "agentflow"
"""The graph that works on a part."""


def requests_for(parts: Sequence[str], turns: int) -> tuple[ChildRequest, ...]:
    """One run a part, with a share of three quarters of the turns; the rest is for what is missing then."""
    share = Budget(turns=max(1, 3 * turns // (4 * len(parts))))
    return tuple(ChildRequest(part, COLLEAGUE, share, engines={"analyst": "lead"}) for part in parts)


def brought(result: ChildResult, turn: int) -> Record:
    """What a child found, as a record of this run's memory. Its passages are this run's, by their ids here."""
    said = "\n".join(f"{f.text} {' '.join(f'[{id}]' for id in f.evidence)}".strip() for f in result.findings)
    ids = tuple(dict.fromkeys([*(id for f in result.findings for id in f.evidence), *(e.id for e in result.evidence)]))
    ok = result.status is RunStatus.DONE
    return Record(
        turn=turn,
        sub_goal=f"Research: {shortened(result.question, 390)}",
        tool=CHILD_RUN,
        args={"question": result.question},
        status=ToolStatus.OK if ok else ToolStatus.FAILED,
        finding=(said or f"It ended without a report: {result.stop.replace('_', ' ')}.")[:FINDING],
        value="" if ids else shortened(result.answer, 800),
        evidence=ids,
        fresh=len(ids),
    )
