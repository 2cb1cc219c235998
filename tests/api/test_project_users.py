"""Users whom the `Auth` object of a LangGraph project accepts, beside API keys."""

from pathlib import Path

import httpx
from fastapi import FastAPI

from offing.api.app import create_app
from offing.settings import Settings
from tests.api.conftest import PATIENCE, Api, serving
from tests.unit.services.test_langgraph_auth import AUTH
from tests.unit.services.test_langgraph_projects import with_graph

RULES = """
@auth.on
async def everything(ctx, value):
    return {"owner": ctx.user.identity}
"""


def guarded(settings: Settings, folder: Path, code: str) -> tuple[FastAPI, Settings]:
    """An app that serves a project with this Auth object."""
    project = with_graph(folder / "project", auth={"path": "./guard.py:auth"})
    (project / "guard.py").write_text(code)
    settings = settings.model_copy(update={"graph_paths": str(project), "home": folder / "home"})
    return create_app(settings), settings


async def get_tenant(base: str, authorization: str) -> httpx.Response:
    async with httpx.AsyncClient(base_url=base, timeout=PATIENCE) as client:
        return await client.get("/api/v1/tenant", headers={"Authorization": authorization} if authorization else {})


async def test_the_handler_of_a_project_names_the_user_and_keys_still_work(
    api: Api, settings: Settings, tmp_path: Path
) -> None:
    app, guarded_settings = guarded(settings, tmp_path, AUTH)
    async with serving(app, guarded_settings) as base:
        accepted = await get_tenant(base, "Bearer right")
        assert (accepted.status_code, accepted.json()["name"]) == (200, "local")
        assert (await get_tenant(base, str(api.other.headers["authorization"]))).json()["name"] == "other"
        for authorization in ("Bearer wrong", "Basic right", ""):
            rejected = await get_tenant(base, authorization)
            assert (rejected.status_code, rejected.json()["detail"]) == (401, "Who are you?")


async def test_a_tenant_that_the_handler_names_is_the_one_that_the_user_sees(
    api: Api, settings: Settings, tmp_path: Path
) -> None:
    code = AUTH.replace('"identity": "ada"', f'"identity": "ada", "offing_tenant": "{api.other_tenant}"')
    app, guarded_settings = guarded(settings, tmp_path, code)
    async with serving(app, guarded_settings) as base:
        assert (await get_tenant(base, "Bearer right")).json()["name"] == "other"


async def test_rules_that_this_api_cannot_apply_and_a_faulty_object_let_nobody_in(
    api: Api, settings: Settings, tmp_path: Path
) -> None:
    app, guarded_settings = guarded(settings, tmp_path / "rules", AUTH + RULES)
    async with serving(app, guarded_settings) as base:
        rejected = await get_tenant(base, "Bearer right")
        assert rejected.status_code == 403
        assert "project_rules" in rejected.text
    app, guarded_settings = guarded(settings, tmp_path / "fault", "auth = (\n")
    async with serving(app, guarded_settings) as base:
        assert (await get_tenant(base, "Bearer right")).status_code == 401
        assert (await get_tenant(base, str(api.http.headers["authorization"]))).status_code == 200
