"""The HTTP application: routers, guards and the page, put together; its lifespan owns the clients."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager

from fastapi import APIRouter, Depends, FastAPI

from offing.api import openapi, problems, static
from offing.api.auth import authenticated
from offing.api.guard import Guard, allowed_hosts
from offing.api.parts import assembled
from offing.api.routes import (
    batches,
    evaluations,
    events,
    families,
    files,
    jobs,
    learning,
    library,
    platform,
    policies,
    questions,
    reports,
    runs,
    session,
    tasks,
    threads,
)
from offing.api.routes import trajectories as trajectory_routes
from offing.api.routes.responses import GUARDED, OPEN
from offing.api.traced import PREFIX, Traced
from offing.resources import web_dir
from offing.settings import Settings


def create_app(settings: Settings, *, hosts: Iterable[str] = ()) -> FastAPI:
    """The application. `hosts`: names besides loopback that requests may be addressed to.

    Nothing is connected before its lifespan begins.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with assembled(settings) as parts:
            app.state.parts = parts
            yield

    app = FastAPI(
        title="Offing",
        version="0.1.0",
        description="Long-horizon research runs, their steps as they happen, and cited reports.",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,  # a route of ours serves it, behind the same door as the rest
        lifespan=lifespan,
        telemetry={"tracing": False, "metrics": False, "logs": False},
        generate_unique_id_function=lambda route: route.name,
    )
    _install_routes(app)
    static.install(app, web_dir())
    problems.install(app)
    app.add_middleware(problems.Surprises)
    app.add_middleware(Guard, hosts=allowed_hosts(settings.host, hosts))
    app.add_middleware(Traced)
    app.openapi = lambda: _described(app)
    return app


def _install_routes(app: FastAPI) -> None:
    known = APIRouter(dependencies=[Depends(authenticated)], responses=GUARDED)
    training = (tasks, batches, policies, evaluations, trajectory_routes, jobs, learning)
    for part in (runs, families, files, questions, events, reports, threads, library, *training, session, platform):
        known.include_router(part.router)
    app.include_router(known, prefix=PREFIX)
    app.include_router(platform.health, prefix=PREFIX, responses=OPEN)
    app.include_router(session.login, responses=OPEN)


def _described(app: FastAPI) -> dict[str, object]:
    if app.openapi_schema is None:
        app.openapi_schema = openapi.describe(app)
    return app.openapi_schema
