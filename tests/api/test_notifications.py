"""Notifications of runs, and webhooks that are told of them."""

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

from offing.core.run import RunStatus
from offing.services import webhooks
from offing.web.guard import AddressGuard, resolve_host
from offing.web.post import Poster
from tests.api.conftest import Api
from tests.api.test_input_requests import SEND, waiting

SOON = timedelta(seconds=30)


@dataclass
class Receiver:
    """A server that records what it gets and answers with a status of the test's choice."""

    port: int = 0
    status: str = "204 No Content"
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list[tuple[dict[str, str], bytes]])

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in head.split("\r\n")[1:] if line)}
        self.got.append((headers, await reader.readexactly(int(headers["content-length"]))))
        writer.write(f"HTTP/1.1 {self.status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    yield receiver
    server.close()
    await server.wait_closed()


@pytest.fixture
async def poster(
    api: Api, receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Poster]:
    """A client that may reach the receiver, also of the API."""
    monkeypatch.setenv("OFFING_HOME", str(tmp_path))
    guard = AddressGuard(resolve_host, frozenset({f"127.0.0.1:{receiver.port}"}))
    async with Poster(guard) as poster:
        object.__setattr__(api.app.state.dependencies, "poster", poster)
        yield poster


async def ended(api: Api, status: RunStatus = RunStatus.DONE) -> UUID:
    run = await api.submit()
    await api.hands.end(await api.hands.claim(run), status)
    return run


async def add(api: Api, receiver: Receiver, **body: Any) -> dict[str, Any]:
    response = await api.http.post("/api/v1/webhooks", json={"address": receiver.address, **body})
    assert response.status_code == 201, response.text
    return response.json()


def verify(secret: str, headers: dict[str, str], body: bytes) -> bool:
    """Check a signature as the specification of Standard Webhooks says, without code of Offing."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return hmac.compare_digest(expected, headers["webhook-signature"])


async def test_a_person_is_told_once_of_each_run_that_ended_or_waits(api: Api) -> None:
    done, failed = await ended(api), await ended(api, RunStatus.FAILED)
    listed = (await api.http.get("/api/v1/notifications")).json()
    assert [(one["kind"], one["run_id"]) for one in listed["items"]] == [
        ("run.failed", str(failed)),
        ("run.done", str(done)),
    ]
    assert listed["unread_count"] == 2
    assert listed["items"][0]["title"] == "Why is the sea salt?"
    assert (await api.other.get("/api/v1/notifications")).json()["items"] == []
    read = await api.http.post("/api/v1/notifications/read", json={"id": listed["items"][0]["id"]})
    assert read.status_code == 204
    assert (await api.http.get("/api/v1/notifications")).json()["unread_count"] == 1
    await api.other.post("/api/v1/notifications/read", json={})
    assert (await api.http.get("/api/v1/notifications")).json()["unread_count"] == 1
    await api.http.post("/api/v1/notifications/read", json={})
    assert (await api.http.get("/api/v1/notifications")).json()["unread_count"] == 0


async def test_a_run_that_waits_is_news_until_it_is_answered(api: Api) -> None:
    run, (number,) = await waiting(api, SEND)
    (notification,) = (await api.http.get("/api/v1/notifications")).json()["items"]
    assert (notification["kind"], notification["run_id"], notification["request"], notification["read_at"]) == (
        "run.waiting",
        str(run),
        number,
        None,
    )
    async with api.database.transaction(api.tenant) as connection:
        await connection.execute(
            "update input_request set responded_at = now(), response = '{}', responder = 'person' where run_id = %s",
            (run,),
        )
    listed = (await api.http.get("/api/v1/notifications")).json()
    assert (listed["unread_count"], listed["items"][0]["read_at"] is None) == (0, False)


async def test_a_run_that_a_person_cancelled_is_no_news(api: Api) -> None:
    run = await api.submit()
    assert (await api.http.post(f"/api/v1/runs/{run}/cancel", json={"mode": "discard"})).status_code == 200
    assert (await api.http.get("/api/v1/notifications")).json() == {"items": [], "next": None, "unread_count": 0}


async def test_notifications_are_listed_in_pages(api: Api) -> None:
    runs = [str(await ended(api)) for _ in range(3)]
    first = (await api.http.get("/api/v1/notifications?limit=2")).json()
    rest = (await api.http.get("/api/v1/notifications", params={"limit": 2, "cursor": first["next"]})).json()
    assert [one["run_id"] for one in first["items"] + rest["items"]] == runs[::-1]


async def test_a_webhook_gets_a_signed_message_without_text_of_the_report(
    api: Api, receiver: Receiver, poster: Poster
) -> None:
    created = await add(api, receiver, events=["run.done"], web_ui="https://offing.example/")
    source = await api.hands.document()
    run = await api.submit()
    fence = await api.hands.claim(run)
    await api.hands.report(fence, source)
    await api.hands.end(fence)
    await ended(api, RunStatus.FAILED)
    assert await webhooks.deliver_due(api.database, poster) == 1
    ((headers, body),) = receiver.got
    assert verify(created["secret"], headers, body)
    assert not verify(created["secret"], headers, body + b" ")
    message = json.loads(body)
    assert set(message) == {"type", "id", "timestamp", "data"}
    assert message["type"] == "run.done"
    assert message["id"] == headers["webhook-id"]
    assert message["data"] == {
        "run_id": str(run),
        "status": "done",
        "stop_reason": "answered",
        "title": "Why is the sea salt?",
        "link": f"https://offing.example/runs/{run}",
    }
    assert b"Rivers carry" not in body
    (attempt,) = (await api.http.get(f"/api/v1/webhooks/{created['webhook']['id']}/attempts")).json()
    assert (attempt["status"], attempt["problem"], attempt["next_attempt_at"]) == (204, "", None)
    assert await webhooks.deliver_due(api.database, poster) == 0


async def test_a_delivery_is_repeated_with_the_same_id_until_it_is_given_up(
    api: Api, receiver: Receiver, poster: Poster, owner_url: str
) -> None:
    created = await add(api, receiver)
    await ended(api)
    receiver.status = "503 Busy"
    with psycopg.connect(owner_url, autocommit=True) as owner:
        for number in range(1, 9):
            assert await webhooks.deliver_due(api.database, poster) == 1
            assert await webhooks.deliver_due(api.database, poster) == 0  # it is not due yet
            assert len(receiver.got) == number
            owner.execute("update app.webhook_delivery set next_attempt_at = now() where next_attempt_at is not null")
        assert await webhooks.deliver_due(api.database, poster) == 0
    assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 1
    attempts = (await api.http.get(f"/api/v1/webhooks/{created['webhook']['id']}/attempts")).json()
    assert [one["number"] for one in attempts] == [8, 7, 6, 5, 4, 3, 2, 1]
    assert {(one["status"], one["problem"], one["next_attempt_at"]) for one in attempts} == {
        (503, "The server answers with status 503.", None)
    }


async def test_a_delivery_whose_worker_stops_is_attempted_by_another_after_the_lease(
    api: Api, receiver: Receiver, poster: Poster
) -> None:
    await add(api, receiver)
    await ended(api)
    await webhooks.webhooks.claim_deliveries(api.database, timedelta(milliseconds=50), 10)  # and then it stops
    await asyncio.sleep(0.1)
    assert await webhooks.deliver_due(api.database, poster) == 1
    assert len(receiver.got) == 1


async def test_redirects_are_not_followed(api: Api, receiver: Receiver, poster: Poster) -> None:
    created = await add(api, receiver)
    receiver.status = f"302 Found\r\nLocation: {receiver.address}/elsewhere"
    tried = (await api.http.post(f"/api/v1/webhooks/{created['webhook']['id']}/test")).json()
    assert tried == {"status": 302, "problem": "The server redirects with status 302, which is not followed."}
    assert len(receiver.got) == 1


async def test_a_webhook_is_tried_once(api: Api, receiver: Receiver, poster: Poster) -> None:
    created = await add(api, receiver)
    tried = (await api.http.post(f"/api/v1/webhooks/{created['webhook']['id']}/test")).json()
    assert tried == {"status": 204, "problem": ""}
    ((headers, body),) = receiver.got
    assert verify(created["secret"], headers, body)
    assert json.loads(body)["type"] == "webhook.test"


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:6379/",
        "http://localhost/",
        "http://169.254.169.254/latest/meta-data",
        "http://[::1]/",
        "http://10.0.0.1/",
        "http://2130706433/",
        "file:///etc/passwd",
        "https://user:password@hooks.example/",
        "gopher://hooks.example/",
    ],
)
async def test_a_private_address_is_rejected(api: Api, address: str) -> None:
    response = await api.http.post("/api/v1/webhooks", json={"address": address})
    assert (response.status_code, response.json()["field"]) == (422, "address")
    assert (await api.http.get("/api/v1/webhooks")).json() == []


async def test_an_address_that_became_private_is_not_reached(api: Api, receiver: Receiver, poster: Poster) -> None:
    created = await add(api, receiver)
    await ended(api)
    async with Poster(AddressGuard(resolve_host)) as guarded:
        await webhooks.deliver_due(api.database, guarded)
    assert receiver.got == []
    (attempt,) = (await api.http.get(f"/api/v1/webhooks/{created['webhook']['id']}/attempts")).json()
    assert attempt["status"] is None
    assert attempt["problem"]


async def test_the_secret_of_a_webhook_is_shown_once_and_stored_encrypted(
    api: Api, receiver: Receiver, poster: Poster, owner_url: str
) -> None:
    created = await add(api, receiver)
    secret = created["secret"]
    assert len(base64.b64decode(secret.removeprefix("whsec_"))) == 32
    assert secret not in (await api.http.get("/api/v1/webhooks")).text
    with psycopg.connect(owner_url) as owner:
        ((row,),) = owner.execute("select w::text from app.webhook w").fetchall()
    assert secret not in row
    assert base64.b64decode(secret.removeprefix("whsec_")).hex() not in row


async def test_webhooks_belong_to_their_tenant(api: Api, receiver: Receiver, poster: Poster) -> None:
    created = await add(api, receiver)
    at = f"/api/v1/webhooks/{created['webhook']['id']}"
    for method, path in (("POST", f"{at}/test"), ("GET", f"{at}/attempts"), ("DELETE", at)):
        assert (await api.other.request(method, path)).status_code == 404, path
    assert (await api.other.get("/api/v1/webhooks")).json() == []
    assert (await api.http.delete(at)).status_code == 204
    await ended(api)
    assert await webhooks.deliver_due(api.database, poster) == 0


async def test_a_tenant_has_a_maximum_of_webhooks(api: Api, receiver: Receiver, poster: Poster) -> None:
    for _ in range(10):
        await add(api, receiver)
    assert (await api.http.post("/api/v1/webhooks", json={"address": receiver.address})).status_code == 409
