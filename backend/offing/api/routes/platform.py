"""The installation: graphs, engines, the tenant, health and metrics."""

from fastapi import APIRouter, Response

from offing.api.auth import Known
from offing.api.parts import Held
from offing.api.routes.responses import TOO_LARGE
from offing.api.schemas import EngineOut, GraphOut, HealthOut, TenantIn, TenantOut
from offing.api.strict import StrictRoute

router = APIRouter(route_class=StrictRoute)

health = APIRouter(prefix="/health", tags=["health"])
"""Open to all: says nothing about anyone's data."""


@router.get("/graphs", tags=["platform"])
async def list_graphs(caller: Known, held: Held) -> list[GraphOut]:
    """Graphs that runs can name."""
    raise NotImplementedError


@router.get("/engines", tags=["platform"])
async def list_engines(caller: Known, held: Held) -> list[EngineOut]:
    """Engines that can answer roles here, and the models found for them."""
    raise NotImplementedError


@router.get("/tenant", tags=["platform"])
async def get_tenant(caller: Known, held: Held) -> TenantOut:
    """Your settings, and what was spent today (UTC)."""
    raise NotImplementedError


@router.patch("/tenant", tags=["platform"], responses=TOO_LARGE)
async def change_tenant(caller: Known, held: Held, wanted: TenantIn) -> TenantOut:
    """Change the settings that are sent; the others stay."""
    raise NotImplementedError


@router.get(
    "/metrics",
    tags=["platform"],
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Prometheus text."}},
)
async def get_metrics(caller: Known, held: Held) -> Response:
    """Your runs' figures and this process's, in Prometheus text format."""
    raise NotImplementedError


@health.get("/live")
async def live() -> HealthOut:
    """This process serves."""
    return HealthOut(status="ok", parts={"api": "ok"})


@health.get("/ready", responses={503: {"model": HealthOut, "description": "Postgres does not answer."}})
async def ready(held: Held, response: Response) -> HealthOut:
    """What it needs answers. Without Redis it is `degraded`: everything works, with hints a few seconds late."""
    raise NotImplementedError
