"""LangGraph's server API beside our own, with the same clients, keys and sessions."""

from fastapi import FastAPI, Request

from offing.api.auth import Caller, authenticate, bearer, cookie
from offing.api.dependencies import AppDependencies
from offing.core.langgraph_config import HttpSettings
from offing.protocols.langgraph import LangGraphContext, Principal, build_langgraph_app
from offing.protocols.langgraph.app import PREFIX
from offing.protocols.langgraph.cors import CorsRules


def mount_langgraph(app: FastAPI, cors: CorsRules, http: HttpSettings) -> None:
    """Serve LangGraph's clients under the prefix, once the app's lifespan has opened its dependencies."""
    langgraph = build_langgraph_app(
        lambda: build_context(app.state.dependencies), cors=cors, disabled_groups=http.disabled_routes
    )
    app.mount(PREFIX, langgraph, name="langgraph")


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
        render_metrics=deps.metrics.render,
        thread_ttl=deps.settings.thread_ttl,
        address_guard=deps.poster.guard,
    )


async def _identify(request: Request, deps: AppDependencies) -> Caller:
    """Return the caller by `x-api-key`, which LangGraph's clients send, or as for every other route."""
    if (sent := request.headers.get("x-api-key")) is not None:
        tenant, key_id = await deps.authenticator.authenticate_key(sent)
        return Caller(tenant, f"key:{key_id}", None, False, lambda: deps.authenticator.authenticate_key(sent))
    csrf_token = request.headers.get("x-csrf-token")
    return await authenticate(request, deps, await bearer(request), await cookie(request), csrf_token)
