"""Versions of reports over HTTP: a person edits, restores and compares them, and nothing is lost or dangles."""

from typing import Any
from uuid import UUID

import pytest

from offing.core.step import StepDraft, StepKind
from offing.library.docx_reader import read_docx
from offing.services import library
from offing.storage import reports, threads
from tests.api.conftest import Api
from tests.api.simulated_worker import TEXT

QUOTE = "Rivers carry dissolved salt into the sea."
SECOND = "The sun takes the water away and leaves the salt."


async def finished(api: Api) -> UUID:
    """An ended run that has read a document and reported on it."""
    source = await library.get_source(api.database, api.tenant, await api.hands.document())
    run = await api.submit()
    fence = await api.hands.claim(run)
    passage = {"text_id": str(source.text_id), "source": str(source.id), "start": 0, "end": len(TEXT), "text": TEXT}
    content = {"passages": [passage | {"title": "Salt", "heading": "Salt", "name": "salt.md"}]}
    payload = {"tool": "search", "content": content, "status": "ok", "args": {}}
    await api.hands.append(fence, StepDraft(StepKind.TOOL_RESULT, "Search", payload))
    await api.hands.report(fence, source.id)
    await api.hands.end(fence)
    return run


def keep(sentence: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": sentence["id"],
        "text": sentence["text"],
        "citations": [*sentence["citations"], *sentence["passages"]],
        "layout": sentence["layout"],
    }


async def load_edit(api: Api, run: UUID) -> dict[str, Any]:
    """The latest report as an edit that changes nothing yet."""
    report = (await api.http.get(f"/api/v1/runs/{run}/report")).json()
    return {
        "base_version": report["version"],
        "title": report["title"],
        "answer": keep(report["answer"]),
        "sections": [{"heading": s["heading"], "sentences": [*map(keep, s["sentences"])]} for s in report["sections"]],
        "limitations": report["limitations"],
    }


async def save(api: Api, run: UUID, edit: dict[str, Any], status: int = 201) -> dict[str, Any]:
    response = await api.http.post(f"/api/v1/runs/{run}/report/versions", json=edit)
    assert response.status_code == status, response.text
    return response.json()


async def rename(api: Api, run: UUID, title: str) -> dict[str, Any]:
    return await save(api, run, await load_edit(api, run) | {"title": title})


async def test_a_saved_edit_is_the_next_version_and_the_run_keeps_its_own(api: Api) -> None:
    run = await finished(api)
    edit = await load_edit(api, run)
    edit["sections"][0]["sentences"][1]["text"] = "Nobody knows more than 3 rivers."
    saved = await save(api, run, edit | {"note": " Counted. "})
    assert (saved["version"], saved["latest_version"], saved["base_version"], saved["note"]) == (2, 2, 1, "Counted.")
    assert saved["edited_by"].startswith("key:")
    sentences = [saved["answer"], *saved["sections"][0]["sentences"]]
    assert [one["edited"] for one in sentences] == [False, False, True]
    first = (await api.http.get(f"/api/v1/runs/{run}/report?version=1")).json()
    assert (first["edited_by"], first["latest_version"]) == (None, 2)
    assert first["sections"][0]["sentences"][1]["text"] == "Nobody knows more."
    listed = (await api.http.get(f"/api/v1/runs/{run}/report/versions")).json()
    assert [(v["version"], v["base_version"], v["note"]) for v in listed["items"]] == [
        (2, 1, "Counted."),
        (1, None, ""),
    ]
    assert listed["next"] is None


async def test_versions_are_listed_in_pages(api: Api) -> None:
    run = await finished(api)
    for title in ("Salt 2", "Salt 3"):
        await rename(api, run, title)
    at = f"/api/v1/runs/{run}/report/versions"
    page = (await api.http.get(at, params={"limit": 2})).json()
    assert ([v["title"] for v in page["items"]], page["next"]) == (["Salt 3", "Salt 2"], "2")
    rest = (await api.http.get(at, params={"limit": 2, "before": page["next"]})).json()
    assert ([v["version"] for v in rest["items"]], rest["next"]) == ([1], None)


async def test_a_changed_sentence_is_checked_by_rules_against_the_stored_text(api: Api) -> None:
    run = await finished(api)
    edit = await load_edit(api, run)
    edit["answer"]["text"] = "Rivers carry 40 tonnes of salt into the sea."
    answer = (await save(api, run, edit))["answer"]
    assert (answer["verdict"], answer["unsupported_values"]) == ("partly", ["40"])
    assert answer["reasons"] == ["not in the quotes: 40"]


async def test_a_sentence_can_cite_another_passage_that_the_run_has_read(api: Api) -> None:
    run = await finished(api)
    listed = (await api.http.get(f"/api/v1/runs/{run}/evidence", params={"q": "SUN water"})).json()
    (passage,) = listed["items"]
    assert (passage["id"], passage["title"], passage["text"], listed["next"]) == ("E1", "Salt", TEXT, None)
    assert (await api.http.get(f"/api/v1/runs/{run}/evidence", params={"q": "moon"})).json()["items"] == []
    edit = await load_edit(api, run)
    cited = {"passage": passage["passage"], "quote": SECOND}
    edit["sections"][0]["sentences"].append({"text": "The sun leaves it.", "citations": [cited, 1]})
    saved = await save(api, run, edit)
    added = saved["sections"][0]["sentences"][2]
    assert (added["id"], added["citations"], added["supported"]) == ("s4", [2, 1], True)
    assert [(c["quote"], c["verified"]) for c in saved["citations"]] == [(QUOTE, True), (SECOND, True)]


@pytest.mark.parametrize("citation", [7, 0, -1, {"quote": "The moon shines."}, {"quote": "x", "text_id": UUID(int=5)}])
async def test_a_citation_that_points_to_nothing_is_rejected_and_nothing_is_stored(
    api: Api, citation: int | dict[str, Any]
) -> None:
    run = await finished(api)
    (passage,) = (await api.http.get(f"/api/v1/runs/{run}/evidence")).json()["items"]
    edit = await load_edit(api, run)
    if isinstance(citation, dict):
        span = passage["passage"] | ({"text_id": str(citation["text_id"])} if "text_id" in citation else {})
        citation = {"passage": span, "quote": citation["quote"]}
    edit["answer"]["citations"] = [citation]
    problem = await save(api, run, edit, 422)
    assert problem["field"] == "answer.citations"
    assert len((await api.http.get(f"/api/v1/runs/{run}/report/versions")).json()["items"]) == 1


async def test_a_save_over_a_version_that_the_person_has_not_seen_is_a_conflict_and_can_be_sent_on_top(
    api: Api,
) -> None:
    run = await finished(api)
    mine = await load_edit(api, run) | {"title": "Mine"}
    await rename(api, run, "Theirs")
    problem = await save(api, run, mine, 409)
    assert "Version 2 of the report was saved by key:" in problem["detail"]
    assert (await api.http.get(f"/api/v1/runs/{run}/report")).json()["title"] == "Theirs"
    saved = await save(api, run, mine | {"latest_version": 2})
    assert (saved["version"], saved["title"], saved["base_version"]) == (3, "Mine", 1)


async def test_an_earlier_version_is_restored_as_a_new_one(api: Api) -> None:
    run = await finished(api)
    await rename(api, run, "Wrong")
    at = f"/api/v1/runs/{run}/report/versions"
    assert (await api.http.post(f"{at}/1/restore", json={"latest_version": 1})).status_code == 422
    assert (await api.http.post(f"{at}/9/restore", json={"latest_version": 2})).status_code == 404
    restored = await api.http.post(f"{at}/1/restore", json={"latest_version": 2, "note": "Back"})
    assert restored.status_code == 201, restored.text
    body = restored.json()
    assert (body["version"], body["base_version"], body["title"], body["note"]) == (3, 1, "Salt", "Back")
    assert (await api.http.post(f"{at}/1/restore", json={"latest_version": 2})).status_code == 409


async def test_any_two_versions_can_be_compared_by_sentence(api: Api) -> None:
    run = await finished(api)
    edit = await load_edit(api, run)
    edit["sections"][0]["sentences"][1]["text"] = "Nobody knows much more."
    await save(api, run, edit)
    changes = (await api.http.get(f"/api/v1/runs/{run}/report/changes?old=1&new=2")).json()
    (section,) = changes["sections"]
    assert section["sentences"] == [
        {"kind": "changed", "text": "Nobody knows much more.", "before": "Nobody knows more."}
    ]
    back = (await api.http.get(f"/api/v1/runs/{run}/report/changes?old=2&new=1")).json()
    assert back["sections"][0]["sentences"][0]["before"] == "Nobody knows much more."
    assert (await api.http.get(f"/api/v1/runs/{run}/report/changes?old=1&new=3")).status_code == 404


HOSTILE = "<script>alert(1)</script> [x](javascript:alert(1)) ![y](http://evil/) \x07\u202e$a$"


async def test_hostile_text_of_an_edit_stays_text_in_every_export_of_its_version(api: Api) -> None:
    run = await finished(api)
    edit = await load_edit(api, run)
    edit |= {"title": HOSTILE, "note": HOSTILE, "limitations": HOSTILE}
    edit["answer"]["text"] = HOSTILE
    edit["sections"][0] |= {"heading": HOSTILE}
    await save(api, run, edit)
    files = {
        form: (await api.http.get(f"/api/v1/runs/{run}/export?format={form}&version=2"))
        for form in ("md", "html", "json", "docx", "pdf", "bib", "ris")
    }
    assert {file.status_code for file in files.values()} == {200}
    assert "<script" not in files["html"].text
    assert 'href="javascript' not in files["html"].text
    assert "\\<script>alert(1)\\</script> \\[x\\](javascript:alert(1)) !\\[y\\](http\\://evil/)" in files["md"].text
    assert "\x07" not in files["md"].text + files["html"].text
    assert "<script>alert(1)</script>" in read_docx(files["docx"].content).text
    assert files["json"].json()["report"]["edit"]["by"].startswith("key:")
    first = (await api.http.get(f"/api/v1/runs/{run}/export?format=md&version=1")).text
    assert "script" not in first


async def test_only_an_ended_run_of_a_person_can_be_edited(api: Api) -> None:
    run = await api.submit()
    fence = await api.hands.claim(run)
    await api.hands.report(fence, await api.hands.document())
    problem = await save(api, run, await load_edit(api, run) | {"title": "Early"}, 409)
    assert "has not ended" in problem["detail"]


async def test_an_edit_without_a_change_is_rejected(api: Api) -> None:
    run = await finished(api)
    assert (await save(api, run, await load_edit(api, run), 422))["detail"].startswith("the edit changes nothing")


async def test_the_latest_version_names_the_run_and_a_follow_up_continues_it(api: Api) -> None:
    run = await finished(api)
    await rename(api, run, "Rivers and salt")
    detail = (await api.http.get(f"/api/v1/runs/{run}")).json()
    assert detail["title"] == "Rivers and salt"
    async with api.database.transaction(api.tenant) as connection:
        latest = await threads.find_latest_report(connection, UUID(detail["thread_id"]), None)
        own = await reports.find_own_report(connection, run)
    assert latest == (run, 2)
    assert own is not None
    assert own.title == "Salt"


async def test_a_rating_is_of_the_version_that_it_names(api: Api) -> None:
    run = await finished(api)
    await rename(api, run, "Rivers and salt")
    at = f"/api/v1/runs/{run}/ratings"
    rated = [(await api.http.post(at, json={"value": 1, **more})).json() for more in ({}, {"version": 1})]
    assert [one["report_version"] for one in rated] == [2, 1]
    assert (await api.http.post(at, json={"value": 1, "version": 3})).status_code == 404


async def test_the_deletion_of_a_run_deletes_its_versions(api: Api) -> None:
    run = await finished(api)
    await rename(api, run, "Rivers and salt")
    assert (await api.http.delete(f"/api/v1/runs/{run}")).status_code == 200
    async with api.database.transaction(api.tenant) as connection:
        left = await connection.execute("select count(*) from report where run_id = %s", (run,))
        assert await left.fetchone() == (0,)


async def test_the_erasure_of_a_source_reaches_every_version(api: Api) -> None:
    run = await finished(api)
    edit = await load_edit(api, run)
    edit["sections"][0]["sentences"].append({"text": f"It says: {QUOTE}", "citations": [1]})
    await save(api, run, edit)
    (source,) = (await api.http.get(f"/api/v1/runs/{run}/report")).json()["sources"]
    assert (await api.http.delete(f"/api/v1/library/sources/{source['source_id']}")).status_code == 200
    report = (await api.http.get(f"/api/v1/runs/{run}/report")).json()
    assert (report["version"], [c["text_id"] for c in report["citations"]]) == (2, [None])
    assert QUOTE not in (await api.http.get(f"/api/v1/runs/{run}/export?format=json")).text
    assert (await api.http.get(f"/api/v1/runs/{run}/evidence")).json()["items"] == []
    restored = await api.http.post(f"/api/v1/runs/{run}/report/versions/1/restore", json={"latest_version": 2})
    assert (restored.status_code, restored.json()["citations"][0]["text_id"]) == (201, None)
