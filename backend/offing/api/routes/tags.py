"""Route for the tags that people have given runs."""

from typing import Annotated

from fastapi import APIRouter, Query

from offing.api.auth import CurrentCaller
from offing.api.dependencies import Deps
from offing.api.schemas.runs import TagPage
from offing.api.strict_route import StrictRoute
from offing.services import run_labels

router = APIRouter(prefix="/tags", tags=["runs"], route_class=StrictRoute)


@router.get("")
async def list_tags(
    caller: CurrentCaller,
    deps: Deps,
    cursor: Annotated[str | None, Query(max_length=200, description="`next` of the previous page.")] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 200,
) -> TagPage:
    """List the tags that runs have, in the order of their characters."""
    tags, following = await run_labels.list_all_tags(deps.database, caller.tenant_id, cursor, limit)
    return TagPage(items=tags, next=following)
