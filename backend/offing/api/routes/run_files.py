"""Routes for files that the code of a run has written.

They are untrusted, so no response lets a browser execute them.
"""

from typing import Annotated
from urllib.parse import quote
from uuid import UUID

from fastapi import APIRouter, Path, Response

from offing.api.auth import CurrentCaller
from offing.api.dependencies import Deps
from offing.api.routes.responses import RUN_NOT_FOUND, Responses, describe_problems
from offing.api.schemas.runs import RunFileList, RunFileOut
from offing.api.strict_route import StrictRoute
from offing.services import run_files
from offing.storage.run_files import RunFileRow

router = APIRouter(prefix="/runs/{run_id}/files", tags=["runs"], route_class=StrictRoute)

FILE_NOT_FOUND = describe_problems(_404="There is no such run, or its code did not write such a file.")

FILE_RESPONSES: Responses = {
    200: {
        "description": "The file, unchanged.",
        "content": {
            kind: {"schema": {"type": "string", "format": "binary"}}
            for kind in ("application/octet-stream", "image/png", "image/svg+xml")
        },
    }
}

FILE_CONTENT_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
"""Content-Security-Policy for a file that a browser opens directly: no origin and no scripts."""

Sha256Path = Annotated[str, Path(pattern="^[0-9a-f]{64}$", description="SHA-256 of the file, in hex.")]


@router.get("", responses=RUN_NOT_FOUND)
async def list_run_files(caller: CurrentCaller, deps: Deps, run_id: UUID) -> RunFileList:
    """List the files that the run's code has written, in order."""
    files = await run_files.list_files(deps.database, caller.tenant_id, run_id)
    return RunFileList(items=[serialize_run_file(file) for file in files])


@router.get("/{sha256}", response_class=Response, responses=FILE_NOT_FOUND | FILE_RESPONSES)
async def get_run_file(caller: CurrentCaller, deps: Deps, run_id: UUID, sha256: Sha256Path) -> Response:
    """Get a file. A PNG may be displayed; every other file is a download."""
    file = await run_files.get_file(deps.database, caller.tenant_id, run_id, sha256)
    kind = file.media_type if file.media_type in run_files.IMAGE_MEDIA_TYPES else "application/octet-stream"
    disposition = "inline" if kind in run_files.INLINE_MEDIA_TYPES else "attachment"
    name = quote(file.name.rpartition("/")[2], safe="")
    headers = {
        "Cache-Control": "no-store",
        "Content-Disposition": f"{disposition}; filename*=UTF-8''{name}",
        "Content-Security-Policy": FILE_CONTENT_SECURITY_POLICY,
    }
    return Response(file.body, media_type=kind, headers=headers)


def serialize_run_file(file: RunFileRow) -> RunFileOut:
    return RunFileOut(
        name=file.name,
        sha256=file.sha256.hex(),
        size_bytes=file.size_bytes,
        media_type=file.media_type,
        is_image=file.media_type in run_files.IMAGE_MEDIA_TYPES,
    )
