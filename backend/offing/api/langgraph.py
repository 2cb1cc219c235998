"""LangGraph's server API beside our own, with the same clients, keys and sessions."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from fastapi import FastAPI, Request
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from offing.api.auth import SESSION_COOKIE, Caller, authenticate_with
from offing.api.dependencies import AppDependencies
from offing.api.guard import OWN_CONTENT_POLICY
from offing.api.project_users import read_auth_request
from offing.core.errors import InvalidInput, Unauthorized
from offing.core.langgraph_config import HttpSettings
from offing.protocols.langgraph import LangGraphContext, Principal, build_langgraph_app
from offing.protocols.langgraph.app import PREFIX
from offing.protocols.langgraph.cors import LOCAL_ORIGIN, CorsRules
from offing.protocols.langgraph.errors import respond_anywhere
from offing.protocols.langgraph.gate import find_rejection
from offing.protocols.langgraph.project_app import ProjectAppHost, open_project_app
from offing.protocols.langgraph.request_log import RequestLog
from offing.services.access import KEY_PREFIX
from offing.services.langgraph_auth import AccessDeniedError, ProjectAuth
from offing.services.langgraph_users import select_run_user
from offing.services.project_webhooks import read_webhook_rules
from offing.settings import Settings
from offing.storage.migrate import LOCAL_TENANT

ROOT_PORT = "offing.langgraph_port"
"""The key of a request's scope that says that the request came to the port of LangGraph's API."""


def mount_langgraph(app: FastAPI, settings: Settings, cors: CorsRules, http: HttpSettings) -> ProjectAppHost | None:
    """Serve LangGraph's clients under the prefix, once the app's lifespan has opened its dependencies.

    The result is the host of a project's application, which the lifespan runs. `None` means that none is served.
    """

    def get_context() -> LangGraphContext:
        return build_context(app.state.dependencies, http)

    host = None
    api = build_langgraph_app(get_context, disabled_groups=http.disabled_routes)
    served: ASGIApp = api
    if settings.langgraph_app:
        loader = open_project_app(settings.graph_paths, settings.home, reload=settings.graph_reload)
        host = served = ProjectAppHost(served, loader.get, http, partial(find_rejection, get_context))
    if http.logging_headers is not None:
        served = RequestLog(served, http.logging_headers)
    if cors.is_open:
        served = cors.wrap(served)  # outside the gate, because a browser asks first without a key
    app.mount(
        PREFIX, LangGraphAddress(served, http.mount_prefix, api.routes, has_pages=host is not None), name="langgraph"
    )
    # The router compares a request with one route after the other, and a prefix is compared at once.
    app.router.routes.insert(0, app.router.routes.pop())
    return host


OUTER_KEYS = frozenset({"app", "app_root_path", "endpoint", "path_params", "route", "router"})
"""Keys of a request's scope that this API's router sets, and that would mislead another application's."""


class LangGraphAddress:
    """ASGI application that shows LangGraph's API the paths that its clients know.

    At the root of its own port, these are paths without the prefix. Elsewhere the prefix is their root path.
    """

    def __init__(self, app: ASGIApp, mount_prefix: str, routes: Sequence[BaseRoute], *, has_pages: bool) -> None:
        """`mount_prefix`: what the project puts before all paths. `has_pages`: the project may serve own pages.

        `routes` are those of LangGraph's API, for who asks what a mounted application serves.
        """
        self.app, self.mount_prefix, self.routes, self.has_pages = app, mount_prefix, routes, has_pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        inner = {name: value for name, value in scope.items() if name not in OUTER_KEYS}
        if ROOT_PORT in scope:
            inner |= {"path": scope["path"].removeprefix(PREFIX), "root_path": ""}
            inner["raw_path"] = (scope.get("raw_path") or scope["path"].encode()).removeprefix(PREFIX.encode())
            scope[OWN_CONTENT_POLICY] = self.has_pages  # this origin has nothing else to protect
        path = inner["path"].removeprefix(inner["root_path"])
        if self.mount_prefix and path != "/ok":
            if not path.startswith(f"{self.mount_prefix}/"):
                await respond_anywhere(404, f"All paths begin with {self.mount_prefix}.", scope, receive, send)
                return
            inner["root_path"] += self.mount_prefix
        try:
            await self.app(inner, receive, send)
        finally:
            scope["route"] = inner.get("route")  # traces name it


class LangGraphPort:
    """ASGI middleware that serves LangGraph's API at the root of one port: it adds the prefix to the paths there."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self.app = app
        self.port = port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket") and (scope.get("server") or ("", None))[1] == self.port:
            raw_path = PREFIX.encode() + (scope.get("raw_path") or scope["path"].encode())
            scope = {**scope, "path": PREFIX + scope["path"], "raw_path": raw_path, ROOT_PORT: True}
        await self.app(scope, receive, send)


def build_context(deps: AppDependencies, http: HttpSettings) -> LangGraphContext:
    """Return what LangGraph's API needs of this process."""

    async def identify(request: Request) -> Principal:
        if (project_auth := find_project_auth(request, deps)) is not None:
            return await _identify_user(request, project_auth)
        caller = await _identify(request, deps)
        return Principal(caller.tenant_id, caller.name, caller.reauthenticate)

    return LangGraphContext(
        database=deps.database,
        notifier=deps.notifier,
        bus=deps.bus,
        run_streams=deps.run_streams,
        graphs=deps.graphs,
        default_engine=deps.default_engine,
        role_engines=deps.role_engines,
        mcp_servers=deps.mcp_servers,
        authenticate=identify,
        render_metrics=deps.metrics.render,
        thread_ttl=deps.settings.thread_ttl,
        address_guard=deps.poster.guard,
        run_headers=http.configurable_headers,
        read_webhook_rules=partial(read_webhook_rules, deps.settings.graph_paths),
    )


async def _identify(request: Request, deps: AppDependencies) -> Caller:
    """Return the caller by `x-api-key`, which LangGraph's clients send, or as for every other route.

    A port that needs no key ignores keys of other services, because the clients send those that they find in their
    environment.
    """
    sent = request.headers.get("x-api-key")
    if deps.settings.langgraph_without_key and not (sent or "").startswith(KEY_PREFIX) and _is_local(request):
        return Caller(LOCAL_TENANT, "local", None, False, _accept)
    if sent is not None:
        tenant, key_id = await deps.authenticator.authenticate_key(sent)
        return Caller(tenant, f"key:{key_id}", None, False, lambda: deps.authenticator.authenticate_key(sent))
    return await authenticate_with(request, deps)


def _is_local(request: Request) -> bool:
    """Return whether a request came to the port of LangGraph's API, and from no page of another machine."""
    origin = request.headers.get("origin")
    return ROOT_PORT in request.scope and (origin is None or re.fullmatch(LOCAL_ORIGIN, origin) is not None)


async def _accept() -> None:
    """Accept a request again that needed no key."""


async def _identify_user(request: Request, project_auth: ProjectAuth) -> Principal:
    """Return the user of a project, whose handlers decide what the user sees."""

    sent = read_auth_request(request)
    sent = replace(sent, path=sent.path.removeprefix(request.scope.get("root_path", "")))

    async def authenticate_again() -> object:
        try:
            return await project_auth.authenticate(sent)
        except AccessDeniedError as denied:
            raise Unauthorized(denied.detail) from denied

    user = await project_auth.authenticate(sent)

    async def authorize(resource: str, action: str, value: dict[str, Any]) -> Mapping[str, Any]:
        return await project_auth.authorize(user, resource, action, value)

    name = f"user:{user.identity}"[:200]
    return Principal(
        user.tenant_id,
        name,
        authenticate_again,
        authorize if project_auth.has_rules else None,
        user,
        select_run_user(user, sent),
    )


def find_project_auth(request: Request, deps: AppDependencies) -> ProjectAuth | None:
    """Return the object that decides about a request without a key or session of Offing. `None` means that none does.

    Raises Unauthorized if the object cannot be loaded.
    """
    bearer_key = request.headers.get("authorization", "").partition(" ")[2].strip()
    sent = (request.headers.get("x-api-key", ""), bearer_key)
    if SESSION_COOKIE in request.cookies or any(one.startswith(KEY_PREFIX) for one in sent):
        return None
    try:
        return deps.project_auth.get()
    except InvalidInput as error:
        raise Unauthorized("The Auth object of the project cannot be loaded.") from error
