"""Rows with valid defaults; a test states only what matters to it."""

from uuid import UUID

from offing.clock import new_id
from offing.core.model import EngineConfig
from offing.core.run import Budget, FencingToken
from offing.core.step import CallKey, StepDraft, StepKind
from offing.storage import claims, runs, steps, threads
from offing.storage.claims import Claim
from offing.storage.pool import Database
from offing.storage.runs import NewRun, RunRow

TERM = 30.0


def a_run(**changes: object) -> NewRun:
    defaults: dict[str, object] = {
        "id": new_id(),
        "thread_id": new_id(),
        "graph": "counting",
        "graph_version": "1",
        "question": "Why?",
        "engines": {"speaker": EngineConfig()},
        "tool_policy": {},
        "tool_policy_sha256": "",
        "budget": Budget(),
        "scope": {},
    }
    return NewRun(**(defaults | changes))  # type: ignore[arg-type]


def a_step(title: str = "a step", *, key: CallKey | None = None) -> StepDraft:
    return StepDraft(StepKind.NOTE, title, {"text": title}, call_key=key)


async def stored(database: Database, tenant_id: UUID, new: NewRun | None = None) -> RunRow:
    """A submitted run with its first step."""
    new = new or a_run()
    async with database.transaction(tenant_id) as connection:
        await threads.insert_thread(connection, tenant_id, new.thread_id, "thread")
        run = await runs.insert_run(connection, tenant_id, new)
        await steps.append_external(connection, run.id, [StepDraft(StepKind.QUEUED, new.question)])
    return run


async def claimed(database: Database, tenant_id: UUID, *, term: float = TERM) -> Claim:
    """A run in a worker's hands."""
    run = await stored(database, tenant_id)
    claim = await claims.claim_run(database, run.id, "worker", term)
    assert claim is not None
    return claim


def older(fence: FencingToken) -> FencingToken:
    """The fence of the claim before."""
    return FencingToken(fence.tenant_id, fence.run_id, fence.number - 1, fence.thread_id)
