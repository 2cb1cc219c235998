"""Routes for the document library: documents, search, and passages in context."""

import asyncio
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Request

from offing.api import serializers
from offing.api.auth import CurrentCaller
from offing.api.dependencies import Deps
from offing.api.routes.responses import SOURCE_NOT_FOUND, UPLOAD_RESPONSES, describe_problems
from offing.api.schemas.library import (
    ErasureOut,
    LibraryStatusOut,
    PassageOut,
    SearchHitPage,
    SourceOut,
    SourcePage,
    UploadResultOut,
)
from offing.api.strict_route import UploadRoute
from offing.api.uploads import get_announced_bytes, ingest_files, receive_files
from offing.core.errors import InvalidInput
from offing.services import erasure, library
from offing.services.library import LibraryScope
from offing.storage.pagination import parse_page_cursor, render_page_cursor

router = APIRouter(prefix="/library", tags=["library"], route_class=UploadRoute)

MAX_SPAN_CHARS = 100_000
"""Maximum number of code points of a passage."""

CollectionQuery = Annotated[str | None, Query(max_length=500, description="Absent: all collections.")]

UPLOAD_REQUEST_BODY: dict[str, Any] = {
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
                            "description": "PDF, HTML, Markdown, plain text or DOCX, at most 25 MB each. With "
                            "`collection`, the name of a file may be its path within the folder.",
                        },
                        "collection": {
                            "type": "string",
                            "maxLength": 200,
                            "description": "Name of the collection for the files, such as the name of their "
                            "folder. Empty or absent: single files.",
                        },
                    },
                }
            }
        },
    }
}


@router.get("")
async def list_sources(
    caller: CurrentCaller,
    deps: Deps,
    collection: CollectionQuery = None,
    q: Annotated[str | None, Query(max_length=200, description="Part of the name or title.")] = None,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> SourcePage:
    """List sources, newest first."""
    before = parse_page_cursor(cursor)
    sources, total = await library.list_sources(
        deps.database, caller.tenant_id, collection=collection, title_filter=q, page_key=before, limit=limit + 1
    )
    page = sources[:limit]
    following = render_page_cursor((page[-1].added_at, page[-1].id)) if len(sources) > limit else None
    return SourcePage(items=[serializers.serialize_source(s) for s in page], next=following, total=total)


@router.post("", openapi_extra=UPLOAD_REQUEST_BODY, responses=UPLOAD_RESPONSES)
async def upload_documents(caller: CurrentCaller, deps: Deps, request: Request) -> UploadResultOut:
    """Upload documents. Each file has its own outcome; bytes that are already stored are not read again."""
    with deps.upload_gate.admit(caller.tenant_id, get_announced_bytes(request)):
        async with receive_files(request) as sent:
            return UploadResultOut(
                files=await ingest_files(deps.database, deps.document_readers, caller.tenant_id, sent)
            )


@router.get("/status")
async def get_library_status(caller: CurrentCaller, deps: Deps) -> LibraryStatusOut:
    """Get the number of texts, and how many of them have vectors of the embedding model."""
    models = deps.library_models
    coverage = await library.get_vector_coverage(deps.database, caller.tenant_id, models)
    return serializers.serialize_library_status(coverage, models)


@router.get("/search")
async def search_library(
    caller: CurrentCaller,
    deps: Deps,
    q: Annotated[str, Query(min_length=1, max_length=1000, examples=["connection pooling"])],
    limit: Annotated[int, Query(ge=1, le=1000)] = 10,
    collection: CollectionQuery = None,
) -> SearchHitPage:
    """Search the library for the passages that match a query best."""
    scope = LibraryScope(() if collection is None else (collection,))
    result = await library.search_library(deps.database, caller.tenant_id, q, limit, scope, deps.library_models)
    hits = await asyncio.to_thread(serializers.serialize_search_hits, result.hits, q)
    return SearchHitPage(items=hits, notices=list(result.notices))


@router.get("/sources/{source_id}", responses=SOURCE_NOT_FOUND)
async def get_source(caller: CurrentCaller, deps: Deps, source_id: UUID) -> SourceOut:
    """Get a source."""
    return serializers.serialize_source(await library.get_source(deps.database, caller.tenant_id, source_id))


@router.delete(
    "/sources/{source_id}",
    responses=SOURCE_NOT_FOUND | describe_problems(_409="A run that has read the source has not ended."),
)
async def delete_source(caller: CurrentCaller, deps: Deps, source_id: UUID) -> ErasureOut:
    """Delete a source with everything derived from it.

    This deletes its bytes unless another source uses them, its text and passages, and copies of its text in
    steps and reports.
    """
    erased = await erasure.erase_source(deps.database, caller.tenant_id, source_id)
    return ErasureOut(sources=erased.sources, snapshots=erased.snapshots, passages=erased.passages, steps=erased.steps)


@router.get("/passages", responses=SOURCE_NOT_FOUND)
async def get_passage(
    caller: CurrentCaller,
    deps: Deps,
    text_id: UUID,
    start: Annotated[int, Query(ge=0, le=10**9, description="First code point.")],
    end: Annotated[int, Query(ge=0, le=10**9, description="Code point after the last one.")],
    context_chars: Annotated[
        int, Query(ge=0, le=5000, description="Number of code points to return on either side.")
    ] = 600,
) -> PassageOut:
    """Get a span of a stored text with the text around it."""
    if end - start > MAX_SPAN_CHARS:
        raise InvalidInput("end", f"the range has more than {MAX_SPAN_CHARS:,} characters", "Request a shorter range.")
    passage = await library.get_passage_in_context(deps.database, caller.tenant_id, text_id, start, end, context_chars)
    return serializers.serialize_passage(passage)
