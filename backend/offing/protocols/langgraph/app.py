"""Assemble LangGraph's server API: under a prefix of the API, or alone at the root of a port."""

from collections.abc import Callable

from fastapi import Depends, FastAPI

from offing.protocols.langgraph import errors
from offing.protocols.langgraph.context import LangGraphContext, identify_caller
from offing.protocols.langgraph.gate import RequestGate
from offing.protocols.langgraph.routes import (
    assistants,
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


def build_langgraph_app(context: LangGraphContext | Callable[[], LangGraphContext]) -> FastAPI:
    """Return the application that serves LangGraph's clients.

    `context` may be a function, for a process whose clients open only with its lifespan. The application has no
    lifespan of its own: who serves it opens and closes the context.
    """
    app = FastAPI(
        title="Offing: LangGraph's server API",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.get_context = (lambda: context) if isinstance(context, LangGraphContext) else context
    app.include_router(system.router)
    app.include_router(thread_streams.sockets)
    for part in (assistants, threads, thread_states, thread_streams, runs, stateless_runs, store):
        app.include_router(part.router, dependencies=[Depends(identify_caller)])
    errors.install_error_handlers(app)
    app.add_middleware(RequestGate)
    return app
