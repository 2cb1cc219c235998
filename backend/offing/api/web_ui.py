"""Serve the built files of the web UI, with a page for every address that the web UI routes itself."""

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import anyio
import anyio.to_thread
from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.staticfiles import NotModifiedResponse, StaticFiles
from starlette.types import Receive, Scope, Send

from offing.api.guard import CONTENT_SECURITY_POLICY

HASHED_DIR = "assets/"
"""Vite puts a hash of the content into the names of the files in this folder."""

IMMUTABLE_CACHE_CONTROL = "public, max-age=31536000, immutable"

PAGES = frozenset({"", ".", "runs", "library", "training", "settings", "sign-in", "shared", "stories"})
"""First segments of the addresses that the web UI routes itself. Starlette calls the root `.`."""

PAGE_FILES = {
    "library": "library.html",
    "runs": "runs.html",
    "settings": "settings.html",
    "shared": "shared.html",
    "sign-in": "sign-in.html",
    "training": "training.html",
}
"""The page of each first segment. Each names the files that its view needs. Other addresses get `index.html`, whose
code shows every view, too, but fetches its files later.
"""

INLINE_SCRIPT_PATTERN = re.compile(rb"<script(?![^>]*\ssrc=)[^>]*>(.*?)</script>", re.DOTALL)
"""A script in a page that names no file. The group is its code."""

ENCODED_SUFFIXES = {"br": ".br", "gzip": ".gz"}
"""Content codings, the better first, and the suffixes of the files that the build compressed with them."""

NOT_BUILT_HTML = (
    '<!doctype html><meta charset="utf-8"><title>Offing</title>\n<h1>The web UI is not built</h1><p>Run '
    "<code>make setup</code> and start Offing again. The API is available under /api/v1.</p>"
)


@dataclass(frozen=True)
class StoredFile:
    """A file of the build as it is sent. `headers` are those of its response."""

    content: bytes
    headers: Mapping[str, str]


class WebUI(StaticFiles):
    """Static files, compressed if the browser accepts it. Every address of a page gets its page, and every other one
    without a suffix that a browser opens gets `index.html`, which says that there is none.

    A page loads 20 files or more, and to open each of them anew would cost more than to send it. Files whose name has
    the hash of their content therefore stay in memory once they were requested: at most all of them, a few megabytes.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(directory=directory)
        self._encodings: dict[str, list[str]] = {}
        self._files: dict[str, StoredFile] = {}

    async def get_response(self, path: str, scope: Scope) -> Response:
        name, policy = Path(path).name, ""
        if path == "api" or path.startswith("api/") or name.endswith(tuple(ENCODED_SUFFIXES.values())):
            raise HTTPException(404, "There is no such route.")
        if "." not in name and not path.startswith(HASHED_DIR):
            check_page_request(path, Headers(scope=scope).get("accept", ""))
            path, policy = await anyio.to_thread.run_sync(self._find_page, path)
        is_hashed = path.startswith(HASHED_DIR)
        encodings = self._encodings.get(path)
        if encodings is None:
            encodings = await anyio.to_thread.run_sync(self._list_encodings, path)
        encoding = choose_encoding(Headers(scope=scope).get("accept-encoding", ""), encodings)
        file = path + ENCODED_SUFFIXES.get(encoding, "")
        # The entity tag is made of the time and size of the file that is sent, so each coding has another one.
        response = self._build_stored_response(file, scope) or await super().get_response(file, scope)
        if is_hashed and isinstance(response, FileResponse):
            self._encodings[path] = encodings
            await self._store(file, response)
        cached = is_hashed and response.status_code in (200, 206, 304)
        response.headers["Cache-Control"] = IMMUTABLE_CACHE_CONTROL if cached else "no-cache"
        if policy:
            response.headers["Content-Security-Policy"] = policy
        if encodings:
            response.headers["Vary"] = "Accept-Encoding"
        if encoding and response.status_code != 304:
            response.headers["Content-Encoding"] = encoding
        return response

    def _build_stored_response(self, file: str, scope: Scope) -> Response | None:
        """Return the response with a file in memory. `None` means that it is not there, or that only a part of it is
        requested.
        """
        stored, requested = self._files.get(file), Headers(scope=scope)
        if stored is None or scope["method"] != "GET" or "range" in requested:
            return None
        response = Response(stored.content, headers=stored.headers)
        return NotModifiedResponse(response.headers) if self.is_not_modified(response.headers, requested) else response

    async def _store(self, file: str, response: FileResponse) -> None:
        """Keep the file of a response with its headers, before the others are added."""
        content = await anyio.Path(response.path).read_bytes()
        self._files[file] = StoredFile(content, dict(response.headers))

    def _find_page(self, path: str) -> tuple[str, str]:
        """Return the file of the page for an address, and its content security policy. A build without one for each
        view has only `index.html`. The policy is empty if there is no page.
        """
        for page in (choose_page(path), "index.html"):
            full_path, stats = self.lookup_path(page)
            if stats:
                return page, build_page_policy(Path(full_path).read_bytes())
        return "index.html", ""

    def _list_encodings(self, path: str) -> list[str]:
        """Return the codings in which the build stored a file."""
        try:
            return [name for name, suffix in ENCODED_SUFFIXES.items() if self.lookup_path(path + suffix)[1]]
        except (OSError, ValueError):
            return []  # no file can have this name, which is what the response says


def choose_page(path: str) -> str:
    """Return the file of the page for an address of the web UI."""
    first, _, rest = path.strip("/").partition("/")
    if first == "runs" and rest:
        return "compare.html" if rest == "compare" else "run.html"
    return PAGE_FILES.get(first, "index.html")


def build_page_policy(html: bytes) -> str:
    """Return the content security policy of a page of the build, which allows the scripts that the page contains, by
    their hashes, and no others.
    """
    hashes = [b64encode(sha256(code).digest()).decode() for code in INLINE_SCRIPT_PATTERN.findall(html)]
    sources = " ".join(["script-src 'self'", *(f"'sha256-{value}'" for value in hashes)])
    return CONTENT_SECURITY_POLICY.replace("script-src 'self'", sources)


def check_page_request(path: str, accepted: str) -> None:
    """Raise HTTPException 404 unless the web UI has a page for this path, or a browser asks for one.

    Programs that probe for another API, such as `GET /info`, would take a page as its answer.
    """
    if path.split("/")[0] not in PAGES and "text/html" not in accepted.lower():
        raise HTTPException(404, "There is no such route.")


def choose_encoding(accepted: str, available: list[str]) -> str:
    """Return the available content coding that the header `Accept-Encoding` prefers, or the first of several.

    The empty text means none.
    """
    weights = {name: weight for part in accepted.split(",") for name, weight in [_parse_weight(part)]}
    chosen = max(available, key=lambda name: weights.get(name, weights.get("*", 0)), default="")
    return chosen if weights.get(chosen, weights.get("*", 0)) > 0 else ""


def _parse_weight(part: str) -> tuple[str, float]:
    """Return the name and weight of a part of `Accept-Encoding`. A weight that is not a number counts as 0."""
    name, _, parameter = part.partition(";")
    weight = parameter.strip().lower().removeprefix("q=") or "1"
    try:
        return name.strip().lower(), float(weight)
    except ValueError:
        return name.strip().lower(), 0.0


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
