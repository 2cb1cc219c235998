"""Routes for threads: conversations of runs that follow one another."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from offing.api import serializers
from offing.api.auth import CurrentCaller
from offing.api.dependencies import Deps
from offing.api.routes.responses import describe_problems
from offing.api.schemas.runs import ThreadOut, ThreadPage
from offing.api.strict_route import StrictRoute
from offing.services import threads

router = APIRouter(prefix="/threads", tags=["threads"], route_class=StrictRoute)


@router.get("")
async def list_threads(
    caller: CurrentCaller,
    deps: Deps,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 30,
) -> ThreadPage:
    """List threads with their runs, newest first."""
    page, following = await threads.list_threads(deps.database, caller.tenant_id, cursor, limit)
    return ThreadPage(items=[serializers.serialize_thread(thread) for thread in page], next=following)


@router.get("/{thread_id}", responses=describe_problems(_404="There is no such thread."))
async def get_thread(caller: CurrentCaller, deps: Deps, thread_id: UUID) -> ThreadOut:
    """Get a thread with its runs, oldest first. To follow up, submit a run with its thread_id."""
    return serializers.serialize_thread(await threads.get_thread(deps.database, caller.tenant_id, thread_id))
