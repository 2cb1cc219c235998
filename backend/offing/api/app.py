"""Assemble the HTTP application from routers, guards and the web UI. Its lifespan owns the clients."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from functools import cache

from fastapi import APIRouter, Depends, FastAPI

from offing.api import openapi, problems, web_ui
from offing.api.auth import authenticate
from offing.api.dependencies import open_dependencies
from offing.api.guard import RequestGuard, list_allowed_hosts
from offing.api.langgraph import LangGraphPort, mount_langgraph
from offing.api.routes import (
    api_keys,
    asking,
    collections,
    evaluations,
    events,
    input_requests,
    installation,
    langgraph_runs,
    library,
    notifications,
    platform,
    policy_versions,
    prompt_libraries,
    providers,
    report_versions,
    reports,
    rollouts,
    run_changes,
    run_files,
    run_views,
    runs,
    sessions,
    shares,
    tags,
    tasks,
    threads,
    tool_policies,
    training_jobs,
    training_signals,
)
from offing.api.routes import trajectories as trajectory_routes
from offing.api.routes.responses import GUARDED_RESPONSES, OPEN_RESPONSES
from offing.api.tracing_middleware import API_PREFIX, TracingMiddleware
from offing.packaged_files import find_web_dir
from offing.protocols.langgraph.app import PREFIX
from offing.protocols.langgraph.cors import LOCAL_ORIGIN, parse_cors
from offing.services.project_http import read_http_settings
from offing.settings import Settings


def create_app(settings: Settings, *, hosts: Iterable[str] = ()) -> FastAPI:
    """Return the application. `hosts` are names besides loopback that requests may be addressed to.

    Nothing is connected before the lifespan begins.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with open_dependencies(settings) as dependencies:
            app.state.dependencies = dependencies
            async with host.run() if host is not None else nullcontext():
                yield

    app = FastAPI(
        title="Offing",
        version="0.1.0",
        description="Long-horizon research runs, their steps as they happen, and cited reports.",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,  # one of our own routes serves it, behind the same authentication as the others
        lifespan=lifespan,
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.router.routes.extend(_build_router().routes)
    http = read_http_settings(settings.graph_paths)
    cors = parse_cors(http.cors, settings.cors_origins)
    if settings.langgraph_without_key and not cors.is_open:
        cors = replace(cors, origin_regex=LOCAL_ORIGIN)
    host = mount_langgraph(app, settings, cors, http)
    web_ui.install_web_ui(app, find_web_dir())
    problems.install_error_handlers(app)
    app.add_middleware(problems.UnhandledErrorMiddleware)
    app.add_middleware(
        RequestGuard, hosts=list_allowed_hosts(settings.host, hosts), cors_prefix=PREFIX, allows_origin=cors.allows
    )
    app.add_middleware(TracingMiddleware)
    if settings.langgraph_port is not None:
        app.add_middleware(LangGraphPort, port=settings.langgraph_port)
    app.openapi = lambda: _build_openapi(app)
    return app


@cache
def _build_router() -> APIRouter:
    """Return the router with all routes of the API, which every application of this process uses.

    FastAPI analyzes the parameters of all routes again for each router that includes them, which takes half a second.
    """
    router = APIRouter(generate_unique_id_function=lambda route: route.name)
    guarded = [Depends(authenticate)]
    training = (
        training_signals,
        tasks,
        rollouts,
        policy_versions,
        evaluations,
        trajectory_routes,
        training_jobs,
        prompt_libraries,
    )
    # The router compares a request with one route after the other. Those of runs in progress come first.
    for part in (
        runs,
        events,
        tags,
        run_files,
        run_changes,
        run_views,
        input_requests,
        langgraph_runs,
        report_versions,
        reports,
        shares,
        notifications,
        threads,
        library,
        collections,
        *training,
        sessions,
        platform,
        providers,
        installation,
        api_keys,
        tool_policies,
        asking,
    ):
        router.include_router(part.router, prefix=API_PREFIX, dependencies=guarded, responses=GUARDED_RESPONSES)
    router.include_router(platform.health_router, prefix=API_PREFIX, responses=OPEN_RESPONSES)
    router.include_router(shares.shared_router, prefix=API_PREFIX, responses=OPEN_RESPONSES)
    router.include_router(sessions.login_router, responses=OPEN_RESPONSES)
    return router


def _build_openapi(app: FastAPI) -> dict[str, object]:
    if app.openapi_schema is None:
        app.openapi_schema = openapi.build_openapi(app)
    return app.openapi_schema
