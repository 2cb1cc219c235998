"""Routes for storing tasks and reading them without their reference answers."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from offing.api.auth import CurrentCaller
from offing.api.dependencies import Deps
from offing.api.routes.responses import BODY_TOO_LARGE, describe_problems
from offing.api.schemas.rollouts import TaskOut, TaskPage, TasksIn, TasksOut, serialize_task
from offing.api.strict_route import StrictRoute
from offing.services import tasks

router = APIRouter(prefix="/tasks", tags=["collection"], route_class=StrictRoute)


@router.post("", status_code=201, responses=BODY_TOO_LARGE)
async def store_tasks(caller: CurrentCaller, deps: Deps, body: TasksIn) -> TasksOut:
    """Store tasks. Each content is stored once. Reference answers are stored and never returned."""
    stored = await tasks.store_tasks(deps.database, caller.tenant_id, body.dataset, body.tasks, deps.mcp_servers)
    return TasksOut(dataset=body.dataset, task_ids=stored.task_ids, new_count=stored.new_count)


@router.get("")
async def list_tasks(
    caller: CurrentCaller,
    deps: Deps,
    dataset: Annotated[str | None, Query(max_length=200)] = None,
    cursor: Annotated[UUID | None, Query(description="`next` of the previous page.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> TaskPage:
    """List tasks, newest first."""
    page, following = await tasks.list_tasks(deps.database, caller.tenant_id, dataset, cursor, limit)
    return TaskPage(items=[serialize_task(task) for task in page], next=following and str(following))


@router.get("/{task_id}", responses=describe_problems(_404="There is no such task."))
async def get_task(caller: CurrentCaller, deps: Deps, task_id: UUID) -> TaskOut:
    """Get a task."""
    return serialize_task(await tasks.get_task(deps.database, caller.tenant_id, task_id))
