"""Threads: questions that follow one another."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from offing.api import wire
from offing.api.auth import Known
from offing.api.parts import Held
from offing.api.routes.responses import problems
from offing.api.routing import StrictRoute
from offing.api.schemas import ThreadOut, ThreadPage
from offing.services import views

router = APIRouter(prefix="/threads", tags=["threads"], route_class=StrictRoute)


@router.get("")
async def list_threads(
    caller: Known,
    held: Held,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 30,
) -> ThreadPage:
    """Threads with their runs, newest first."""
    page, following = await views.list_threads(held.database, caller.tenant, cursor, limit)
    return ThreadPage(items=[wire.thread_out(thread) for thread in page], next=following)


@router.get("/{thread_id}", responses=problems(_404="There is no such thread."))
async def get_thread(caller: Known, held: Held, thread_id: UUID) -> ThreadOut:
    """A thread with its runs, oldest first. To follow up, submit a run with its thread_id."""
    return wire.thread_out(await views.thread(held.database, caller.tenant, thread_id))
