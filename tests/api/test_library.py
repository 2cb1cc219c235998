"""The library over HTTP."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any
from uuid import UUID

import httpx
import psutil
import pytest

from offing.api import uploads
from offing.clock import new_id
from tests.api.conftest import Api
from tests.api.simulated_worker import TEXT


def part(name: str, body: str | bytes) -> tuple[str, tuple[str, bytes]]:
    return ("files", (name, body.encode() if isinstance(body, str) else body))


async def test_uploaded_documents_can_be_listed_found_and_read_in_context(api: Api) -> None:
    sent = await api.http.post("/api/v1/library", files=[part("salt.md", TEXT), part("no.bin", b"\x00\x01\x02")])
    assert sent.status_code == 200, sent.text
    files = sent.json()["files"]
    assert [f["outcome"] for f in files] == ["added", "rejected"]
    assert files[1]["problem"]
    source = files[0]["source"]
    assert (source["name"], source["size_bytes"], len(source["snapshot"])) == ("salt.md", len(TEXT), 64)
    listed = (await api.http.get("/api/v1/library")).json()
    assert (listed["total"], listed["next"], [s["id"] for s in listed["items"]]) == (1, None, [source["id"]])
    (hit,) = (await api.http.get("/api/v1/library/search", params={"q": "river salt"})).json()["items"][:1]
    marked = {hit["text"][mark["start"] : mark["end"]].lower() for mark in hit["marks"]}
    assert marked == {word for word in ("rivers", "river", "salt", "salty") if word in hit["text"].lower().split()}
    assert hit["source_id"] == source["id"]
    span = {"text_id": hit["text_id"], "start": hit["start"], "end": hit["end"]}
    assert (await api.http.get("/api/v1/library/passages", params=span)).json()["text"] == hit["text"]
    again = (await api.http.post("/api/v1/library", files=[part("salt.md", TEXT)])).json()
    assert again["files"][0]["outcome"] == "unchanged"
    (single,) = (await api.http.get("/api/v1/library/collections")).json()
    assert (single["name"], single["count"], single["removed_count"]) == ("", 1, 0)


async def test_lists_of_sources_come_in_pages(api: Api) -> None:
    names = [f"doc{n}.md" for n in range(5)]
    for name in names:
        await api.hands.document(name, f"# Doc\n\nThis is the text of {name}.\n")
    first = (await api.http.get("/api/v1/library", params={"limit": 3})).json()
    rest = (await api.http.get("/api/v1/library", params={"limit": 3, "cursor": first["next"]})).json()
    assert [s["name"] for s in first["items"] + rest["items"]] == names[::-1]
    assert (first["total"], rest["next"]) == (5, None)
    assert [s["name"] for s in (await api.http.get("/api/v1/library?q=DOC3")).json()["items"]] == ["doc3.md"]


async def test_an_erased_source_is_deleted(api: Api) -> None:
    source = await api.hands.document()
    erased = await api.http.delete(f"/api/v1/library/sources/{source}")
    assert erased.json() == {"sources": 1, "snapshots": 1, "passages": erased.json()["passages"], "steps": 0}
    assert (await api.http.get(f"/api/v1/library/sources/{source}")).status_code == 404
    assert (await api.http.delete(f"/api/v1/library/sources/{source}")).status_code == 404
    assert (await api.http.get("/api/v1/library/search?q=salt")).json()["items"] == []


async def test_one_file_that_is_too_large_is_rejected_and_the_others_are_kept(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "MAX_FILE_BYTES", 200_000)
    files = [
        part("a.md", TEXT),
        part("big.md", "x" * 200_001),
        part("b.md", TEXT + "More."),
        part("just.txt", "word " * 40_000),
    ]
    outcomes = (await api.http.post("/api/v1/library", files=files)).json()["files"]
    assert {f["name"]: f["outcome"] for f in outcomes} == {
        "a.md": "added", "big.md": "rejected", "b.md": "added", "just.txt": "added",
    }  # fmt: skip


async def test_what_is_written_to_disk_stops_at_the_limit(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MAX_FILE_BYTES", 1000)
    sizes: list[int | None] = []
    stored = uploads.ingest_files

    async def noticed(database: Any, readers: Any, tenant_id: UUID, sent: uploads.ReceivedFiles) -> object:
        sizes.extend(file.size for file in sent.files)
        return await stored(database, readers, tenant_id, sent)

    monkeypatch.setattr("offing.api.routes.library.ingest_files", noticed)
    await api.http.post("/api/v1/library", files=[part("a.md", "x" * 999), part("b.md", "y" * 5_000_000)])
    assert sizes == [999, 1001]


async def test_a_body_that_is_no_form_with_files_is_rejected_with_a_remedy(api: Api) -> None:
    send = api.http.post
    answers = [
        await send("/api/v1/library", json={"files": []}),
        await send("/api/v1/library", content=b"x", headers={"Content-Type": "multipart/form-data"}),
        await send("/api/v1/library", content=b"x", headers={"Content-Type": "multipart/form-data; boundary=b"}),
        await send("/api/v1/library", data={"collection": "x"}, files={"other": b""}),
        await send("/api/v1/library"),
    ]
    for response in answers:
        assert response.status_code == 422, response.text
        assert response.json()["field"] == "files"
        assert response.json()["remedy"]


async def test_an_uploaded_folder_is_a_collection_whose_files_keep_their_paths(api: Api) -> None:
    files = [part("README.md", TEXT), part("guide/README.md", TEXT + "More."), part("guide/../../x.md", TEXT + "X.")]
    sent = await api.http.post("/api/v1/library", files=files, data={"collection": "papers"})
    assert sent.status_code == 200, sent.text
    assert [f["outcome"] for f in sent.json()["files"]] == ["added"] * 3
    listed = (await api.http.get("/api/v1/library", params={"collection": "papers"})).json()
    assert {s["name"] for s in listed["items"]} == {"README.md", "guide/README.md", "guide/x.md"}
    await api.http.post("/api/v1/library", files=[part("README.md", TEXT)])
    collections = (await api.http.get("/api/v1/library/collections")).json()
    assert [(one["name"], one["count"]) for one in collections] == [("", 1), ("papers", 3)]
    hits = await api.http.get("/api/v1/library/search", params={"q": "river salt", "collection": "papers"})
    assert hits.json()["items"]


async def test_a_field_of_an_upload_that_would_be_ignored_is_rejected_by_its_name(api: Api) -> None:
    bad = {"collection": "/home/me/papers"}, {"collection": "a" * 201}, {"collection": ["a", "b"]}, {"folder": "papers"}
    for data in bad:
        sent = await api.http.post("/api/v1/library", files=[part("a.md", TEXT)], data=data)
        assert (sent.status_code, sent.json()["field"]) == (422, next(iter(data))), sent.text
        assert sent.json()["remedy"]
    assert (await api.http.get("/api/v1/library")).json()["total"] == 0


async def test_a_hostile_file_name_is_only_a_name(api: Api) -> None:
    files = [part("../../etc/passwd.md", TEXT), part("C:\\x\\y.md", TEXT), part("a\tb.md", TEXT)]
    outcomes = (await api.http.post("/api/v1/library", files=files)).json()["files"]
    assert all(f["outcome"] == "added" for f in outcomes), outcomes
    assert not [f["name"] for f in outcomes if "/" in f["name"] or "\\" in f["name"]]


async def test_a_span_outside_the_text_is_rejected(api: Api) -> None:
    source = await api.hands.document()
    text_id = (await api.http.get(f"/api/v1/library/sources/{source}")).json()["text_id"]
    for start, end in ((0, 10**9), (5, 5), (9, 3)):
        span = {"text_id": text_id, "start": start, "end": end}
        assert (await api.http.get("/api/v1/library/passages", params=span)).status_code == 422


async def test_a_folder_of_1500_files_goes_in_through_parallel_uploads(api: Api) -> None:
    files = [part(f"{n}.md", f"# Station {n}\n\nThe gauge g{n}x tells of a tide.\n") for n in range(1500)]
    requests = [files[first : first + 100] for first in range(0, len(files), 100)]
    sent = await asyncio.gather(
        *(api.http.post("/api/v1/library", files=one, data={"collection": "tides"}, timeout=300) for one in requests)
    )
    assert Counter(answer.status_code for answer in sent) == {200: len(requests)}, sent[0].text
    assert Counter(file["outcome"] for answer in sent for file in answer.json()["files"]) == {"added": 1500}
    assert (await api.http.get("/api/v1/library?collection=tides&limit=1")).json()["total"] == 1500


def readers_of_this_process() -> set[int]:
    results = set[int]()
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it has ended meanwhile
            if "offing.library.reader_process" in child.cmdline():
                results.add(child.pid)
    return results


async def test_ten_uploads_at_once_share_one_pool_of_readers(api: Api) -> None:
    before, maximum = readers_of_this_process(), 0
    text = "Rivers carry dissolved salt into the sea. " * 2000
    files = [part(f"{n}.md", f"# {n}\n\n{text}") for n in range(10)]
    sending = [asyncio.ensure_future(api.http.post("/api/v1/library", files=[one], timeout=300)) for one in files]
    while not all(one.done() for one in sending):
        maximum = max(maximum, len(readers_of_this_process() - before))
        await asyncio.wait(sending, timeout=0.02, return_when=asyncio.FIRST_COMPLETED)
    assert [one.result().json()["files"][0]["outcome"] for one in sending] == ["added"] * 10
    assert 1 <= maximum <= api.app.state.dependencies.document_readers.max_documents // 2


async def test_uploads_that_do_not_fit_are_told_when_to_come_back(api: Api) -> None:
    gate: uploads.UploadGate = api.app.state.dependencies.upload_gate

    async def send(client: httpx.AsyncClient) -> httpx.Response:
        return await client.post("/api/v1/library", files=[part("a.md", TEXT)])

    half = uploads.MAX_PENDING_BYTES_PER_TENANT
    with gate.admit(api.tenant, half):
        more = await send(api.http)
        assert (more.status_code, more.headers["retry-after"]) == (429, "2")
        assert (await send(api.other)).status_code == 200
        with gate.admit(new_id(), half):
            full = await send(api.other)
            assert (full.status_code, full.headers["retry-after"]) == (503, "2")
    for _ in range(uploads.MAX_CONCURRENT_UPLOADS_PER_TENANT):
        gate.uploads_by_tenant[api.tenant] += 1
    many, other = await send(api.http), await send(api.other)
    assert (many.status_code, many.headers["retry-after"], many.json()["type"]) == (
        429, "2", "urn:offing:problem:too_many_uploads",
    )  # fmt: skip
    assert other.status_code == 200, other.text
    gate.uploads_by_tenant.clear()
    assert (await send(api.http)).status_code == 200
    assert (gate.uploads_by_tenant.total(), gate.pending_bytes_by_tenant.total()) == (0, 0)


async def test_an_upload_that_breaks_off_releases_its_slot(api: Api) -> None:
    async def broken() -> AsyncGenerator[bytes]:
        yield b"--b\r\nContent-Disposition: form-data; name=files; filename=a.md\r\n\r\nsalt"
        raise OSError("the line was cut")

    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    with pytest.raises((OSError, httpx.HTTPError)):
        await api.http.post("/api/v1/library", content=broken(), headers=headers)
    gate: uploads.UploadGate = api.app.state.dependencies.upload_gate
    give_up = time.monotonic() + 60
    while gate.uploads_by_tenant.total():
        assert time.monotonic() < give_up
        await asyncio.sleep(0.01)
    assert gate.pending_bytes_by_tenant.total() == 0


async def test_a_search_returns_up_to_a_thousand_passages(api: Api) -> None:
    assert (await api.http.get("/api/v1/library/search", params={"q": "salt", "limit": 1000})).status_code == 200
    response = await api.http.get("/api/v1/library/search", params={"q": "salt", "limit": 1001})
    assert response.status_code == 422
    assert "limit" in response.text
