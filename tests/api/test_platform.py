"""Graphs, engines, the tenant's settings, health, metrics, the page, and what no client may send."""

import gzip
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from offing.api import web_ui
from offing.api.guard import CONTENT_SECURITY_POLICY
from offing.core.step import StepDraft, StepKind
from offing.settings import Settings
from tests.api.conftest import Api, serving


async def test_graphs_come_with_their_roles_and_a_drawing(api: Api) -> None:
    results = {graph["name"]: graph for graph in (await api.http.get("/api/v1/graphs")).json()}
    assert results["quiet"]["roles"] == ["speaker"]
    assert "speak" in results["quiet"]["diagram"]
    assert results["quiet"]["nodes"] == ["__start__", "speak", "__end__"]
    edges = {(edge["source"], edge["target"], edge["is_conditional"]) for edge in results["agentflow"]["edges"]}
    assert {("__start__", "analyze", True), ("verifier", "planner", True), ("generator", "__end__", False)} <= edges
    assert (results["quiet"]["has_editable_plan"], results["agentflow"]["has_editable_plan"]) == (False, True)


async def test_the_engine_that_needs_nothing_is_always_there(api: Api) -> None:
    engines = {e["name"]: e for e in (await api.http.get("/api/v1/engines")).json()}
    assert engines["extractive"]["available"] is True
    assert engines["extractive"]["note"]


async def test_only_the_settings_that_are_sent_change(api: Api) -> None:
    before = (await api.http.get("/api/v1/tenant")).json()
    assert before == {
        **{"name": "local", "training_opt_in": False, "max_daily_spend_usd": None, "spent_today_usd": 0.0},
        **{"default_preset": None, "default_engine": "extractive"},
    }
    opted = (await api.http.patch("/api/v1/tenant", json={"training_opt_in": True})).json()
    assert (opted["training_opt_in"], opted["max_daily_spend_usd"]) == (True, None)
    capped = (await api.http.patch("/api/v1/tenant", json={"max_daily_spend_usd": 2.5})).json()
    assert (capped["training_opt_in"], capped["max_daily_spend_usd"]) == (True, 2.5)
    free = (await api.http.patch("/api/v1/tenant", json={"max_daily_spend_usd": None, "training_opt_in": False})).json()
    assert free == before
    assert (await api.other.get("/api/v1/tenant")).json()["name"] == "other"
    rejected = await api.http.patch("/api/v1/tenant", json={"name": "mine"})
    assert (rejected.status_code, rejected.json()["field"]) == (422, "name")


async def test_health_tells_of_each_part(api: Api) -> None:
    assert (await api.nobody.get("/api/v1/health/live")).json()["status"] == "ok"
    ready = await api.nobody.get("/api/v1/health/ready")
    assert (ready.status_code, ready.json()) == (200, {"status": "ok", "components": {"postgres": "ok", "redis": "ok"}})


async def test_metrics_count_waits_steps_and_failures(api: Api) -> None:
    run = await api.submit()
    fence = await api.hands.claim(run)
    await api.hands.append(
        fence,
        StepDraft(StepKind.TOOL_RESULT, "t", {}, label="search", ms=250),
        StepDraft(StepKind.TOOL_RESULT, "t", {}, label="search", ms=750, ok=False),
    )
    text = (await api.http.get("/api/v1/metrics")).text
    assert 'offing_runs{graph="quiet",status="running"} 1.0' in text
    assert 'offing_queue_wait_seconds_count{graph="quiet"} 1.0' in text
    assert 'offing_step_seconds_sum{kind="tool_result",label="search"} 1.0' in text
    assert 'offing_step_failures_total{kind="tool_result",label="search"} 1.0' in text
    assert "offing_redis_faults_total 0" in text
    assert "python_info" in text
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names))


async def test_free_form_json_has_a_depth_limit(api: Api) -> None:
    def body(depth: int) -> dict[str, object]:
        options: object = 1
        for _ in range(depth):
            options = [options]
        speaker = {"engine": "extractive", "options": {"nested": options}}
        return {"question": "Why is the sea salt?", "graph": "quiet", "engines": {"speaker": speaker}}

    assert (await api.http.post("/api/v1/runs", json=body(20))).status_code == 201
    rejected = await api.http.post("/api/v1/runs", json=body(32))
    assert (rejected.status_code, rejected.json()["field"]) == (422, "body")
    assert "deep" in rejected.json()["detail"]


async def test_a_body_may_not_be_large_deep_or_unstorable(api: Api) -> None:
    deep = '{"question": ' + "[" * 40 + "]" * 40 + "}"
    very_deep = "[" * 100_000
    cases: list[tuple[bytes, int]] = [
        (b'{"question": "' + b"x" * 1_100_000 + b'"}', 413),
        (deep.encode(), 422),
        (very_deep.encode(), 422),
        (rb'{"question": "Why \u0000 not?"}', 422),
        (rb'{"question": "Why \ud800 not?"}', 422),
        (rb'{"question": "Why not?", "\u0000": 1}', 422),
        (b'{"question": "Why not?", "budget": {"max_cost_usd": NaN}}', 422),
        (b'{"question": "Why not?", "budget": {"max_cost_usd": 1e999}}', 422),
        (b'{"question": "Why \xff not?"}', 422),
        (b'{"question": ', 422),
        (b"", 422),
        (b"null", 422),
        (b"[1]", 422),
    ]
    for body, status in cases:
        response = await api.http.post("/api/v1/runs", content=body, headers={"Content-Type": "application/json"})
        assert response.status_code == status, (body[:60], response.text)
        assert response.headers["content-type"] == "application/problem+json"
    plain = await api.http.post(
        "/api/v1/runs", content=b'{"question": "Why not?"}', headers={"Content-Type": "text/plain"}
    )
    assert plain.status_code == 422


async def test_nul_in_an_address_is_rejected(api: Api) -> None:
    for path in ("/api/v1/runs?q=a%00b", "/api/v1/runs/%00", "/api/v1/library/search?q=%00", "/%00"):
        response = await api.http.get(path)
        assert (response.status_code, response.headers["content-type"]) == (422, "application/problem+json"), path


async def test_unknown_routes_and_methods_are_problems_too(api: Api) -> None:
    for method, path, status in (("GET", "/api/v1/nothing", 404), ("GET", "/api", 404), ("PUT", "/api/v1/runs", 405)):
        response = await api.http.request(method, path)
        assert (response.status_code, response.headers["content-type"]) == (status, "application/problem+json"), path


async def test_a_surprise_tells_nothing_of_the_inside(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("password=hunter2")

    monkeypatch.setattr("offing.services.run_summaries.get_run_detail", broken)
    run = await api.submit()
    response = await api.http.get(f"/api/v1/runs/{run}")
    assert (response.status_code, response.json()["type"]) == (500, "urn:offing:problem:internal")
    assert "hunter2" not in response.text
    assert response.headers["x-content-type-options"] == "nosniff"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html><title>Offing</title>")
    (tmp_path / "assets" / "index-abc123.js").write_text("1")
    (tmp_path.parent / "secret.txt").write_text("secret")
    return tmp_path


async def test_the_page_answers_for_its_own_addresses_and_its_assets_are_kept_for_ever(page: Path) -> None:
    app = FastAPI()
    web_ui.install_web_ui(app, page)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        for path in ("/", "/runs/01980000", "/library", "/index.html"):
            response = await http.get(path)
            assert "<title>Offing</title>" in response.text, path
            assert response.headers["cache-control"] == "no-cache"
        asset = await http.get("/assets/index-abc123.js")
        assert (asset.status_code, asset.headers["cache-control"]) == (200, "public, max-age=31536000, immutable")
        for path in (
            "/assets/none.js",
            "/none.png",
            "/assets",
            "/assets/",
            "/api/v1/none",
            "/../secret.txt",
            "/%2e%2e/secret.txt",
            "/assets/..%2f..%2fsecret.txt",
        ):
            missing = await http.get(path)
            assert missing.status_code == 404 or "<title>" in missing.text, path
            assert "secret" not in missing.text
        assert (await http.get("/assets/none.js")).status_code == 404


async def test_each_address_gets_the_page_that_names_the_files_of_its_view(page: Path) -> None:
    for name in ("runs", "run", "compare", "library", "settings"):
        (page / f"{name}.html").write_text(f"<!doctype html><title>{name}</title>")
    app = FastAPI()
    web_ui.install_web_ui(app, page)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as http:
        for path, title in (
            ("/", "Offing"),
            ("/runs", "runs"),
            ("/runs/01980000?tab=timeline", "run"),
            ("/runs/compare", "compare"),
            ("/settings/models", "settings"),
            ("/training", "Offing"),
        ):
            assert f"<title>{title}</title>" in (await http.get(path)).text, path


async def test_a_page_may_run_the_script_that_it_contains_and_no_other(page: Path) -> None:
    (page / "runs.html").write_text('<script src="/a.js"></script><script data-texts="{}">start()</script>')
    app = FastAPI()
    web_ui.install_web_ui(app, page)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as http:
        policies = [(await http.get(path)).headers["content-security-policy"] for path in ("/runs", "/")]
    digest = b64encode(sha256(b"start()").digest()).decode()
    assert f"script-src 'self' 'sha256-{digest}'; style-src" in policies[0]
    assert policies[0].count("sha256-") == 1
    assert policies[1] == CONTENT_SECURITY_POLICY


def test_the_build_writes_each_page_that_the_server_sends() -> None:
    routes = (Path(__file__).parents[2] / "frontend/scripts/routes.mjs").read_text()
    written = set(re.findall(r'file: "([^"]+)"', routes))
    paths = ("", "runs", "runs/01980000", "runs/compare", "library", "training", "settings", "shared/a", "sign-in")
    assert {web_ui.choose_page(path) for path in paths} == written


async def test_an_asset_that_was_sent_once_is_sent_from_memory_and_in_parts(page: Path) -> None:
    script = page / "assets" / "index-abc123.js"
    script.write_text("export {}")
    app = FastAPI()
    web_ui.install_web_ui(app, page)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as http:
        first = await http.get("/assets/index-abc123.js")
        part = await http.get("/assets/index-abc123.js", headers={"Range": "bytes=0-5"})
        script.unlink()
        again = await http.get("/assets/index-abc123.js")
        known = await http.get("/assets/index-abc123.js", headers={"If-None-Match": first.headers["etag"]})
    assert (part.status_code, part.text) == (206, "export")
    assert (again.status_code, again.text, again.headers) == (200, "export {}", first.headers)
    assert known.status_code == 304


async def test_a_program_that_probes_for_another_api_gets_no_page_as_its_answer(page: Path) -> None:
    app = FastAPI()
    web_ui.install_web_ui(app, page)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as http:
        for path in ("/ok", "/info", "/threads", "/assistants/search"):
            assert (await http.get(path)).status_code == 404, path
            assert (await http.get(path, headers={"Accept": "text/html,*/*;q=0.8"})).status_code == 200, path


def test_every_page_of_the_web_ui_can_be_opened_without_a_browser() -> None:
    routes = (Path(__file__).parents[2] / "frontend/src/app/router.tsx").read_text()
    first = {path.split("/")[1] for path in re.findall(r'<Route path="([^"]*)"', routes)}
    assert first == web_ui.PAGES - {"."}


async def test_files_of_the_page_are_sent_in_the_best_coding_that_the_browser_accepts(page: Path) -> None:
    script = page / "assets" / "index-abc123.js"
    script.with_name("index-abc123.js.br").write_bytes(as_brotli := b"as if brotli")
    script.with_name("index-abc123.js.gz").write_bytes(as_gzip := gzip.compress(b"1"))
    (page / "index.html.gz").write_bytes(gzip.compress((page / "index.html").read_bytes()))
    app = FastAPI()
    web_ui.install_web_ui(app, page)
    tags: set[str] = set()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as http:
        for accepted, encoding, body in (
            ("gzip, deflate, br, zstd", "br", as_brotli),
            ("gzip, deflate", "gzip", as_gzip),
            ("br;q=0, *", "gzip", as_gzip),
            ("identity", None, b"1"),
            ("gzip;q=nothing", None, b"1"),
        ):
            headers = {"Accept-Encoding": accepted}
            async with http.stream("GET", "/assets/index-abc123.js", headers=headers) as sent:
                assert b"".join([part async for part in sent.aiter_raw()]) == body, accepted
            assert sent.headers.get("content-encoding") == encoding, accepted
            assert sent.headers["content-type"].startswith("text/javascript")
            caching = (sent.headers["vary"], sent.headers["cache-control"])
            assert caching == ("Accept-Encoding", "public, max-age=31536000, immutable")
            tags.add(sent.headers["etag"])
            again = await http.get("/assets/index-abc123.js", headers=headers | {"If-None-Match": sent.headers["etag"]})
            assert (again.status_code, again.headers["vary"], again.content) == (304, "Accept-Encoding", b"")
        assert len(tags) == 3
        start = await http.get("/runs/01980000", headers={"Accept-Encoding": "gzip, br"})
        assert (start.headers["content-encoding"], start.headers["cache-control"]) == ("gzip", "no-cache")
        assert "<title>Offing</title>" in start.text
        for path in ("/assets/index-abc123.js.br", "/index.html.gz", "/" + "a" * 300 + ".js"):
            assert (await http.get(path)).status_code == 404, path


async def test_without_a_built_page_the_api_says_what_to_do() -> None:
    app = FastAPI()
    web_ui.install_web_ui(app, None)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as http:
        response = await http.get("/")
    assert response.status_code == 503
    assert "make setup" in response.text


async def test_an_api_without_redis_still_submits_reads_and_follows(settings: Settings, api: Api) -> None:
    from pydantic import SecretStr

    from offing.api.app import create_app
    from tests.api.sse import following

    alone = settings.model_copy(update={"redis_url": SecretStr("redis://127.0.0.1:1/0")})
    app = create_app(alone)
    async with serving(app, alone) as base, httpx.AsyncClient(base_url=base, headers=api.http.headers) as http:
        ready = await http.get("/api/v1/health/ready")
        assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
        created = await http.post("/api/v1/runs", json={"question": "Why is the sea salt?", "graph": "quiet"})
        assert created.status_code == 201
        async with following(http, f"/api/v1/runs/{created.json()['id']}/events") as stream:
            await stream.until(lambda s: s.seqs == [1], seconds=30)
            await http.post(f"/api/v1/runs/{created.json()['id']}/cancel")
            await stream.until(lambda s: s.closed, seconds=30)
        assert stream.seqs == [1, 2]
