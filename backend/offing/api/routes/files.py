"""Files that the code of a run has written. They come from a stranger, and no answer lets a browser run any of them."""

from typing import Annotated
from urllib.parse import quote
from uuid import UUID

from fastapi import APIRouter, Path, Response

from offing.api.auth import Known
from offing.api.parts import Held
from offing.api.routes.responses import NO_RUN, Responses, problems
from offing.api.routing import StrictRoute
from offing.api.schemas import FileList, FileOut
from offing.services import files
from offing.storage.run_files import FileRow

router = APIRouter(prefix="/runs/{run_id}/files", tags=["runs"], route_class=StrictRoute)

NO_FILE = problems(_404="There is no such run, or its code wrote no such file.")

BYTES: Responses = {
    200: {
        "description": "The file as it was written.",
        "content": {
            kind: {"schema": {"type": "string", "format": "binary"}}
            for kind in ("application/octet-stream", "image/png", "image/svg+xml")
        },
    }
}

POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
"""Should a browser open it by itself: a document of no origin, without scripts."""

Hash = Annotated[str, Path(pattern="^[0-9a-f]{64}$", description="SHA-256 of its bytes, in hex.")]


@router.get("", responses=NO_RUN)
async def list_files(caller: Known, held: Held, run_id: UUID) -> FileList:
    """Files that the run's code has written, in order."""
    found = await files.listed(held.database, caller.tenant, run_id)
    return FileList(items=[file_out(file) for file in found])


@router.get("/{sha256}", response_class=Response, responses=NO_FILE | BYTES)
async def get_file(caller: Known, held: Held, run_id: UUID, sha256: Hash) -> Response:
    """One file. A PNG may be shown; everything else is a download."""
    found = await files.one(held.database, caller.tenant, run_id, sha256)
    kind = found.media_type if found.media_type in files.PICTURES else "application/octet-stream"
    disposition = "inline" if kind in files.OPENED else "attachment"
    name = quote(found.name.rpartition("/")[2], safe="")
    headers = {
        "Cache-Control": "no-store",
        "Content-Disposition": f"{disposition}; filename*=UTF-8''{name}",
        "Content-Security-Policy": POLICY,
    }
    return Response(found.body, media_type=kind, headers=headers)


def file_out(file: FileRow) -> FileOut:
    return FileOut(
        name=file.name,
        sha256=file.sha256.hex(),
        bytes=file.size,
        kind=file.media_type,
        picture=file.media_type in files.PICTURES,
    )
