"""The library: documents, search, and passages in context."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Request

from offing.api import wire
from offing.api.auth import Known
from offing.api.parts import Held
from offing.api.routes.responses import NO_SOURCE, UPLOADS, problems
from offing.api.routing import UploadRoute
from offing.api.schemas import CollectionOut, ErasedOut, HitPage, PassageOut, SourceOut, SourcePage, UploadOut
from offing.api.uploads import announced_size, received, taken_in
from offing.core.errors import InvalidInput
from offing.services import erasure, library, views
from offing.services.library import LibraryScope

router = APIRouter(prefix="/library", tags=["library"], route_class=UploadRoute)

MOST_SPAN = 100_000
"""Code points of a passage."""

Collection = Annotated[str | None, Query(max_length=500, description="Absent: all of them.")]

UPLOAD: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["files"],
                    "additionalProperties": False,
                    "properties": {
                        "files": {
                            "type": "array",
                            "items": {"type": "string", "format": "binary"},
                            "description": "PDF, HTML, Markdown, plain text or DOCX; 25 MB each. With `collection`, "
                            "a file's name may be its path inside the folder.",
                        },
                        "collection": {
                            "type": "string",
                            "maxLength": 200,
                            "description": "Name of the collection that the files belong to, such as the name of the "
                            "folder that they come from. Empty or absent: single files.",
                        },
                    },
                }
            }
        },
    }
}


@router.get("")
async def list_sources(
    caller: Known,
    held: Held,
    collection: Collection = None,
    q: Annotated[str | None, Query(max_length=200, description="Part of the name or title.")] = None,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> SourcePage:
    """Sources, newest first."""
    before = views.place_of(cursor)
    found, total = await library.sources(
        held.database, caller.tenant, collection=collection, text=q, before=before, limit=limit + 1
    )
    page = found[:limit]
    following = views.cursor_of((page[-1].added_at, page[-1].id)) if len(found) > limit else None
    return SourcePage(items=[wire.source_out(s) for s in page], next=following, total=total)


@router.post("", openapi_extra=UPLOAD, responses=UPLOADS)
async def upload(caller: Known, held: Held, request: Request) -> UploadOut:
    """Add documents. Each file has an outcome of its own; bytes already known are not read again."""
    with held.uploads.admitted(caller.tenant, announced_size(request)):
        async with received(request) as sent:
            return UploadOut(files=await taken_in(held.database, held.readers, caller.tenant, sent))


@router.get("/collections")
async def list_collections(caller: Known, held: Held) -> list[CollectionOut]:
    """Collections with the number of their sources."""
    found = await views.collections(held.database, caller.tenant)
    return [CollectionOut(name=name, count=count) for name, count in found]


@router.get("/search")
async def search_library(
    caller: Known,
    held: Held,
    q: Annotated[str, Query(min_length=1, max_length=1000, examples=["connection pooling"])],
    limit: Annotated[int, Query(ge=1, le=50)] = 10,
    collection: Collection = None,
) -> HitPage:
    """The best passages for some words."""
    scope = LibraryScope(() if collection is None else (collection,))
    hits = await library.search(held.database, caller.tenant, q, limit, scope)
    return HitPage(items=[wire.hit_out(hit) for hit in hits])


@router.get("/sources/{source_id}", responses=NO_SOURCE)
async def get_source(caller: Known, held: Held, source_id: UUID) -> SourceOut:
    """One source."""
    return wire.source_out(await library.source(held.database, caller.tenant, source_id))


@router.delete("/sources/{source_id}", responses=NO_SOURCE | problems(_409="A run that has read it is still going on."))
async def erase_source(caller: Known, held: Held, source_id: UUID) -> ErasedOut:
    """Erase a source: its bytes where nothing else uses them, its text, passages, and copies in steps and reports."""
    erased = await erasure.erase_source(held.database, caller.tenant, source_id)
    return ErasedOut(sources=erased.sources, snapshots=erased.snapshots, passages=erased.passages, steps=erased.steps)


@router.get("/passages", responses=NO_SOURCE)
async def get_passage(
    caller: Known,
    held: Held,
    artefact: UUID,
    start: Annotated[int, Query(ge=0, le=10**9, description="First code point.")],
    end: Annotated[int, Query(ge=0, le=10**9, description="Code point after the last.")],
    around: Annotated[int, Query(ge=0, le=5000, description="Code points to show on either side.")] = 600,
) -> PassageOut:
    """A span of stored text, with what stands around it."""
    if end - start > MOST_SPAN:
        raise InvalidInput("end", f"the span has more than {MOST_SPAN:,} characters", "Ask for a part of it.")
    found = await library.passage_in_context(held.database, caller.tenant, artefact, start, end, around)
    return wire.passage_out(found)
