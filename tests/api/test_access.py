"""Who may come in, from where, and under which name."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import httpx
import psycopg
import pytest

from offing.core.errors import InvalidInput, NotFound
from offing.services import access
from offing.storage.migrate import LOCAL_TENANT
from tests.api.conftest import PATIENCE, Api, bearer

RUN = {"question": "Why is the sea salt?", "graph": "quiet"}


@asynccontextmanager
async def logged_in(api: Api) -> AsyncGenerator[tuple[httpx.AsyncClient, str]]:
    """A browser with a session, and its CSRF token."""
    link = await access.create_login_link(api.database, LOCAL_TENANT, api.base)
    async with httpx.AsyncClient(base_url=api.base, timeout=PATIENCE) as browser:
        assert (await browser.get(link)).status_code == 303
        yield browser, (await browser.get("/api/v1/session")).json()["csrf_token"]


async def test_a_login_link_opens_one_session_and_only_once(api: Api) -> None:
    link = await access.create_login_link(api.database, LOCAL_TENANT, f"{api.base}/")
    first = await api.nobody.get(link)
    assert (first.status_code, first.headers["location"]) == (303, "/")
    cookie = first.headers["set-cookie"].lower()
    assert cookie.startswith("offing_session=")
    for attribute in ("httponly", "samesite=strict", "path=/"):
        assert attribute in cookie
    assert "no-store" in first.headers["cache-control"]
    second = await api.nobody.get(link)
    assert second.status_code == 401
    assert "set-cookie" not in second.headers


async def test_an_expired_login_link_is_rejected(api: Api) -> None:
    link = await access.create_login_link(api.database, LOCAL_TENANT, api.base, ttl=timedelta(seconds=-1))
    assert (await api.nobody.get(link)).status_code == 401
    assert (await api.nobody.get("/login?token=unknown")).status_code == 401
    assert (await api.nobody.get("/login")).status_code == 422


async def test_a_browser_with_a_link_that_cannot_be_used_is_told_why_and_how_to_get_a_new_one(api: Api) -> None:
    link = await access.create_login_link(api.database, LOCAL_TENANT, api.base)
    page = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    await api.nobody.get(link, headers=page)
    for address, reason in ((link, "used"), ("/login?token=unknown", "used"), ("/login", "incomplete")):
        answer = await api.nobody.get(address, headers=page)
        assert (answer.status_code, answer.headers["location"]) == (303, f"/sign-in?link={reason}")
        assert "set-cookie" not in answer.headers
        assert "no-store" in answer.headers["cache-control"]


async def test_a_session_reads_freely_and_writes_only_with_its_token(api: Api) -> None:
    async with logged_in(api) as (browser, token):
        assert (await browser.get("/api/v1/runs")).status_code == 200
        without = await browser.post("/api/v1/runs", json=RUN)
        assert (without.status_code, without.json()["field"]) == (403, "X-CSRF-Token")
        wrong = await browser.post("/api/v1/runs", json=RUN, headers={"X-CSRF-Token": "wrong"})
        assert wrong.status_code == 403
        right = await browser.post("/api/v1/runs", json=RUN, headers={"X-CSRF-Token": token})
        assert right.status_code == 201


async def test_one_sessions_token_does_not_serve_another(api: Api) -> None:
    async with logged_in(api) as (one, _), logged_in(api) as (_, token):
        assert (await one.post("/api/v1/runs", json=RUN, headers={"X-CSRF-Token": token})).status_code == 403


async def test_logging_out_ends_the_session_at_once(api: Api) -> None:
    async with logged_in(api) as (browser, token):
        cookie = f"offing_session={browser.cookies['offing_session']}"
        assert (await browser.delete("/api/v1/session", headers={"X-CSRF-Token": token})).status_code == 204
        again = await api.nobody.get("/api/v1/session", headers={"Cookie": cookie})
        assert again.status_code == 401


async def test_a_key_says_whose_it_is_and_has_no_csrf_token(api: Api) -> None:
    assert (await api.http.get("/api/v1/session")).json() == {
        "tenant": "local",
        "csrf_token": None,
        "is_operator": False,
    }
    assert (await api.other.get("/api/v1/session")).json()["tenant"] == "other"


async def test_a_revoked_or_expired_key_is_rejected_within_seconds(api: Api) -> None:
    created = await access.create_key(api.database, LOCAL_TENANT, "short", ttl=timedelta(seconds=-1))
    assert (await api.nobody.get("/api/v1/runs", headers=bearer(created.key))).status_code == 401
    created = await access.create_key(api.database, LOCAL_TENANT, "revoked")
    assert (await api.nobody.get("/api/v1/runs", headers=bearer(created.key))).status_code == 200
    await access.revoke_key(api.database, LOCAL_TENANT, created.id)
    authenticator = access.CachedAuthenticator(api.database, ttl_seconds=0)
    with pytest.raises(Exception, match="unknown, revoked or expired"):
        await authenticator.authenticate_key(created.key)
    assert access.CACHE_SECONDS <= 5


async def test_odd_credentials_are_rejected_and_never_break_anything(api: Api) -> None:
    mine = api.keys["mine"]
    _, key_id, secret = mine.split("_", 2)
    for odd in (
        "ofg",
        "ofg__",
        f"ofg_{key_id}_",
        f"ofg_{key_id}_{secret}x",
        f"ofx_{key_id}_{secret}",
        f"ofg__{secret}",
        f"ofg_{key_id}_{secret[::-1]}",
        "ofg_%00_x",
        "é" * 40,
        "ofg_²_x",
    ):
        headers = [(b"Authorization", f"Bearer {odd}".encode("latin-1", "replace"))]
        response = await api.nobody.get("/api/v1/runs", headers=headers)
        assert response.status_code == 401, odd
        assert response.headers["www-authenticate"] == "Bearer"
        assert response.json()["type"] == "urn:offing:problem:unauthorized"
    assert (await api.nobody.get("/api/v1/runs", headers={"Authorization": f"Basic {mine}"})).status_code == 401
    assert (await api.nobody.get("/api/v1/runs", headers={"Cookie": "offing_session=nobody"})).status_code == 401
    assert (await api.nobody.get(f"/api/v1/runs?key={mine}")).status_code == 401


async def test_only_hashes_of_secrets_are_stored(api: Api, owner_url: str) -> None:
    link = await access.create_login_link(api.database, LOCAL_TENANT, api.base)
    async with logged_in(api) as (browser, csrf):
        secrets = [
            api.keys["mine"].split("_", 2)[2],
            parse_qs(urlsplit(link).query)["token"][0],
            browser.cookies["offing_session"],
        ]
    with psycopg.connect(owner_url) as connection:
        dump = "".join(
            str(connection.execute(f"select * from app.{table}").fetchall())  # pyright: ignore[reportArgumentType, reportCallIssue]
            for table in ("api_key", "login_link", "session")
        )
    assert csrf in dump
    for secret in secrets:
        assert secret not in dump


async def test_keys_are_named_listed_without_secret_and_revoked_by_id(api: Api) -> None:
    created = await access.create_key(api.database, LOCAL_TENANT, "  build server ")
    listed = {key.id: key for key in await access.list_keys(api.database, LOCAL_TENANT)}
    assert listed[created.id].name == "build server"
    await access.revoke_key(api.database, LOCAL_TENANT, created.id)
    with pytest.raises(NotFound):
        await access.revoke_key(api.database, api.other_tenant, created.id)
    for name in ("", "  ", "a\nb", "x" * 101):
        with pytest.raises(InvalidInput):
            await access.create_key(api.database, LOCAL_TENANT, name)


REJECTED_HOSTS = [
    *("evil.example", "localhost.evil.example", "evil.example:8400", "localhost@evil.example", "localhost/"),
    *("localhost?x=", "localhost#", "127.0.0.1.nip.io", "localhost:80:80", "localhost:port", "[::1", "[::1]x"),
    *("LOCALHOST%00", "0.0.0.0", "foo/api/v1/health/live?", "127.0.0.2", "127.1", "[::]", "localhost.", ".localhost"),
]


@pytest.mark.parametrize("host", REJECTED_HOSTS)
async def test_requests_for_another_host_are_turned_away(api: Api, host: str) -> None:
    for path in ("/api/v1/runs", "/api/v1/health/live", "/"):
        response = await raw(api, "GET", path, [("Host", host), ("Authorization", f"Bearer {api.keys['mine']}")])
        assert response in (400, 421), (host, path)


async def test_hosts_of_this_machine_and_those_the_operator_names_are_served(api: Api) -> None:
    for host in ("localhost", "LocalHost:8400", "127.0.0.1:1", "[::1]:8400", "[::1]"):
        assert await raw(api, "GET", "/api/v1/health/live", [("Host", host)]) == 200, host


async def test_two_host_headers_are_turned_away(api: Api) -> None:
    twice = [("Host", "localhost"), ("Host", "evil.example")]
    assert await raw(api, "GET", "/api/v1/health/live", twice) in (400, 421)


async def raw(api: Api, method: str, path: str, headers: list[tuple[str, str]]) -> int:
    """The status of a request written by hand, for headers that a client library would not send."""
    import asyncio

    host, port = api.base.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers), "Connection: close", "", ""]
    writer.write("\r\n".join(lines).encode("latin-1"))
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return int(answer.split(b" ", 2)[1])


async def test_a_page_of_another_origin_changes_nothing(api: Api) -> None:
    port = urlsplit(api.base).port
    rejected = [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": f"http://localhost:{port}"},
        {"Origin": f"http://127.0.0.1:{(port or 0) + 1}"},
        {"Origin": "http://127.0.0.1"},
        {"Origin": ""},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ]
    for headers in rejected:
        response = await api.http.post("/api/v1/runs", json=RUN, headers=headers)
        assert response.status_code == 403, headers
        assert response.json()["type"] == "urn:offing:problem:foreign_origin"
    for headers in ({}, {"Origin": api.base}, {"Origin": api.base, "Sec-Fetch-Site": "same-origin"}):
        assert (await api.http.post("/api/v1/runs", json=RUN, headers=headers)).status_code == 201, headers


async def test_no_other_origin_may_read(api: Api) -> None:
    response = await api.http.get("/api/v1/runs", headers={"Origin": "https://evil.example"})
    assert not [name for name in response.headers if name.startswith("access-control")]
    preflight = await api.http.options(
        "/api/v1/runs", headers={"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    )
    assert not [name for name in preflight.headers if name.startswith("access-control")]


async def test_every_answer_carries_the_security_headers(api: Api) -> None:
    for path in ("/", "/api/v1/runs", "/api/v1/none", "/api/v1/health/live", "/login?token=x"):
        headers = (await api.nobody.get(path)).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert "server" not in headers or headers["server"] == "uvicorn"
