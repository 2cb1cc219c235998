"""The installation: graphs, engines, the tenant, health and metrics."""

import asyncio
from decimal import Decimal
from functools import lru_cache

import orjson
from fastapi import APIRouter, Request, Response

from offing.api import wire
from offing.api.auth import Known
from offing.api.parts import Held, Parts
from offing.api.routes.responses import TOO_LARGE
from offing.api.routing import StrictRoute
from offing.api.schemas import EngineOut, GraphOut, HealthOut, McpServerOut, TenantIn, TenantOut
from offing.core.errors import Unavailable
from offing.models import discover
from offing.sdk import Graph
from offing.services import views
from offing.telemetry.logs import logger
from offing.telemetry.metrics import CONTENT_TYPE

log = logger("offing.api")

router = APIRouter(route_class=StrictRoute)

health = APIRouter(prefix="/health", tags=["health"])
"""Open to all: says nothing about anyone's data."""


@router.get("/graphs", tags=["platform"])
async def list_graphs(caller: Known, held: Held) -> list[GraphOut]:
    """Graphs that runs can name."""
    return [
        GraphOut(
            name=graph.name,
            title=graph.title,
            description=graph.description,
            version=graph.version,
            roles=[role.name for role in graph.roles],
            diagram=await asyncio.to_thread(diagram, graph),
        )
        for graph in sorted(held.graphs.values(), key=lambda g: g.name)
    ]


@router.get("/engines", tags=["platform"])
async def list_engines(caller: Known, held: Held) -> list[EngineOut]:
    """Engines that can answer roles here, and the models found for them."""
    found = await discover.engines()
    return [
        EngineOut(name=e.name, available=e.available, models=list(e.models), note=e.note, offered_at=e.offered_at)
        for e in found
    ]


@router.get("/mcp-servers", tags=["platform"])
async def list_mcp_servers(caller: Known, held: Held) -> list[McpServerOut]:
    """MCP servers that a run's scope can name, as the operator has set them up."""
    usable = [one for one in held.servers.servers().values() if not one.problem]
    return [McpServerOut(name=one.name, tools=[tool.spec.name for tool in one.tools]) for one in usable]


@router.get("/tenant", tags=["platform"])
async def get_tenant(caller: Known, held: Held) -> TenantOut:
    """Your settings, and what was spent today (UTC)."""
    return wire.tenant_out(await views.tenant_settings(held.database, caller.tenant))


@router.patch("/tenant", tags=["platform"], responses=TOO_LARGE)
async def change_tenant(caller: Known, held: Held, wanted: TenantIn) -> TenantOut:
    """Change the settings that are sent; the others stay."""
    sent = wanted.model_fields_set
    cap = None if wanted.daily_spend_usd is None else Decimal(str(wanted.daily_spend_usd))
    changed = await views.change_tenant(
        held.database,
        caller.tenant,
        opt_in=wanted.training_opt_in if "training_opt_in" in sent else views.UNSET,
        daily_spend_usd=cap if "daily_spend_usd" in sent else views.UNSET,
    )
    return wire.tenant_out(changed)


@router.get(
    "/metrics",
    tags=["platform"],
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Prometheus text."}},
)
async def get_metrics(caller: Known, held: Held) -> Response:
    """Your runs' figures and this process's, in Prometheus text format."""
    return Response(await held.metrics.text(caller.tenant), media_type=CONTENT_TYPE)


@router.get("/openapi.json", include_in_schema=False)
async def get_openapi(caller: Known, request: Request) -> Response:
    """Return the OpenAPI document of this version."""
    document = await asyncio.to_thread(request.app.openapi)
    return Response(orjson.dumps(document), media_type="application/json")


@health.get("/live")
async def live() -> HealthOut:
    """This process serves."""
    return HealthOut(status="ok", parts={"api": "ok"})


@health.get("/ready", responses={503: {"model": HealthOut, "description": "Postgres does not answer."}})
async def ready(held: Held, response: Response) -> HealthOut:
    """What it needs answers. Without Redis it is `degraded`: everything works, with hints a few seconds late."""
    postgres, redis = await asyncio.gather(_postgres(held), held.live.answers())
    response.status_code = 200 if postgres else 503
    status = "down" if not postgres else "ok" if redis else "degraded"
    return HealthOut(status=status, parts={"postgres": _word(postgres), "redis": _word(redis)})


async def _postgres(held: Parts) -> bool:
    try:
        async with asyncio.timeout(3):
            await held.database.platform("select 1", ())
    except (Unavailable, TimeoutError):
        return False
    return True


def _word(answers: bool) -> str:
    return "ok" if answers else "no answer"


@lru_cache(maxsize=64)
def diagram(graph: Graph) -> str:
    """Mermaid text drawn from the compiled graph; empty for one that cannot be built, which its runs then say.

    Slow the first time: this is where langgraph is imported.
    """
    try:
        return graph.build().compile().get_graph().draw_mermaid()
    except Exception as error:  # an author's code may raise anything, and the other graphs are listed all the same
        log.warning("a graph cannot be drawn", graph=graph.name, reason=f"{type(error).__name__}: {error}")
        return ""
