"""People organize the collections of the library over HTTP."""

import pytest

from offing.api.schemas.collections import CollectionDeletionOut
from offing.services import collections
from offing.services.collections import MAX_MOVED_SOURCES
from tests.api.conftest import Api
from tests.api.simulated_worker import TEXT


async def upload(api: Api, collection: str, *names: str) -> list[str]:
    files = [("files", (name, f"{TEXT}This is {name} of {collection}.\n".encode())) for name in names]
    sent = await api.http.post("/api/v1/library", files=files, data={"collection": collection})
    assert sent.status_code == 200, sent.text
    return [file["source"]["id"] for file in sent.json()["files"]]


async def counts(api: Api) -> dict[str, int]:
    listed = (await api.http.get("/api/v1/library/collections")).json()
    return {one["name"]: one["count"] for one in listed}


async def rename(api: Api, name: str, new_name: str) -> tuple[int, dict[str, object]]:
    sent = await api.http.post("/api/v1/library/collections/rename", json={"name": name, "new_name": new_name})
    return sent.status_code, sent.json()


async def count_hits(api: Api, collection: str) -> int:
    params = {"q": "salt", "collection": collection}
    return len((await api.http.get("/api/v1/library/search", params=params)).json()["items"])


async def delete(api: Api, name: str, documents: str) -> tuple[int, dict[str, object]]:
    params = {"name": name, "documents": documents}
    sent = await api.http.delete("/api/v1/library/collections", params=params)
    return sent.status_code, sent.json()


async def test_a_renamed_collection_is_found_by_its_new_name_and_follow_ups_read_it(api: Api) -> None:
    await upload(api, "papers", "a.md", "b.md")
    run = await api.submit(scope={"collections": ["notes", "papers"]})
    await api.hands.end(await api.hands.claim(run))
    status, renamed = await rename(api, "papers", " Sea papers ")
    assert (status, renamed["name"], renamed["count"]) == (200, "Sea papers", 2)
    assert await counts(api) == {"Sea papers": 2}
    assert await count_hits(api, "Sea papers") > 0
    assert await count_hits(api, "papers") == 0
    detail = (await api.http.get(f"/api/v1/runs/{run}")).json()
    assert detail["scope"]["collections"] == ["notes", "Sea papers"]
    follow_up = await api.submit("And the lakes?", thread_id=detail["thread_id"])
    scope = (await api.http.get(f"/api/v1/runs/{follow_up}")).json()["scope"]
    assert scope["collections"] == ["notes", "Sea papers"]
    assert (await rename(api, "Sea papers", "Sea papers"))[0] == 409  # the follow-up is active


async def test_a_collection_that_an_active_run_is_limited_to_stays_until_the_run_ends(api: Api) -> None:
    (source,) = await upload(api, "papers", "a.md")
    (other,) = await upload(api, "notes", "n.md")
    run = await api.submit(scope={"collections": ["papers"]})
    listed = (await api.http.get("/api/v1/library/collections")).json()
    assert [(one["name"], one["active_runs"]) for one in listed] == [("notes", 0), ("papers", 1)]
    answers = [await rename(api, "papers", "x")]
    answers += [await delete(api, "papers", documents) for documents in ("keep", "erase")]
    for id, collection in ((source, "notes"), (other, "papers")):
        body = {"source_ids": [id], "collection": collection}
        sent = await api.http.post("/api/v1/library/sources/move", json=body)
        answers.append((sent.status_code, sent.json()))
    assert [status for status, _ in answers] == [409] * 5
    assert all(str(run) in str(answer["detail"]) for _, answer in answers)
    await api.hands.end(await api.hands.claim(run))
    assert (await rename(api, "papers", "x"))[0] == 200


@pytest.mark.parametrize("new_name", ["", "  ", "a/b", "web", "x" * 201, "notes"])
async def test_a_name_that_cannot_be_given_is_rejected_and_nothing_changes(api: Api, new_name: str) -> None:
    await upload(api, "papers", "a.md")
    await upload(api, "notes", "n.md")
    status, problem = await rename(api, "papers", new_name)
    assert status == (409 if new_name == "notes" else 422)
    assert problem["remedy"]
    assert await counts(api) == {"notes": 1, "papers": 1}


@pytest.mark.parametrize("name", ["", "/home/ada/papers", "web"])
async def test_what_has_no_name_that_a_person_gave_is_not_renamed(api: Api, name: str) -> None:
    status, problem = await rename(api, name, "papers")
    assert (status, problem["field"]) == (422, "name")


async def test_a_collection_that_does_not_exist_is_neither_renamed_nor_deleted(api: Api) -> None:
    assert (await rename(api, "papers", "x"))[0] == 404
    assert (await delete(api, "papers", "keep"))[0] == 404
    assert (await delete(api, "papers", "erase"))[0] == 404


async def test_documents_of_a_deleted_collection_become_single_files_under_names_of_their_own(api: Api) -> None:
    nested, _ = await upload(api, "papers", "deep/a.md", "b.md")
    (single,) = await upload(api, "", "b.md")
    status, problem = await delete(api, "papers", "keep")
    assert status == 409
    assert "'b.md'" in str(problem["detail"])
    assert await counts(api) == {"": 1, "papers": 2}
    await api.http.delete(f"/api/v1/library/sources/{single}")
    status, done = await delete(api, "papers", "keep")
    assert (status, done["kept_count"], done["remaining"]) == (200, 2, 0)
    assert await counts(api) == {"": 2}
    assert (await api.http.get(f"/api/v1/library/sources/{nested}")).json()["name"] == "deep/a.md"


async def test_a_collection_is_erased_in_parts_that_say_how_much_remains(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collections, "MAX_ERASED_SOURCES", 2)
    await upload(api, "papers", "a.md", "b.md", "c.md")
    first = CollectionDeletionOut.model_validate((await delete(api, "papers", "erase"))[1])
    assert (first.erased.sources, first.remaining) == (2, 1)
    second = CollectionDeletionOut.model_validate((await delete(api, "papers", "erase"))[1])
    assert (second.erased.sources, second.remaining) == (1, 0)
    assert await counts(api) == {}


async def test_a_document_that_an_active_run_has_read_stops_an_erasure_and_is_named(api: Api) -> None:
    source = await api.hands.document()
    run = await api.submit()
    fence = await api.hands.claim(run)
    await api.hands.report(fence, source)
    moved = await api.http.post("/api/v1/library/sources/move", json={"source_ids": [str(source)], "collection": "sea"})
    assert moved.json() == {"moved": 1}
    status, problem = await delete(api, "sea", "erase")
    assert (status, await counts(api)) == (409, {"sea": 1})
    assert "'Salt' was not erased" in str(problem["detail"])


async def test_moved_documents_keep_their_ids_and_are_moved_all_or_none(api: Api) -> None:
    a, b = await upload(api, "papers", "a.md", "b.md")
    (taken,) = await upload(api, "notes", "b.md")
    body = {"source_ids": [a, b], "collection": "notes"}
    sent = await api.http.post("/api/v1/library/sources/move", json=body)
    assert (sent.status_code, await counts(api)) == (409, {"notes": 1, "papers": 2})
    body = {"source_ids": [b, taken], "collection": "new"}
    assert (await api.http.post("/api/v1/library/sources/move", json=body)).status_code == 409
    body = {"source_ids": [a, taken], "collection": "new"}
    assert (await api.http.post("/api/v1/library/sources/move", json=body)).json() == {"moved": 2}
    assert (await api.http.post("/api/v1/library/sources/move", json=body)).json() == {"moved": 0}
    assert await counts(api) == {"new": 2, "papers": 1}
    too_many = {"source_ids": [a] * (MAX_MOVED_SOURCES + 1), "collection": "new"}
    assert (await api.http.post("/api/v1/library/sources/move", json=too_many)).status_code == 422


async def test_another_tenants_collections_and_documents_cannot_be_touched(api: Api) -> None:
    (mine,) = await upload(api, "papers", "a.md")
    body = {"source_ids": [mine], "collection": "theirs"}
    assert (await api.other.post("/api/v1/library/sources/move", json=body)).status_code == 404
    params = {"name": "papers", "documents": "erase"}
    assert (await api.other.delete("/api/v1/library/collections", params=params)).status_code == 404
    params["documents"] = "keep"
    assert (await api.other.delete("/api/v1/library/collections", params=params)).status_code == 404
    renamed = await api.other.post("/api/v1/library/collections/rename", json={"name": "papers", "new_name": "x"})
    assert renamed.status_code == 404
    assert (await api.other.get("/api/v1/library/collections")).json() == []
    assert await counts(api) == {"papers": 1}


async def test_a_collection_of_stored_tasks_keeps_its_name_and_its_documents(api: Api) -> None:
    await upload(api, "atlas", "a.md")
    task = {"question": "What did Atlantis export?", "answers": ["Salt"], "scope": {"collections": ["atlas"]}}
    sent = await api.http.post("/api/v1/tasks", json={"dataset": "capitals", "tasks": [task]})
    assert sent.status_code in (200, 201), sent.text
    for status, problem in (await rename(api, "atlas", "x"), await delete(api, "atlas", "keep")):
        assert (status, "'capitals'" in str(problem["detail"])) == (409, True)
