"""Serve the built files of the web UI, with `index.html` for every address that the web UI routes itself."""

from pathlib import Path

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

HASHED_DIR = "assets/"
"""Vite puts a hash of the content into the names of the files in this folder."""

IMMUTABLE_CACHE_CONTROL = "public, max-age=31536000, immutable"

NOT_BUILT_HTML = (
    '<!doctype html><meta charset="utf-8"><title>Offing</title>\n<h1>The web UI is not built</h1><p>Run '
    "<code>make setup</code> and start Offing again. The API is available under /api/v1.</p>"
)


class WebUI(StaticFiles):
    """Static files. Every other address without a suffix gets `index.html`, which handles its own routes."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        if path == "api" or path.startswith("api/"):
            raise HTTPException(404, "There is no such route.")
        if "." not in Path(path).name and not path.startswith(HASHED_DIR):
            path = "index.html"
        response = await super().get_response(path, scope)
        cached = path.startswith(HASHED_DIR) and response.status_code in (200, 304)
        response.headers["Cache-Control"] = IMMUTABLE_CACHE_CONTROL if cached else "no-cache"
        return response


def install_web_ui(app: FastAPI, folder: Path | None) -> None:
    """Serve the web UI under every address that no route has.

    If `folder` is `None`, it was not built, and the response is an explanation.

    It is installed as the router's default and not as a mount, because a mount would answer requests with a
    wrong method for a known route.
    """
    app.router.default = WebUI(directory=folder) if folder is not None else _serve_not_built


async def _serve_not_built(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["path"] != "/":
        raise HTTPException(404, "There is no such route.")
    await HTMLResponse(NOT_BUILT_HTML, 503)(scope, receive, send)
