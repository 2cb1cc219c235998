"""Assemble LangGraph's server API: under a prefix of the API, or alone at the root of a port."""

from collections.abc import Callable, Collection
from functools import cache

from fastapi import APIRouter, Depends, FastAPI

from offing.protocols.langgraph import errors
from offing.protocols.langgraph.access import authorize_thread
from offing.protocols.langgraph.context import LangGraphContext, identify_caller
from offing.protocols.langgraph.gate import RequestGate
from offing.protocols.langgraph.routes import (
    a2a,
    assistants,
    crons,
    mcp,
    runs,
    stateless_runs,
    store,
    system,
    thread_states,
    thread_streams,
    threads,
)

PREFIX = "/langgraph"
"""Where the API serves it."""


ROUTERS = (
    (stateless_runs.router, {"runs"}),
    (crons.router, {"runs"}),
    (runs.router, {"runs"}),
    (threads.router, {"threads"}),
    (thread_states.router, {"threads"}),
    (thread_streams.router, {"threads", "runs"}),
    (assistants.router, {"assistants"}),
    (store.router, {"store"}),
    (mcp.router, {"mcp", "runs", "assistants"}),
    (a2a.router, {"a2a", "runs", "assistants"}),
)
"""Routes with what they give access to. A project turns a group off with `http.disable_<group>`, and with it every
other way to the same. The most requested ones are first, because a request is compared with one route after the other.
"""


def build_langgraph_app(
    context: LangGraphContext | Callable[[], LangGraphContext],
    *,
    disabled_groups: Collection[str] = (),
) -> FastAPI:
    """Return the application that serves LangGraph's clients.

    `context` may be a function, for a process whose clients open only with its lifespan. The application has no
    lifespan of its own: who serves it opens and closes the context. `disabled_groups` are the groups of routes that a
    project turns off.
    """
    app = FastAPI(
        title="Offing: LangGraph's server API",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.get_context = (lambda: context) if isinstance(context, LangGraphContext) else context
    app.router.routes.extend(_build_router(frozenset(disabled_groups)).routes)
    errors.install_error_handlers(app)
    app.add_middleware(RequestGate, get_context=app.state.get_context)
    return app


@cache
def _build_router(disabled_groups: frozenset[str]) -> APIRouter:
    """Return the router without the disabled groups, which every application of this process uses.

    FastAPI analyzes the parameters of all routes again for each router that includes them.
    """
    router = APIRouter()
    guards = [Depends(identify_caller), Depends(authorize_thread)]
    router.include_router(system.probe_router)
    if "meta" not in disabled_groups:
        router.include_router(system.router)
        router.include_router(system.metrics_router, dependencies=guards)
    if not disabled_groups & {"threads", "runs"}:
        router.include_router(thread_streams.sockets)
    for part, groups in ROUTERS:
        if not groups & disabled_groups:
            router.include_router(part, dependencies=guards)
    return router
