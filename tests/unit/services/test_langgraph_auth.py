"""`Auth` objects of LangGraph projects: who may send a request, as which tenant, and what is seen."""

import asyncio
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from langgraph_sdk import Auth

from offing.core.errors import InvalidInput
from offing.core.metadata_filter import matches_filter
from offing.services.langgraph_auth import AccessDeniedError, AuthRequest, ProjectAuth
from offing.services.project_auth import AUTH as AUTH_KEY
from offing.services.project_objects import ProjectObjectLoader
from offing.storage.migrate import LOCAL_TENANT
from tests.unit.services.test_graph_folders import Clock
from tests.unit.services.test_langgraph_projects import configured, with_graph

AUTH = """
from langgraph_sdk import Auth

auth = Auth()

@auth.authenticate
async def identify(authorization: str | None):
    if authorization != "Bearer right":
        raise Auth.exceptions.HTTPException(status_code=401, detail="Who are you?")
    return {"identity": "ada", "permissions": ["threads:read"]}
"""


def request(authorization: str = "Bearer right") -> AuthRequest:
    return AuthRequest("GET", "/threads", {b"authorization": authorization.encode()})


def identify(handler: Any, sent: AuthRequest | None = None) -> Any:
    auth = Auth()
    auth.authenticate(handler)
    return asyncio.run(ProjectAuth(auth, "auth.path").authenticate(sent or request()))


def test_a_handler_gets_what_it_asks_for_and_names_the_user() -> None:
    async def handler(method: str, path: str, headers: dict[bytes, bytes], authorization: str) -> Any:
        assert (method, path, headers[b"authorization"]) == ("GET", "/threads", b"Bearer right")
        return {"identity": authorization.removeprefix("Bearer "), "permissions": ["read"], "team": "gulls"}

    user = identify(handler)
    assert (user.identity, user.permissions, user.tenant_id) == ("right", ("read",), LOCAL_TENANT)
    assert (user.user.team, user.user["team"], user.user.is_authenticated) == ("gulls", "gulls", True)


def test_a_text_is_a_user_and_a_blocking_handler_works() -> None:
    assert identify(lambda: "ada").identity == "ada"


def test_a_user_may_name_the_tenant() -> None:
    tenant = UUID(int=7)
    assert identify(lambda: {"identity": "ada", "offing_tenant": str(tenant)}).tenant_id == tenant
    with pytest.raises(InvalidInput, match="not the id of a tenant"):
        identify(lambda: {"identity": "ada", "offing_tenant": "gulls"})


def test_a_rejection_keeps_its_status_and_everything_unclear_is_rejected() -> None:
    def teapot() -> Any:
        raise Auth.exceptions.HTTPException(status_code=418, detail="No tea.", headers={"X-Why": "tea"})

    def assertion() -> Any:
        raise AssertionError

    with pytest.raises(AccessDeniedError) as denied:
        identify(teapot)
    assert (denied.value.status_code, denied.value.detail, denied.value.headers) == (418, "No tea.", {"X-Why": "tea"})
    with pytest.raises(AccessDeniedError) as denied:
        identify(assertion)
    assert denied.value.status_code == 401
    for nobody in ({}, {"identity": ""}, None, 7):
        with pytest.raises(InvalidInput, match="returned no"):
            identify(lambda nobody=nobody: nobody)


def test_the_most_specific_handler_decides() -> None:
    auth: Any = Auth()
    auth.authenticate(lambda: "ada")

    async def everything(ctx: Any, value: Any) -> bool:
        return False

    async def threads(ctx: Any, value: Any) -> dict[str, str]:
        return {"owner": ctx.user.identity}

    async def create(ctx: Any, value: Any) -> None:
        value.setdefault("metadata", {})["owner"] = ctx.user.identity

    auth.on(everything)
    auth.on.threads(threads)
    auth.on.threads.create(create)

    async def work() -> None:
        guard = ProjectAuth(auth, "auth.path")
        user, value = await guard.authenticate(request()), dict[str, Any]()
        assert await guard.authorize(user, "threads", "create", value) == {}
        assert value == {"metadata": {"owner": "ada"}}
        assert await guard.authorize(user, "threads", "read", {}) == {"owner": "ada"}
        with pytest.raises(AccessDeniedError) as denied:
            await guard.authorize(user, "assistants", "read", {})
        assert denied.value.status_code == 403

    asyncio.run(work())


@pytest.mark.parametrize(
    ("conditions", "metadata", "matches"),
    [
        ({}, {}, True),
        ({"owner": "ada"}, {"owner": "ada", "more": 1}, True),
        ({"owner": "ada"}, {}, False),
        ({"owner": {"$eq": "ada"}}, {"owner": "eve"}, False),
        ({"people": {"$contains": "ada"}}, {"people": ["ada", "eve"]}, True),
        ({"people": {"$contains": ["ada", "bob"]}}, {"people": ["ada", "eve"]}, False),
        ({"people": {"$contains": "a"}}, {"people": "ada"}, False),
    ],
)
def test_a_filter_is_compared_with_metadata(conditions: Any, metadata: Any, matches: bool) -> None:
    assert matches_filter(conditions, metadata) is matches


def test_an_unknown_operator_is_an_error_and_hides_nothing_silently() -> None:
    with pytest.raises(InvalidInput, match=r"\$near"):
        matches_filter({"owner": {"$near": "ada"}}, {"owner": "ada"})


def load(project: Path, home: Path) -> ProjectObjectLoader[ProjectAuth]:
    return ProjectObjectLoader(AUTH_KEY, str(project), home, reload=True, clock=Clock())


def test_the_object_of_a_project_is_loaded_again_and_a_fault_keeps_the_last_one(tmp_path: Path) -> None:
    project = with_graph(tmp_path / "project", auth={"path": "./guard.py:auth"})
    (project / "guard.py").write_text(AUTH)
    loader = load(project, tmp_path / "home")
    first = loader.get()
    assert first is not None
    assert asyncio.run(first.authenticate(request())).identity == "ada"
    with pytest.raises(AccessDeniedError, match="Who are you"):
        asyncio.run(first.authenticate(request("Bearer wrong")))
    (project / "guard.py").write_text("auth = (\n")
    assert loader.get() is first
    (project / "guard.py").write_text(AUTH.replace('"ada"', '"eve"'))
    second = loader.get()
    assert second is not None
    assert asyncio.run(second.authenticate(request())).identity == "eve"


def test_an_object_that_was_removed_and_put_back_guards_again(tmp_path: Path) -> None:
    project = with_graph(tmp_path / "project", auth={"path": "./guard.py:auth"})
    (project / "guard.py").write_text(AUTH)
    loader = load(project, tmp_path / "home")
    guarded = (project / "langgraph.json").read_text()
    assert loader.get() is not None
    configured(project, graphs={"writer": "./writer.py:builder"})
    assert loader.get() is None
    (project / "langgraph.json").write_text(guarded)
    assert loader.get() is not None


def test_without_an_object_api_keys_apply_and_one_without_a_handler_is_an_error(tmp_path: Path) -> None:
    assert load(with_graph(tmp_path / "open"), tmp_path / "home").get() is None
    project = with_graph(tmp_path / "project")
    configured(project, graphs={"writer": "./writer.py:builder"}, auth={"path": "./writer.py:builder"})
    with pytest.raises(InvalidInput, match=r"no @auth\.authenticate handler"):
        load(project, tmp_path / "home").get()


def test_a_project_that_cannot_be_read_opens_nothing(tmp_path: Path) -> None:
    project = with_graph(tmp_path / "project")
    loader = load(project, tmp_path / "home")
    assert loader.get() is None
    (project / "langgraph.json").write_text("{")
    with pytest.raises(InvalidInput, match="is not JSON"):
        loader.get()
