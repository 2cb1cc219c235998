"""The page: the built files, with the one document for every address that is the page's own to interpret."""

from pathlib import Path

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

HASHED = "assets/"
"""Vite puts a hash of the content into the names of the files in here."""

FOR_EVER = "public, max-age=31536000, immutable"

NOT_BUILT = """<!doctype html><meta charset="utf-8"><title>Offing</title>
<h1>The page is not built</h1><p>Run <code>make setup</code> and start again. The API answers under /api/v1.</p>"""


class Page(StaticFiles):
    """Static files; any other address without a suffix gets the page itself, which knows its own addresses."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        if path == "api" or path.startswith("api/"):
            raise HTTPException(404, "There is no such route.")
        if "." not in Path(path).name and not path.startswith(HASHED):
            path = "index.html"
        response = await super().get_response(path, scope)
        cached = path.startswith(HASHED) and response.status_code in (200, 304)
        response.headers["Cache-Control"] = FOR_EVER if cached else "no-cache"
        return response


def install(app: FastAPI, folder: Path | None) -> None:
    """Serve the page under every address that no route has. `folder` None: it was not built, and says so."""
    if folder is not None:
        app.mount("/", Page(directory=folder), name="page")
        return

    async def not_built() -> HTMLResponse:
        return HTMLResponse(NOT_BUILT, 503)

    app.add_api_route("/", not_built, include_in_schema=False)
