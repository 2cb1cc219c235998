"""Tasks: storing them, and reading them without their reference answers."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from offing.api.auth import Known
from offing.api.collecting import TaskOut, TaskPage, TasksIn, TasksOut, task_out
from offing.api.parts import Held
from offing.api.routes.responses import TOO_LARGE, problems
from offing.api.routing import StrictRoute
from offing.services import tasks

router = APIRouter(prefix="/tasks", tags=["collection"], route_class=StrictRoute)


@router.post("", status_code=201, responses=TOO_LARGE)
async def store_tasks(caller: Known, held: Held, wanted: TasksIn) -> TasksOut:
    """Store tasks, each content once. Reference answers go in here and come out nowhere."""
    stored = await tasks.store(held.database, caller.tenant, wanted.dataset, wanted.tasks)
    return TasksOut(dataset=wanted.dataset, ids=stored.ids, new=stored.new)


@router.get("")
async def list_tasks(
    caller: Known,
    held: Held,
    dataset: Annotated[str | None, Query(max_length=200)] = None,
    cursor: Annotated[UUID | None, Query(description="`next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> TaskPage:
    """Tasks, newest first."""
    page, following = await tasks.page(held.database, caller.tenant, dataset, cursor, limit)
    return TaskPage(items=[task_out(task) for task in page], next=following and str(following))


@router.get("/{task_id}", responses=problems(_404="There is no such task."))
async def get_task(caller: Known, held: Held, task_id: UUID) -> TaskOut:
    """One task."""
    return task_out(await tasks.one(held.database, caller.tenant, task_id))
