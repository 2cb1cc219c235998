"""Rows with valid defaults; a test states only what matters to it."""

from uuid import UUID

from offing.clock import new_id
from offing.core.model import EngineChoice
from offing.core.run import Budget, Fence
from offing.core.step import CallKey, StepDraft, StepKind
from offing.storage import runs, steps, threads
from offing.storage.pool import Database
from offing.storage.runs import Claim, NewRun, RunRow

TERM = 30.0


def a_run(**changes: object) -> NewRun:
    defaults: dict[str, object] = {
        "id": new_id(),
        "thread": new_id(),
        "graph": "counting",
        "graph_version": "1",
        "question": "Why?",
        "engines": {"speaker": EngineChoice()},
        "policy": {},
        "policy_sha256": "",
        "budget": Budget(),
        "scope": {},
    }
    return NewRun(**(defaults | changes))  # type: ignore[arg-type]


def a_step(title: str = "a step", *, key: CallKey | None = None) -> StepDraft:
    return StepDraft(StepKind.NOTE, title, {"text": title}, key=key)


async def stored(database: Database, tenant: UUID, new: NewRun | None = None) -> RunRow:
    """A submitted run with its first step."""
    new = new or a_run()
    async with database.transaction(tenant) as connection:
        await threads.insert(connection, tenant, new.thread, "thread")
        run = await runs.insert(connection, tenant, new)
        await steps.append_unowned(connection, run.id, [StepDraft(StepKind.QUEUED, new.question)])
    return run


async def claimed(database: Database, tenant: UUID, *, term: float = TERM) -> Claim:
    """A run in a worker's hands."""
    run = await stored(database, tenant)
    claim = await runs.claim(database, run.id, "worker", term)
    assert claim is not None
    return claim


def older(fence: Fence) -> Fence:
    """The fence of the claim before."""
    return Fence(fence.tenant, fence.run, fence.number - 1, fence.thread)
