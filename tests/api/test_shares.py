"""Share links: readers without an account get one report, and nothing else."""

import json
import logging
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from offing.api.public_limits import PublicLimits
from offing.services import report_shares
from offing.services.report_shares import ShareRequest
from offing.telemetry.redaction import redact
from tests.api.conftest import Api
from tests.api.shared_reports import build_hostile_report, write_report
from tests.hostile_texts import MARKER, list_hostile_texts

UUID_SHAPE = re.compile(
    r"(?<![0-9a-f])[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}(?![0-9a-f])", re.IGNORECASE
)

OTHER_LOGS = ("httpcore", "httpx", "uvicorn.access")
"""The log of the client, and the access log of uvicorn, which is off, but to which pytest adds a handler."""

NO_LINK: dict[str, Any] = {
    "type": "urn:offing:problem:not_found",
    "title": "Not Found",
    "status": 404,
    "detail": "This link does not work: it is not complete, has expired or was revoked.",
    "field": None,
    "remedy": "Check that the address is complete, or ask the person who sent it for a new link.",
    "texts": {},
}


async def reported(api: Api, name: str = "private/folder/salt.md") -> tuple[UUID, UUID]:
    source = await api.hands.document(name)
    run = await api.submit()
    await api.hands.report(await api.hands.claim(run), source)
    return run, source


async def end(api: Api, run: UUID) -> None:
    async with api.database.transaction(api.tenant) as connection:
        await connection.execute("update run set status = 'done', ended_at = now() where id = %s", (run,))


async def share(api: Api, run: UUID, **body: Any) -> dict[str, Any]:
    response = await api.http.post(f"/api/v1/runs/{run}/shares", json=body)
    assert response.status_code == 201, response.text
    return response.json()


async def test_a_reader_without_an_account_gets_the_report_and_nothing_else(api: Api) -> None:
    run, source = await reported(api)
    created = await share(api, run, label="For the board")
    response = await api.nobody.get(f"/api/v1{created['path']}")
    assert response.status_code == 200
    body = response.json()
    assert set(body) == {
        *("question", "version", "status", "reason", "title", "answer", "sections", "citations", "sources"),
        *(
            "limitations",
            "author",
            "check",
            "judged_by",
            "conflicts",
            "conflict_search",
            "created_at",
            "expires_at",
            "texts",
        ),
    }
    assert set(body["citations"][0]) == {
        *("number", "title", "quote", "verified", "erased", "source"),
        *("position", "position_texts"),
    }
    assert set(body["sources"][0]) == {
        *("id", "title", "url", "site", "author", "published", "retrieved_at", "description", "citations"),
    }
    assert set(body["answer"]) == {
        *("id", "text", "citations", "supported", "rejected", "rejected_texts"),
        *("layout", "passages", "unsupported_values"),
        *("verdict", "rule_verdict", "judgment", "reasons", "edited", "follows_from"),
    }
    assert (body["title"], body["question"]) == ("Salt", "Why is the sea salt?")
    assert body["citations"][0]["verified"]
    for hidden in (
        str(run),
        run.hex,
        str(source),
        str(api.tenant),
        str(api.other_tenant),
        "folder",
        "salt.md",
        "board",
    ):
        assert hidden not in response.text
    assert not UUID_SHAPE.search(response.text)


async def test_the_files_of_a_link_have_no_ids_and_no_folders(api: Api) -> None:
    run, _ = await reported(api)
    path = (await share(api, run))["path"]
    for form, start in (("md", b"# Salt"), ("html", b"<!doctype html>"), ("docx", b"PK"), ("pdf", b"%PDF")):
        response = await api.nobody.get(f"/api/v1{path}/export?format={form}")
        assert response.status_code == 200, response.text
        assert response.content.lower().startswith(start.lower())
        assert "no-store" in response.headers["cache-control"]
        assert not UUID_SHAPE.search(response.headers["content-disposition"])
        if form in ("md", "html"):
            assert not UUID_SHAPE.search(response.text)
            assert "folder" not in response.text
    assert (await api.nobody.get(f"/api/v1{path}/export?format=json")).status_code == 422


async def test_the_files_of_a_link_have_headings_in_the_language_that_the_owner_asked_for(api: Api) -> None:
    run = await api.submit(report_style={"language": "zh-CN"})
    await api.hands.report(await api.hands.claim(run), await api.hands.document())
    path = (await share(api, run))["path"]
    texts = [(await api.nobody.get(f"/api/v1{path}/export?format={form}")).text for form in ("md", "html")]
    assert "\n## 来源\n" in texts[0]
    assert "<h2>来源</h2>" in texts[1]


async def test_a_reader_does_not_see_a_question_that_the_owner_leaves_out(api: Api) -> None:
    run, _ = await reported(api)
    path = (await share(api, run, shows_question=False))["path"]
    response = await api.nobody.get(f"/api/v1{path}")
    assert response.json()["question"] is None
    assert "Why is the sea salt?" not in response.text


async def test_every_answer_is_kept_out_of_caches_and_search_engines(api: Api) -> None:
    run, _ = await reported(api)
    path = (await share(api, run))["path"]
    for address in (f"/api/v1{path}", path, "/api/v1/shared/unknown", "/shared/unknown"):
        headers = (await api.nobody.get(address)).headers
        assert headers["cache-control"] == "no-store", address
        assert headers["referrer-policy"] == "no-referrer", address
        assert headers["x-robots-tag"].startswith("noindex"), address


@pytest.mark.parametrize(
    "token",
    [
        "x",
        "ofs_",
        "ofs_" + "A" * 43,
        "ofs_" + "A" * 5_000,
        "%2e%2eruns",
        "' or 1=1 --",
        "ofs_%F0%9F%92%A9",
        "*",
        "null",
    ],
)
async def test_a_token_that_nobody_made_opens_nothing(api: Api, token: str) -> None:
    await share(api, (await reported(api))[0])
    response = await api.nobody.get(f"/api/v1/shared/{token}")
    assert (response.status_code, response.json()) == (404, NO_LINK)


async def test_unknown_expired_and_revoked_links_get_the_same_answer(api: Api, owner_url: str) -> None:
    run, _ = await reported(api)
    expired, revoked = await share(api, run), await share(api, run)
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute(
            "update app.report_share set created_at = now() - interval '2 days', expires_at = now() - interval '1 day'"
            " where id = %s",
            (expired["share"]["id"],),
        )
    assert (await api.http.delete(f"/api/v1/shares/{revoked['share']['id']}")).status_code == 204
    for path in (expired["path"], revoked["path"], "/shared/ofs_" + "B" * 43):
        for address in (f"/api/v1{path}", f"/api/v1{path}/export?format=pdf"):
            response = await api.nobody.get(address)
            assert (response.status_code, response.json()) == (404, NO_LINK)
    states = {one["id"]: one["state"] for one in (await api.http.get(f"/api/v1/runs/{run}/shares")).json()["items"]}
    assert states == {expired["share"]["id"]: "expired", revoked["share"]["id"]: "revoked"}


async def test_unknown_and_expired_links_send_the_same_statements(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = await reported(api)
    now = datetime.now(UTC) - timedelta(days=20)
    request = ShareRequest(run, expires_at=now + timedelta(days=1))
    expired = await report_shares.create_share(api.database, api.tenant, request, clock=lambda: now)
    sent: list[str] = []
    database = api.app.state.dependencies.database
    call, begin = database.call_function, database.transaction

    def note_call(query: str, values: object) -> object:
        sent.append(query)
        return call(query, values)

    def note_transaction(tenant_id: UUID) -> object:
        sent.append("transaction")
        return begin(tenant_id)

    monkeypatch.setattr(database, "call_function", note_call)
    monkeypatch.setattr(database, "transaction", note_transaction)
    statements = list[list[str]]()
    for path in (expired.path, "/shared/ofs_" + "B" * 43, "/shared/short"):
        sent.clear()
        assert (await api.nobody.get(f"/api/v1{path}")).status_code == 404
        statements.append([*sent])
    assert len(statements[0]) == 1
    assert statements[0] == statements[1] == statements[2]


async def test_only_the_hash_of_a_token_is_stored_and_no_log_has_it(
    api: Api, owner_url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = await reported(api)
    created = await share(api, run)
    token = created["token"]
    assert len(token) == 47
    with psycopg.connect(owner_url) as owner:
        (row,) = owner.execute("select s::text from app.report_share s").fetchall()
    assert token not in row[0]
    for listed in ("/api/v1/shares", f"/api/v1/runs/{run}/shares"):
        assert token not in (await api.http.get(listed)).text

    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(report_shares, "open_shared_report", fail)
    with caplog.at_level(logging.DEBUG):
        assert (await api.nobody.get(f"/api/v1{created['path']}")).status_code == 500
    assert "/api/v1/shared/[token] failed" in caplog.text
    logged = [f"{one.name}: {one.getMessage()}" for one in caplog.records]
    assert [one for one in logged if token in one and not one.startswith(OTHER_LOGS)] == []
    assert redact(f"GET {created['path']} HTTP/1.1") == "GET /shared/[redacted] HTTP/1.1"


async def test_the_owner_sees_how_often_a_link_was_opened(api: Api) -> None:
    run, _ = await reported(api)
    created = await share(api, run, days=1, label="  For the\tboard ")
    assert created["share"]["opened_count"] == 0
    assert created["share"]["last_opened_at"] is None
    for _ in range(2):
        await api.nobody.get(f"/api/v1{created['path']}")
    await api.nobody.get(f"/api/v1{created['path']}/export?format=md")
    (listed,) = (await api.http.get("/api/v1/shares")).json()["items"]
    assert (listed["opened_count"], listed["label"], listed["report_title"]) == (2, "For the board", "Salt")
    assert listed["last_opened_at"] > listed["created_at"]


async def test_a_link_shows_the_version_with_which_it_was_created(api: Api) -> None:
    run, _ = await reported(api)
    path = (await share(api, run))["path"]
    with_texts = build_hostile_report(["A later version."] * 12)
    await write_report_again(api, run, with_texts)
    assert (await api.nobody.get(f"/api/v1{path}")).json()["version"] == 1
    latest = (await share(api, run))["path"]
    assert (await api.nobody.get(f"/api/v1{latest}")).json()["version"] == 2


async def write_report_again(api: Api, run: UUID, report: Any) -> None:
    async with api.database.transaction(api.tenant) as connection:
        await connection.execute(
            "insert into report (run_id, version, tenant_id, seq, status, stop_reason, body)"
            ' select run_id, 2, tenant_id, seq, status, stop_reason, body || \'{"title": "Later"}\' from report'
            " where run_id = %s",
            (run,),
        )


async def test_a_deleted_run_takes_its_links_with_it(api: Api) -> None:
    run, _ = await reported(api)
    path = (await share(api, run))["path"]
    await end(api, run)
    assert (await api.http.delete(f"/api/v1/runs/{run}")).status_code == 200
    assert (await api.nobody.get(f"/api/v1{path}")).status_code == 404


async def test_an_erased_source_disappears_from_a_shared_report(api: Api) -> None:
    run, source = await reported(api)
    path = (await share(api, run))["path"]
    await end(api, run)
    erased = await api.http.delete(f"/api/v1/library/sources/{source}")
    assert erased.status_code in (200, 204), erased.text
    response = await api.nobody.get(f"/api/v1{path}")
    (citation,) = response.json()["citations"]
    assert (citation["erased"], citation["verified"]) == (True, False)
    assert citation["quote"] != "Rivers carry dissolved salt into the sea."


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"days": 0}, "days"),
        ({"days": 367}, "days"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
        ({"expires_at": "2199-01-01T00:00:00Z"}, "expires_at"),
        ({"days": 3, "expires_at": "2099-01-01T00:00:00Z"}, "body"),
        ({"label": "x" * 201}, "label"),
        ({"version": 0}, "version"),
        ({"token": "mine"}, "token"),
    ],
)
async def test_a_link_must_end_within_a_year(api: Api, body: dict[str, Any], field: str) -> None:
    run, _ = await reported(api)
    response = await api.http.post(f"/api/v1/runs/{run}/shares", json=body)
    assert (response.status_code, response.json()["field"]) == (422, field)


async def test_a_run_without_a_report_cannot_be_shared(api: Api) -> None:
    run = await api.submit()
    assert (await api.http.post(f"/api/v1/runs/{run}/shares", json={})).status_code == 404
    shared, _ = await reported(api)
    assert (await api.http.post(f"/api/v1/runs/{shared}/shares", json={"version": 2})).status_code == 404


async def test_links_are_listed_in_pages(api: Api) -> None:
    run, _ = await reported(api)
    ids = [(await share(api, run))["share"]["id"] for _ in range(3)]
    first = (await api.http.get(f"/api/v1/runs/{run}/shares?limit=2")).json()
    rest = (await api.http.get("/api/v1/runs/" + f"{run}/shares", params={"limit": 2, "cursor": first["next"]})).json()
    assert [one["id"] for one in first["items"] + rest["items"]] == ids[::-1]
    assert rest["next"] is None


async def test_a_run_has_a_maximum_of_open_links(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_shares, "MAX_OPEN_SHARES", 2)
    run, _ = await reported(api)
    first = await share(api, run)
    await share(api, run)
    assert (await api.http.post(f"/api/v1/runs/{run}/shares", json={})).status_code == 409
    await api.http.delete(f"/api/v1/shares/{first['share']['id']}")
    await share(api, run)


async def test_many_requests_of_one_reader_are_rejected(api: Api) -> None:
    limits = PublicLimits(burst=3, per_second=0.001)
    object.__setattr__(api.app.state.dependencies, "public_limits", limits)
    answers = [(await api.nobody.get("/api/v1/shared/unknown")) for _ in range(4)]
    assert [one.status_code for one in answers] == [404, 404, 404, 429]
    assert int(answers[-1].headers["retry-after"]) > 0
    assert answers[-1].headers["cache-control"] == "no-store"


async def test_hostile_texts_reach_readers_as_text_only(api: Api) -> None:
    texts = list_hostile_texts(200)
    assert len(set(texts)) == 200
    run = await api.submit()
    await write_report(api, run, build_hostile_report(texts))
    path = (await share(api, run))["path"]
    response = await api.nobody.get(f"/api/v1{path}")
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-content-type-options"] == "nosniff"
    body = json.loads(response.content)
    assert MARKER in response.text
    assert not UUID_SHAPE.search(response.text)
    assert all(source["url"] == "" for source in body["sources"])  # no text becomes an address
    page = (await api.nobody.get(f"/api/v1{path}/export?format=html")).text
    assert not re.search(r"<(script|img|iframe|svg|object|form|base|link|video|math|template|details)\b", page, re.I)
    assert not re.search(r"<[^>]*\son\w+\s*=", page)
    addresses = re.findall(r"<[^>]*\b(?:href|src|action|style)\s*=\s*[\"']?([^\"'>\s]*)", page, re.I)
    assert all(address.startswith("#") for address in addresses)
