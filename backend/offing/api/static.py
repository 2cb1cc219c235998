"""The page: the built files, with the one document for every address that is the page's own to interpret."""

from pathlib import Path

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

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
    """Serve the page under every address that no route has. `folder` None: it was not built, and says so.

    As the router's default and not as a mount, which would take requests with a wrong method for a known route.
    """
    app.router.default = Page(directory=folder) if folder is not None else _not_built


async def _not_built(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["path"] != "/":
        raise HTTPException(404, "There is no such route.")
    await HTMLResponse(NOT_BUILT, 503)(scope, receive, send)
