"""Routes for the collections of the document library."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query

from offing.api.auth import CurrentCaller
from offing.api.dependencies import Deps
from offing.api.routes.responses import BODY_TOO_LARGE, SOURCE_NOT_FOUND, describe_problems
from offing.api.schemas.collections import (
    CollectionDeletionOut,
    CollectionOut,
    CollectionRenameIn,
    SourceMoveIn,
    SourceMoveOut,
    serialize_collection,
    serialize_collection_deletion,
)
from offing.api.strict_route import StrictRoute
from offing.services import collections

router = APIRouter(prefix="/library", tags=["library"], route_class=StrictRoute)

COLLECTION_NOT_FOUND = describe_problems(_404="There is no such collection.")


@router.get("/collections")
async def list_collections(caller: CurrentCaller, deps: Deps) -> list[CollectionOut]:
    """List collections with the number of their sources."""
    listed = await collections.list_collections(deps.database, caller.tenant_id)
    return [serialize_collection(one) for one in listed]


@router.post(
    "/collections/rename",
    responses=COLLECTION_NOT_FOUND
    | BODY_TOO_LARGE
    | describe_problems(
        _409="Another collection has the name, or a run that has not ended or a stored task is limited to this one."
    ),
)
async def rename_collection(caller: CurrentCaller, deps: Deps, body: CollectionRenameIn) -> CollectionOut:
    """Rename a collection. The scopes of ended runs follow, so that their follow-ups find its documents.

    A folder of the server keeps its name, which is its path.
    """
    return serialize_collection(
        await collections.rename_collection(deps.database, caller.tenant_id, body.name, body.new_name)
    )


@router.delete(
    "/collections",
    responses=COLLECTION_NOT_FOUND
    | describe_problems(
        _409="A run that has not ended is limited to it or has read one of its documents; a stored task is limited to "
        "it; or a single file has the name of one of its documents."
    ),
)
async def delete_collection(
    caller: CurrentCaller,
    deps: Deps,
    name: Annotated[str, Query(min_length=1, max_length=500)],
    documents: Annotated[
        Literal["keep", "erase"],
        Query(description="keep: they become single files. erase: they are deleted as single sources are."),
    ],
) -> CollectionDeletionOut:
    """Delete a collection. `erase` erases at most 20 documents per request: repeat it until `remaining` is 0.

    Ended runs that were limited to the collection keep its name in their scopes, so their follow-ups do not search
    other documents instead.
    """
    return serialize_collection_deletion(
        await collections.delete_collection(deps.database, caller.tenant_id, name, is_erasure=documents == "erase")
    )


@router.post(
    "/sources/move",
    responses=SOURCE_NOT_FOUND
    | BODY_TOO_LARGE
    | describe_problems(
        _409="A run that has not ended is limited to a collection that would change, or two documents would have the "
        "same name."
    ),
)
async def move_sources(caller: CurrentCaller, deps: Deps, body: SourceMoveIn) -> SourceMoveOut:
    """Move documents to a collection, all or none. They stay the same documents, so citations stay valid."""
    moved = await collections.move_sources(deps.database, caller.tenant_id, body.source_ids, body.collection)
    return SourceMoveOut(moved=moved)
