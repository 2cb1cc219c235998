"""LangGraph's server API beside our own, with the same clients, keys and sessions."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fastapi import FastAPI, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from offing.api.auth import SESSION_COOKIE, Caller, authenticate, bearer, cookie
from offing.api.dependencies import AppDependencies
from offing.api.project_users import read_auth_request
from offing.core.errors import InvalidInput, Unauthorized
from offing.core.langgraph_config import HttpSettings
from offing.protocols.langgraph import LangGraphContext, Principal, build_langgraph_app
from offing.protocols.langgraph.app import PREFIX
from offing.protocols.langgraph.cors import LOCAL_ORIGIN, CorsRules
from offing.services.access import KEY_PREFIX
from offing.services.langgraph_auth import AccessDeniedError, ProjectAuth
from offing.storage.migrate import LOCAL_TENANT

ROOT_PORT = "offing.langgraph_port"
"""The key of a request's scope that says that the request came to the port of LangGraph's API."""


def mount_langgraph(app: FastAPI, cors: CorsRules, http: HttpSettings) -> None:
    """Serve LangGraph's clients under the prefix, once the app's lifespan has opened its dependencies."""
    langgraph = build_langgraph_app(
        lambda: build_context(app.state.dependencies), cors=cors, disabled_groups=http.disabled_routes
    )
    app.mount(PREFIX, langgraph, name="langgraph")


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


def build_context(deps: AppDependencies) -> LangGraphContext:
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
    csrf_token = request.headers.get("x-csrf-token")
    return await authenticate(request, deps, await bearer(request), await cookie(request), csrf_token)


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
    return Principal(user.tenant_id, name, authenticate_again, authorize if project_auth.has_rules else None)


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
