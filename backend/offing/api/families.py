"""Which run started which, on the wire."""

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from offing.api.schemas import Wire
from offing.core.run import RunStatus, StopReason
from offing.services.child_runs import Family
from offing.storage.child_runs import ChildRow


class ChildOut(Wire):
    """A run that another one started. It is a run like any: read it, follow it, cancel it by its id."""

    id: UUID
    question: str
    graph: str
    status: RunStatus
    stop_reason: StopReason | None = Field(description="null: it has not ended.")
    waiting_for: str | None = Field(description="null: it waits for nothing but a worker.")
    turns: int
    created_at: datetime
    ended_at: datetime | None = Field(description="null: it has not ended.")


class FamilyOut(Wire):
    parent: UUID | None = Field(description="The run that started this one. null: a person asked for it.")
    children: list[ChildOut] = Field(description="Runs that this one started, in the order of its asking.")


def family_out(family: Family) -> FamilyOut:
    return FamilyOut(parent=family.parent, children=list(map(_child_out, family.children)))


def _child_out(child: ChildRow) -> ChildOut:
    return ChildOut(
        id=child.id,
        question=child.question,
        graph=child.graph,
        status=child.status,
        stop_reason=child.stop_reason,
        waiting_for=child.waiting_for,
        turns=child.turns,
        created_at=child.created_at,
        ended_at=child.ended_at,
    )


EXAMPLE: dict[str, Any] = {
    "parent": None,
    "children": [
        {
            "id": "019aa6f0-3c1e-7b50-8d1f-2f6a1f6f2a11",
            "question": "How does undici reuse connections?",
            "graph": "agentflow",
            "status": "done",
            "stop_reason": "answered",
            "waiting_for": None,
            "turns": 3,
            "created_at": "2026-11-21T09:00:00Z",
            "ended_at": "2026-11-21T09:00:04Z",
        }
    ],
}
