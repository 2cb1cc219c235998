"""LangGraph's server API beside our own, with the same clients, keys and sessions."""

from fastapi import FastAPI, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from offing.api.auth import Caller, authenticate, bearer, cookie
from offing.api.dependencies import AppDependencies
from offing.protocols.langgraph import LangGraphContext, Principal, build_langgraph_app
from offing.protocols.langgraph.app import PREFIX
from offing.services.access import KEY_PREFIX
from offing.storage.migrate import LOCAL_TENANT

ROOT_PORT = "offing.langgraph_port"
"""The key of a request's scope that says that the request came to the port of LangGraph's API."""


def mount_langgraph(app: FastAPI) -> None:
    """Serve LangGraph's clients under the prefix, once the app's lifespan has opened its dependencies."""
    app.mount(PREFIX, build_langgraph_app(lambda: build_context(app.state.dependencies)), name="langgraph")


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
        thread_ttl=deps.settings.thread_ttl,
        address_guard=deps.poster.guard,
    )


async def _identify(request: Request, deps: AppDependencies) -> Caller:
    """Return the caller by `x-api-key`, which LangGraph's clients send, or as for every other route.

    A port that needs no key ignores keys of other services, because the clients send those that they find in their
    environment.
    """
    sent = request.headers.get("x-api-key")
    if deps.settings.langgraph_without_key and ROOT_PORT in request.scope and not (sent or "").startswith(KEY_PREFIX):
        return Caller(LOCAL_TENANT, "local", None, False, _accept)
    if sent is not None:
        tenant, key_id = await deps.authenticator.authenticate_key(sent)
        return Caller(tenant, f"key:{key_id}", None, False, lambda: deps.authenticator.authenticate_key(sent))
    csrf_token = request.headers.get("x-csrf-token")
    return await authenticate(request, deps, await bearer(request), await cookie(request), csrf_token)


async def _accept() -> None:
    """Accept a request again that needed no key."""
