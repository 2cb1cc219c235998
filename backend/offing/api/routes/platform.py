"""Routes for the installation: graphs, engines, tenant settings, health and metrics."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

import orjson
from fastapi import APIRouter, Request, Response

from offing.api import serializers
from offing.api.auth import CurrentCaller
from offing.api.coded_texts import serialize_offer_texts
from offing.api.dependencies import AppDependencies, Deps
from offing.api.routes.responses import BODY_TOO_LARGE
from offing.api.schemas.platform import EngineOut, GraphEdgeOut, GraphOut, HealthOut, McpServerOut, TenantIn, TenantOut
from offing.api.strict_route import StrictRoute
from offing.core.errors import Unavailable
from offing.models import engine_discovery
from offing.sdk import Graph
from offing.services import tenants
from offing.telemetry.logs import get_logger
from offing.telemetry.metrics import CONTENT_TYPE

log = get_logger("offing.api")

router = APIRouter(route_class=StrictRoute)

health_router = APIRouter(prefix="/health", tags=["health"])
"""Open to all callers, because the responses reveal nothing about anyone's data."""


@router.get("/graphs", tags=["platform"])
async def list_graphs(caller: CurrentCaller, deps: Deps) -> list[GraphOut]:
    """List the graphs that runs can name."""
    graphs = sorted(deps.graphs.values(), key=lambda g: g.name)
    return [_serialize_graph(graph, await asyncio.to_thread(draw_graph, graph)) for graph in graphs]


@router.get("/engines", tags=["platform"])
async def list_engines(caller: CurrentCaller, deps: Deps) -> list[EngineOut]:
    """List the engines that can answer roles on this installation, with the models that were found for each."""
    engines = await engine_discovery.discover_engines()
    return await asyncio.to_thread(_serialize_engines, engines)  # the first time, the table of models is read from disk


def _serialize_engines(engines: Sequence[engine_discovery.DiscoveredEngine]) -> list[EngineOut]:
    return [
        EngineOut(
            name=e.name,
            available=e.available,
            models=list(e.models),
            model_details=[details for model in e.models if (details := serializers.serialize_model_details(model))],
            note=e.note,
            texts=serialize_offer_texts(note=e.note),
            offered_at=e.offered_at,
        )
        for e in engines
    ]


@router.get("/mcp-servers", tags=["platform"])
async def list_mcp_servers(caller: CurrentCaller, deps: Deps) -> list[McpServerOut]:
    """List the MCP servers that a run's scope can name, as the operator configured them."""
    usable = [one for one in deps.mcp_servers.list_servers().values() if not one.problem]
    return [McpServerOut(name=one.name, tools=[tool.spec.name for tool in one.tools]) for one in usable]


@router.get("/tenant", tags=["platform"])
async def get_tenant(caller: CurrentCaller, deps: Deps) -> TenantOut:
    """Get your tenant's settings and what was spent today (UTC)."""
    return serializers.serialize_tenant(await tenants.get_tenant(deps.database, caller.tenant_id), deps.default_engine)


@router.patch("/tenant", tags=["platform"], responses=BODY_TOO_LARGE)
async def update_tenant(caller: CurrentCaller, deps: Deps, body: TenantIn) -> TenantOut:
    """Update tenant settings. Fields that are not sent stay unchanged."""
    sent = body.model_fields_set
    cap = None if body.max_daily_spend_usd is None else Decimal(str(body.max_daily_spend_usd))
    changed = await tenants.update_tenant(
        deps.database,
        caller.tenant_id,
        training_opt_in=body.training_opt_in if "training_opt_in" in sent else tenants.UNSET,
        max_daily_spend_usd=cap if "max_daily_spend_usd" in sent else tenants.UNSET,
        default_preset=body.default_preset if "default_preset" in sent else tenants.UNSET,
    )
    return serializers.serialize_tenant(changed, deps.default_engine)


@router.get(
    "/metrics",
    tags=["platform"],
    response_class=Response,
    responses={
        200: {
            "content": {"text/plain": {"schema": {"type": "string"}}},
            "description": "Metrics in the Prometheus text format.",
        }
    },
)
async def get_metrics(caller: CurrentCaller, deps: Deps) -> Response:
    """Get the metrics of your runs and of this process in Prometheus text format."""
    return Response(await deps.metrics.render(caller.tenant_id), media_type=CONTENT_TYPE)


@router.get("/openapi.json", include_in_schema=False)
async def get_openapi(caller: CurrentCaller, request: Request) -> Response:
    """Return the OpenAPI document of this version."""
    document = await asyncio.to_thread(request.app.openapi)
    return Response(orjson.dumps(document), media_type="application/json")


@health_router.get("/live")
async def get_liveness() -> HealthOut:
    """Report that this process serves requests."""
    return HealthOut(status="ok", components={"api": "ok"})


@health_router.get("/ready", responses={503: {"model": HealthOut, "description": "Postgres does not answer."}})
async def get_readiness(deps: Deps, response: Response) -> HealthOut:
    """Report whether the dependencies answer.

    Without Redis the status is `degraded`: everything works, with notifications delayed by a few seconds.
    """
    postgres, redis = await asyncio.gather(_is_postgres_available(deps), deps.bus.is_reachable())
    response.status_code = 200 if postgres else 503
    status = "down" if not postgres else "ok" if redis else "degraded"
    return HealthOut(status=status, components={"postgres": _status_word(postgres), "redis": _status_word(redis)})


async def _is_postgres_available(deps: AppDependencies) -> bool:
    try:
        async with asyncio.timeout(3):
            await deps.database.call_function("select 1", ())
    except (Unavailable, TimeoutError):
        return False
    return True


def _status_word(available: bool) -> str:
    return "ok" if available else "no answer"


@dataclass(frozen=True, slots=True)
class GraphDrawing:
    """A graph as text and as data. All fields are empty if the graph cannot be built."""

    diagram: str = ""
    """Mermaid text."""
    nodes: tuple[str, ...] = ()
    edges: tuple[tuple[str, str, bool], ...] = ()
    """Source, target, and whether the edge is conditional."""


@lru_cache(maxsize=64)
def draw_graph(graph: Graph) -> GraphDrawing:
    """Draw the compiled graph.

    The first call is slow because it imports langgraph. A graph that cannot be built fails its runs with the error.
    """
    try:
        drawn = graph.build().compile().get_graph()
        edges = tuple((edge.source, edge.target, bool(edge.conditional)) for edge in drawn.edges)
        return GraphDrawing(drawn.draw_mermaid(), tuple(drawn.nodes), edges)
    # a graph author's code may raise any exception, and the other graphs must still be listed
    except Exception as error:
        log.warning("a graph cannot be drawn", graph=graph.name, reason=f"{type(error).__name__}: {error}")
        return GraphDrawing()


def _serialize_graph(graph: Graph, drawing: GraphDrawing) -> GraphOut:
    return GraphOut(
        name=graph.name,
        title=graph.title,
        description=graph.description,
        texts=serialize_offer_texts(title=graph.title, description=graph.description),
        version=graph.version,
        roles=[role.name for role in graph.roles],
        optional_roles=[role.name for role in graph.optional_roles],
        interactions=list(graph.interactions),
        diagram=drawing.diagram,
        nodes=list(drawing.nodes),
        edges=[
            GraphEdgeOut(source=source, target=target, is_conditional=is_conditional)
            for source, target, is_conditional in drawing.edges
        ],
        has_editable_plan=graph.has_editable_plan,
        state_view=graph.state_view,
    )
