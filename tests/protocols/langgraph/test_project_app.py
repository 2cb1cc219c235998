"""A project's own web application beside LangGraph's API: routes, middleware, lifespan, callers and failures."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
from langgraph_sdk import get_client
from pydantic import SecretStr
from websockets.asyncio.client import connect

from offing.api.app import create_app
from offing.local.api_address import choose_port
from offing.settings import Settings
from tests.api.conftest import serving
from tests.protocols.langgraph.conftest import ENVIRONMENT
from tests.protocols.langgraph.graphs import GRAPHS
from tests.unit.services.test_langgraph_projects import with_graph
from tests.workers.conftest import SharedServers

__all__ = ["ENVIRONMENT"]

APP = """
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request, WebSocket
from fastapi.responses import HTMLResponse
from starlette.middleware.base import BaseHTTPMiddleware

TRACE = Path(TRACE_FILE)


def note(text):
    with TRACE.open("a") as file:
        file.write(text + "\\n")


@asynccontextmanager
async def lifespan(app):
    app.state.pool = "opened"
    note("start VERSION")
    yield {"shared": "of the lifespan"}
    note("stop VERSION")


app = FastAPI(lifespan=lifespan)


@app.middleware("http")
async def stamp(request: Request, call_next):
    note(f"{request.url.path} {getattr(request.scope.get('user'), 'identity', 'nobody')}")
    response = await call_next(request)
    response.headers["X-Stamp"] = "VERSION"
    return response


@app.get("/hello")
def hello(request: Request):
    return {"pool": request.app.state.pool, "shared": request.state.shared, "url": str(request.url_for("hello"))}


@app.get("/page", response_class=HTMLResponse)
def page():
    return "<p>hello</p>"


@app.get("/me")
def me(request: Request):
    return {"me": request.user.identity, "may": request.auth.scopes}


@app.post("/threads/count")
def count():
    return -1


@app.get("/fail")
def fail():
    raise ValueError("the project fails")


@app.get("/exit")
async def leave():
    raise SystemExit(3)


@app.websocket("/echo")
async def echo(socket: WebSocket):
    await socket.accept()
    await socket.send_text("heard " + await socket.receive_text())
    await socket.close()
"""

GUARD = """
from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def identify(authorization: str | None):
    assert authorization == "Bearer ada-and-her-key", "Who are you?"
    return {"identity": "ada", "permissions": ["read"]}
"""

ADA = {"Authorization": "Bearer ada-and-her-key"}


def write_app(project: Path, text: str = APP, version: str = "one") -> None:
    trace = repr(str(project.parent / "trace"))
    (project / "web.py").write_text(text.replace("TRACE_FILE", trace).replace("VERSION", version))


def read_trace(project: Path) -> list[str]:
    file = project.parent / "trace"
    return file.read_text().splitlines() if file.exists() else []


def make_project(tmp_path: Path, *, guarded: bool = False, **http: Any) -> Path:
    keys: dict[str, Any] = {"auth": {"path": "./guard.py:auth"}} if guarded else {}
    project = with_graph(tmp_path / "project", http={"app": "./web.py:app", **http}, **keys)
    (project / "guard.py").write_text(GUARD)
    write_app(project)
    return project


@asynccontextmanager
async def serving_project(servers: SharedServers, project: Path, **more: Any) -> AsyncGenerator[httpx.AsyncClient]:
    """A client of LangGraph's port of an API that serves a project as `offing dev` does."""
    port = choose_port("127.0.0.1", 0)
    fields: dict[str, Any] = {
        "app_database_url": SecretStr(servers.app_url),
        "redis_url": SecretStr(servers.redis_url),
        "lease_seconds": 3,
        "extra_graphs": GRAPHS,
        "graph_paths": str(project),
        "graph_reload": True,
        "home": project.parent / "home",
        "langgraph_app": True,
        "langgraph_without_key": True,
    }
    fields |= {"port": port, "langgraph_port": port, **more}
    settings = Settings(**fields)
    async with serving(create_app(settings), settings) as base, httpx.AsyncClient(base_url=base, timeout=30) as client:
        yield client


async def test_routes_of_a_project_are_served_beside_and_instead_of_langgraphs(
    shared_servers: SharedServers, tmp_path: Path
) -> None:
    project = make_project(tmp_path)
    async with serving_project(shared_servers, project) as client:
        hello = await client.get("/hello")
        assert hello.json() == {
            "pool": "opened",
            "shared": "of the lifespan",
            "url": f"{client.base_url}/hello",
        }
        assert (await client.post("/threads/count", json={})).json() == -1  # its own route comes first
        created = await client.post("/threads", json={})
        assert (created.status_code, created.headers["x-stamp"]) == (200, "one")
        assert (await client.get("/ok")).json() == {"ok": True}
        assert (await client.get("/nowhere")).status_code == 404
        assert (await client.put("/hello")).status_code == 405
        assert (await client.get("/openapi.json")).json()["paths"].keys() >= {"/hello", "/page"}
        assert "/threads nobody" in read_trace(project)  # the middleware sees the paths that clients know
    assert [line for line in read_trace(project) if "one" in line] == ["start one", "stop one"]


async def test_a_stream_passes_the_middleware_of_a_project(shared_servers: SharedServers, tmp_path: Path) -> None:
    async with serving_project(shared_servers, make_project(tmp_path)) as http:
        client: Any = get_client(url=str(http.base_url), api_key=None)
        thread = await client.threads.create()
        events = [
            part.event
            async for part in client.runs.stream(
                thread["thread_id"], "trail", input={"seen": []}, stream_mode="updates"
            )
        ]
        assert events == ["metadata", "updates", "updates", "end"]
        assert (await client.threads.get(thread["thread_id"]))["values"] == {"seen": ["first", "second"]}
        await client.aclose()


async def test_a_websocket_of_a_project_is_served(shared_servers: SharedServers, tmp_path: Path) -> None:
    async with (
        serving_project(shared_servers, make_project(tmp_path)) as client,
        connect(f"{str(client.base_url).replace('http', 'ws')}/echo") as socket,
    ):
        await socket.send("me")
        assert await socket.recv() == "heard me"


async def test_a_page_of_a_project_has_no_policy_of_another_origin(
    shared_servers: SharedServers, tmp_path: Path
) -> None:
    async with serving_project(shared_servers, make_project(tmp_path)) as client:
        page = await client.get("/page")
        assert (page.text, "content-security-policy" in page.headers) == ("<p>hello</p>", False)
        assert page.headers["x-content-type-options"] == "nosniff"
    # under the prefix, its pages have the origin of the web UI
    async with serving_project(shared_servers, make_project(tmp_path / "more"), langgraph_port=None) as client:
        page = await client.get("/langgraph/page")
        assert (page.status_code, "script-src 'self'" in page.headers["content-security-policy"]) == (200, True)
        assert (await client.get("/langgraph/hello")).json()["url"].endswith("/langgraph/hello")


async def test_the_projects_own_routes_need_a_caller_only_if_it_says_so(
    shared_servers: SharedServers, tmp_path: Path
) -> None:
    more = {"langgraph_without_key": False}
    async with serving_project(shared_servers, make_project(tmp_path, guarded=True), **more) as client:
        assert (await client.get("/hello")).status_code == 200
        assert (await client.post("/threads", json={})).status_code == 401
    project = make_project(tmp_path / "guarded", guarded=True, enable_custom_route_auth=True)
    async with serving_project(shared_servers, project, **more) as client:
        denied = await client.get("/hello")
        assert (denied.status_code, denied.json(), denied.headers["x-stamp"]) == (
            401,
            {"detail": "Who are you?"},
            "one",
        )
        assert (await client.get("/me", headers=ADA)).json() == {"me": "ada", "may": ["read"]}
        assert (await client.get("/openapi.json")).status_code == 401
        assert (await client.get("/ok")).status_code == 200
        assert "/me nobody" in read_trace(project)  # the middleware comes before


async def test_the_middleware_sees_the_caller_if_the_project_authenticates_first(
    shared_servers: SharedServers, tmp_path: Path
) -> None:
    project = make_project(tmp_path, guarded=True, enable_custom_route_auth=True, middleware_order="auth_first")
    async with serving_project(shared_servers, project, langgraph_without_key=False) as client:
        denied = await client.post("/threads", json={})
        assert (denied.status_code, "x-stamp" in denied.headers) == (401, False)
        assert (await client.post("/threads", json={}, headers=ADA)).status_code == 200
        assert (await client.get("/me", headers=ADA)).status_code == 200
    assert {"/threads ada", "/me ada"} <= set(read_trace(project))
    assert "/threads nobody" not in read_trace(project)


@pytest.mark.parametrize("path", ["/fail", "/exit"])
async def test_a_failure_of_a_project_ends_its_request_and_nothing_else(
    shared_servers: SharedServers, tmp_path: Path, path: str
) -> None:
    async with serving_project(shared_servers, make_project(tmp_path)) as client:
        failed = await client.get(path)
        assert (failed.status_code, "the project fails" in failed.text) == (500, False)
        assert (await client.get("/hello")).status_code == 200
        assert (await client.post("/threads", json={})).status_code == 200


async def test_a_changed_application_is_loaded_and_one_that_cannot_be_loaded_leaves_the_last(
    shared_servers: SharedServers, tmp_path: Path
) -> None:
    project = make_project(tmp_path)

    async def stamp_of(client: httpx.AsyncClient) -> str:
        await asyncio.sleep(0.6)  # a change is looked for that often
        return (await client.get("/hello")).headers["x-stamp"]

    async with serving_project(shared_servers, project) as client:
        assert await stamp_of(client) == "one"
        write_app(project, version="two")
        assert await stamp_of(client) == "two"
        write_app(project, "app = (\n")
        assert await stamp_of(client) == "two"
        write_app(project, APP.replace("app.state.pool", "undefined.pool"), version="three")
        assert await stamp_of(client) == "two"
        write_app(project, version="four")
        assert await stamp_of(client) == "four"
    lifespans = [line for line in read_trace(project) if line.startswith(("start", "stop"))]
    assert lifespans == ["start one", "start two", "stop one", "start four", "stop two", "stop four"]


@pytest.mark.parametrize(
    "text", ["app = (\n", "app = 3\n", APP.replace("app.state.pool", "undefined.pool")], ids=["code", "type", "start"]
)
async def test_without_an_application_that_starts_nothing_is_served(
    shared_servers: SharedServers, tmp_path: Path, text: str
) -> None:
    project = make_project(tmp_path)
    write_app(project, text)
    async with serving_project(shared_servers, project) as client:
        for path in ("/hello", "/threads", "/ok"):
            answer = await client.get(path)
            assert (answer.status_code, "http.app" in answer.json()["detail"]) == (503, True)
        write_app(project)
        await asyncio.sleep(0.6)
        assert (await client.get("/hello")).status_code == 200


async def test_a_prefix_is_before_all_paths(shared_servers: SharedServers, tmp_path: Path) -> None:
    async with serving_project(shared_servers, make_project(tmp_path, mount_prefix="/agents")) as client:
        assert (await client.get("/agents/hello")).json()["url"].endswith("/agents/hello")
        assert (await client.get("/ok")).json() == {"ok": True}
        assert (await client.get("/agents/ok")).json() == {"ok": True}
        for path in ("/hello", "/threads", "/agentsx/hello"):
            assert (await client.get(path)).status_code == 404
        sdk: Any = get_client(url=f"{client.base_url}/agents", api_key=None)
        assert await sdk.runs.wait(None, "trail", input={"seen": []}) == {"seen": ["first", "second"]}
        await sdk.aclose()


async def test_pages_of_allowed_origins_may_call_the_projects_routes(
    shared_servers: SharedServers, tmp_path: Path
) -> None:
    cors = {"allow_origins": ["https://chat.example"]}
    async with serving_project(shared_servers, make_project(tmp_path, cors=cors)) as client:
        origin_headers = {"Origin": "https://chat.example", "Access-Control-Request-Method": "GET"}
        preflight = await client.options("/hello", headers=origin_headers)
        assert (preflight.status_code, preflight.headers["access-control-allow-origin"]) == (
            200,
            origin_headers["Origin"],
        )
        answer = await client.get("/hello", headers={"Origin": origin_headers["Origin"]})
        assert answer.headers["access-control-allow-origin"] == origin_headers["Origin"]


async def test_an_application_is_served_only_if_the_operator_allows_it(
    shared_servers: SharedServers, tmp_path: Path
) -> None:
    project = make_project(tmp_path)
    async with serving_project(shared_servers, project, langgraph_app=False) as client:
        assert (await client.get("/hello")).status_code == 404
        assert (await client.post("/threads", json={})).status_code == 200
    assert read_trace(project) == []


CATCH_ALL = """

@app.get("/threads")
def list_threads():
    return "of the project"


@app.get("/{path:path}")
def page_of(path: str):
    return "page " + path
"""


async def test_a_project_that_takes_the_place_of_langgraphs_routes_is_told_which(
    shared_servers: SharedServers, tmp_path: Path
) -> None:
    with structlog.testing.capture_logs() as logged:
        async with serving_project(shared_servers, make_project(tmp_path)):
            pass
    (entry,) = [one for one in logged if "routes of http.app" in one["event"]]
    assert (entry["count"], entry["routes"], entry["log_level"]) == (1, ["POST /threads/count"], "warning")
    everything = make_project(tmp_path / "everything", mount_prefix="/agents")
    write_app(everything, APP + CATCH_ALL)
    with structlog.testing.capture_logs() as logged:
        async with serving_project(shared_servers, everything) as client:
            assert (await client.get("/agents/threads")).json() == "of the project"
            assert (await client.post("/agents/threads", json={})).json()["status"] == "idle"
            assert (await client.get("/agents/info")).json() == "page info"
            assert (await client.get("/info")).status_code == 404
    (entry,) = [one for one in logged if "routes of http.app" in one["event"]]
    assert {"GET /info", "GET /ok"} <= set(entry["routes"])
    assert entry["count"] > len(entry["routes"])
    assert not [one for one in entry["routes"] if not one.startswith(("GET ", "POST /threads/count"))]


async def test_a_project_without_routes_of_its_own_for_a_path_leaves_it_to_langgraph(
    shared_servers: SharedServers, tmp_path: Path
) -> None:
    project = make_project(tmp_path)
    write_app(project, APP + '\n\n@app.get("/threads")\n@app.post("/threads/{name}/mine")\ndef mine():\n    return 1\n')
    async with serving_project(shared_servers, project) as client:
        created = (await client.post("/threads", json={})).json()
        assert (await client.get("/threads")).json() == 1
        assert (await client.post("/threads/x/mine")).json() == 1
        assert (await client.get(f"/threads/{created['thread_id']}")).json()["status"] == "idle"
        assert (await client.get(f"/threads/{created['thread_id']}/nothing")).json()["detail"] == "Not Found"
        assert (await client.put("/threads")).status_code == 405
