"""API schemas of the run tree: a run with its parent and children."""

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from offing.api.coded_texts import TEXTS, RunTextOut, serialize_run_texts
from offing.api.schemas.base import ApiModel
from offing.core.run import RunStatus, StopReason
from offing.services.child_runs import RunTree
from offing.storage.child_runs import ChildRunRow


class ChildRunOut(ApiModel):
    """A run that another run started. It can be read, followed and cancelled by its id like any run."""

    id: UUID
    question: str
    graph: str
    status: RunStatus
    stop_reason: StopReason | None = Field(description="null: the run has not ended.")
    waiting_for: str | None = Field(description="null: the run waits for nothing except a worker.")
    texts: dict[str, RunTextOut] = Field(default={}, description=f"{TEXTS} Fields: waiting_for.")
    turns: int
    created_at: datetime
    ended_at: datetime | None = Field(description="null: the run has not ended.")


class RunTreeOut(ApiModel):
    parent_id: UUID | None = Field(description="The run that started this run. null: no run started it.")
    children: list[ChildRunOut] = Field(description="Runs that this run started, in the order of their requests.")


def serialize_run_tree(run_tree: RunTree) -> RunTreeOut:
    return RunTreeOut(parent_id=run_tree.parent_id, children=list(map(_serialize_child_run, run_tree.children)))


def _serialize_child_run(child: ChildRunRow) -> ChildRunOut:
    return ChildRunOut(
        id=child.id,
        question=child.question,
        graph=child.graph,
        status=child.status,
        stop_reason=child.stop_reason,
        waiting_for=child.waiting_for,
        texts=serialize_run_texts(waiting_for=child.waiting_for),
        turns=child.turns,
        created_at=child.created_at,
        ended_at=child.ended_at,
    )


RUN_TREE_EXAMPLE: dict[str, Any] = {
    "parent_id": None,
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
