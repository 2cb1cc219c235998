"""Serve the web application that `http.app` of a LangGraph project names, in its newest version that could be started.

It runs in this process, because its middleware is around LangGraph's API and its routes can replace those of it. A
failure of its code ends a request, not the server. If no version could be started, LangGraph's API is not served
either, because the middleware may guard it.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from starlette.applications import Starlette
from starlette.types import Message, Receive, Scope, Send

from offing.core.errors import InvalidInput
from offing.core.langgraph_config import HttpSettings
from offing.protocols.langgraph import errors
from offing.protocols.langgraph.app_lifespan import AppLifespan
from offing.protocols.langgraph.combined_app import CombinedApp, Rejection, list_replaced_routes
from offing.services.project_objects import ProjectKey, ProjectObjectLoader

MAX_RELOAD_SECONDS = 10.0
"""How long a request waits for a new version to start. Then the version before it answers."""

MAX_NAMED_ROUTES = 10
"""Maximum number of replaced routes that the log names."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, eq=False)
class LoadedApp:
    """An application that was imported and not started."""

    app: Starlette
    field: str
    """Its name in errors."""


def _check_app(value: Any, field: str, _version: str) -> LoadedApp:
    if not isinstance(value, Starlette):
        problem = f"it is of type {type(value).__name__}, not a Starlette or FastAPI application"
        raise InvalidInput(field, problem, "Name one, or remove `http.app`.")
    return LoadedApp(value, field)


APP = ProjectKey(name="http.app", kind="an http.app", find_target=lambda project: project.http_app, build=_check_app)


def open_project_app(paths: str, data_dir: Path, *, reload: bool) -> ProjectObjectLoader[LoadedApp]:
    """Return the loader of the application of the projects among the paths."""
    return ProjectObjectLoader(APP, paths, data_dir, reload=reload)


@dataclass(eq=False)
class _Serving:
    """A version that was started."""

    loaded: LoadedApp
    app: CombinedApp
    lifespan: AppLifespan
    active: int = 0
    """Number of requests that it answers now."""
    is_replaced: bool = False


class ProjectAppHost:
    """ASGI application: a project's application around LangGraph's API, or only the latter if there is none."""

    def __init__(
        self,
        system: Starlette,
        load: Callable[[], LoadedApp | None],
        http: HttpSettings,
        find_rejection: Rejection,
    ) -> None:
        self._system, self._load, self._http, self._find_rejection = system, load, http, find_rejection
        self._current: _Serving | None = None
        self._failed: tuple[LoadedApp, InvalidInput] | None = None
        self._starting: asyncio.Task[None] | None = None
        self._stopping: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        """Start the application, and stop it in the end. An application that cannot be started is logged."""
        with suppress(InvalidInput):  # it was logged, and each request is answered with 503
            await self._find_current()
        try:
            yield
        finally:
            await self._end()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            serving = await self._find_current()
        except InvalidInput:
            detail = "The application of http.app cannot be started. The log has the reason."
            await errors.respond_anywhere(503, detail, scope, receive, send)
            return
        if serving is None:
            await self._system(scope, receive, send)
            return
        serving.active += 1
        try:
            await self._serve(serving, scope, receive, send)
        finally:
            serving.active -= 1
            if serving.is_replaced and not serving.active:
                self._stop_later(serving)

    async def _serve(self, serving: _Serving, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, with 500 if the project's code fails before it has answered."""
        has_started = False

        async def noticed(message: Message) -> None:
            nonlocal has_started
            has_started = True
            await send(message)

        scope["state"] = {**serving.lifespan.state, **scope.get("state", {})}
        try:
            await serving.app(scope, receive, noticed)
        except (Exception, SystemExit) as error:
            log.error("the application of http.app failed", path=scope["path"], exc_info=error)
            if not has_started:
                detail = "The application of http.app failed. The log has the reason."
                await errors.respond_anywhere(500, detail, scope, receive, send)

    async def _find_current(self) -> _Serving | None:
        """Return the version that answers, after a new one was started. `None` means that there is no application.

        Raises InvalidInput if no version could be started.
        """
        loaded = self._load()
        if loaded is None:
            if self._current is not None:
                self._replace(None)
            return None
        if self._starting is None and not self._is_known(loaded):
            self._starting = asyncio.create_task(self._start(loaded))
        if self._starting is not None:
            limit = None if self._current is None else MAX_RELOAD_SECONDS
            await asyncio.wait([self._starting], timeout=limit)
        if self._current is None and self._failed is not None:
            raise self._failed[1]
        return self._current

    def _is_known(self, loaded: LoadedApp) -> bool:
        """Return whether a version was started, or failed to start."""
        is_current = self._current is not None and self._current.loaded is loaded
        return is_current or (self._failed is not None and self._failed[0] is loaded)

    async def _start(self, loaded: LoadedApp) -> None:
        try:
            app = CombinedApp(loaded.app, self._system, self._http, self._find_rejection)
            lifespan = AppLifespan(app, loaded.field)
            await lifespan.start()
        except Exception as error:
            known = error if isinstance(error, InvalidInput) else InvalidInput(loaded.field, str(error), "Correct it.")
            log.warning("the application of http.app cannot be started", reason=str(known))
            self._failed = (loaded, known)
        else:
            if replaced := list_replaced_routes(loaded.app.router.routes, self._system.router.routes):
                log.warning(
                    "routes of http.app are served in the place of LangGraph's",
                    count=len(replaced),
                    routes=replaced[:MAX_NAMED_ROUTES],
                )
            self._replace(_Serving(loaded, app, lifespan))
        finally:
            self._starting = None

    def _replace(self, new: _Serving | None) -> None:
        old, self._current = self._current, new
        if old is not None:
            old.is_replaced = True
            if not old.active:
                self._stop_later(old)

    def _stop_later(self, serving: _Serving) -> None:
        task = asyncio.create_task(_stop(serving))
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)

    async def _end(self) -> None:
        if self._starting is not None:
            await asyncio.wait([self._starting])
        if self._current is not None:
            await _stop(self._current)
        if self._stopping:
            await asyncio.wait(self._stopping)


async def _stop(serving: _Serving) -> None:
    if problem := await serving.lifespan.stop():
        log.warning("the application of http.app failed to stop", reason=problem)
