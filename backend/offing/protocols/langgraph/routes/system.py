"""What clients probe: whether the server answers, and what it can do."""

from importlib.metadata import version

from fastapi import APIRouter

router = APIRouter()


@router.get("/ok")
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
