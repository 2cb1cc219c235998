"""What clients probe: whether the server answers, and what it can do."""

from importlib.metadata import version

from fastapi import APIRouter, Response

from offing.protocols.langgraph.context import CurrentCaller
from offing.services.langgraph_auth import AccessDeniedError
from offing.telemetry.metrics import CONTENT_TYPE

probe_router = APIRouter()

router = APIRouter()

metrics_router = APIRouter()


@probe_router.get("/ok")
async def get_ok() -> dict[str, bool]:
    """Answer that the server is reachable."""
    return {"ok": True}


@router.get("/info")
async def get_info() -> dict[str, object]:
    """Return versions, and what is there."""
    return {
        "version": version("offing"),
        "langgraph_py_version": version("langgraph"),
        "flags": {"assistants": True, "crons": True, "langsmith": False, "langsmith_tracing_replicas": False},
        "host": {"kind": "offing"},
    }


@metrics_router.get("/metrics")
async def get_metrics(caller: CurrentCaller) -> Response:
    """Get the metrics of the tenant's runs and of this process in Prometheus text format."""
    if caller.principal.authorize is not None:
        raise AccessDeniedError(403, "Metrics are those of all users. Use an API key of Offing.")
    render = caller.context.render_metrics
    return Response(b"" if render is None else await render(caller.tenant_id), media_type=CONTENT_TYPE)
