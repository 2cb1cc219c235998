"""A project's application in front of LangGraph's API: its routes come first, its middleware is around both."""

import copy
import re
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi.routing import iter_route_contexts
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from offing.core.langgraph_config import HttpSettings, MiddlewareOrder

Rejection = Callable[[Scope, bool], Awaitable[Response | None]]
"""Identifies the caller of a request, and returns the answer to somebody unknown. The second argument says whether the
request is for LangGraph's API, where some paths need no caller.
"""

IS_OWN = "offing.is_own_route"
"""The key of a request's scope that says for which path and method the project was asked, and whether it answers."""


class RouteChoice:
    """The innermost application: the project's routes, or LangGraph's API if they have no answer."""

    def __init__(self, router: Any, system: Starlette, find_rejection: Rejection, *, authenticates: bool) -> None:
        """`authenticates`: the project's routes need a caller, too."""
        self.router, self.system = router, system
        self._find_rejection, self._authenticates = find_rejection, authenticates
        self._segments = {_first_segment(str(one.path)) for one in iter_route_contexts(system.router.routes)}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.router, name)  # what a route asks of the router of its application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.router(scope, receive, send)
        elif not self.has_own(scope):
            await self.system(scope, receive, send)
        elif self._authenticates and (rejection := await self._find_rejection(scope, False)) is not None:
            await respond_rejection(rejection, scope, receive, send)
        else:
            try:
                await self.router(scope, receive, send)
            except SystemExit as error:  # in a task of a middleware it would end the event loop
                raise RuntimeError("the application called sys.exit()") from error

    def has_own(self, scope: Scope) -> bool:
        """Return whether the project answers a request.

        It does so with a route for its path and method, and otherwise where LangGraph's API has no paths. The API looks
        for its route itself, so that it is not looked for twice. A route of the project is looked for again by its own
        router, because who answers must be known before somebody unknown reaches its code.
        """
        address, (known, is_own) = (scope["path"], scope.get("method")), scope.get(IS_OWN, (None, False))
        if known != address:  # a middleware may have changed it
            is_own = self._find_own(scope)
            scope[IS_OWN] = (address, is_own)
        return is_own

    def _find_own(self, scope: Scope) -> bool:
        own = _find_match(self.router.routes, scope)
        if own is not Match.PARTIAL:
            return own is Match.FULL or _first_segment(_path_below_prefix(scope)) not in self._segments
        return _find_match(self.system.router.routes, scope) is not Match.FULL


def list_replaced_routes(own: list[BaseRoute], system: list[BaseRoute]) -> list[str]:
    """Return the routes of LangGraph's API that a project answers in its place, such as `GET /threads/{thread_id}`."""
    replaced: list[str] = []
    for known in iter_route_contexts(system):
        path = SAMPLE_ID.join(PARAMETER.split(str(known.path)))
        for method in sorted(known.methods or ()):
            scope: Scope = {"type": "http", "method": method, "path": path, "root_path": "", "headers": []}
            if _find_match(own, scope) is Match.FULL:
                replaced.append(f"{method} {known.path}")
    return replaced


PARAMETER = re.compile(r"{[^}]*}")

SAMPLE_ID = "00000000-0000-0000-0000-000000000000"
"""It stands for the parameters of a path."""


def _first_segment(path: str) -> str:
    return path.lstrip("/").partition("/")[0]


def _path_below_prefix(scope: Scope) -> str:
    """Return the path below the prefix at which the application is mounted."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


def _find_match(routes: list[BaseRoute], scope: Scope) -> Match:
    """Return how well the best of the routes fits a request."""
    best = Match.NONE
    for route in routes:
        match, _ = route.matches(scope)
        if match is Match.FULL:
            return match
        best = match if match is Match.PARTIAL else best
    return best


class CombinedApp:
    """A copy of a project's application around LangGraph's API. The application itself is not changed."""

    def __init__(self, app: Starlette, system: Starlette, http: HttpSettings, find_rejection: Rejection) -> None:
        self._find_rejection = find_rejection
        self._authenticates_first = http.middleware_order is MiddlewareOrder.AUTH_FIRST
        self._authenticates_own = http.authenticates_app
        self._choice = RouteChoice(app.router, system, find_rejection, authenticates=http.authenticates_app)
        combined: Any = copy.copy(app)
        combined.router = self._choice
        self._app: Starlette = combined
        self._stack: ASGIApp = combined.build_middleware_stack()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = self._app
        if scope["type"] == "http" and self._authenticates_first:
            is_own = self._choice.has_own(scope)
            needs_caller = self._authenticates_own or not is_own
            if needs_caller and (rejection := await self._find_rejection(scope, not is_own)) is not None:
                await rejection(scope, receive, send)
                return
        await self._stack(scope, receive, send)


async def respond_rejection(rejection: Response, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request of somebody unknown. A WebSocket is closed."""
    answer = WebSocketClose(4401) if scope["type"] == "websocket" else rejection
    await answer(scope, receive, send)
