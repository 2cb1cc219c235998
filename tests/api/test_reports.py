"""Reports, exports and ratings over HTTP."""

import io
from base64 import b64encode
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import docx
import psycopg
import pypdfium2
import pytest
import rispy
from fpdf import FPDF

from offing.library.docx_reader import read_docx
from tests.api.conftest import Api
from tests.api.test_run_files import keep
from tests.unit.report_files.test_images import a_png

QUOTE = "Rivers carry dissolved salt into the sea."


async def reported(api: Api) -> tuple[UUID, UUID]:
    """A run with a report that cites a source; both ids."""
    source = await api.hands.document()
    run = await api.submit()
    await api.hands.report(await api.hands.claim(run), source)
    return run, source


async def test_a_report_comes_with_every_citation_checked_just_now(api: Api, owner_url: str) -> None:
    run, source = await reported(api)
    report = (await api.http.get(f"/api/v1/runs/{run}/report")).json()
    assert (report["title"], report["status"], report["reason"], report["version"]) == (
        "Salt",
        "complete",
        "answered",
        1,
    )
    (citation,) = report["citations"]
    assert (citation["quote"], citation["verified"], citation["source_id"]) == (QUOTE, True, str(source))
    assert [s["supported"] for s in report["sections"][0]["sentences"]] == [True, False]
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute("update app.extracted_text set body = replace(body, 'dissolved', 'plentiful')")
    report = (await api.http.get(f"/api/v1/runs/{run}/report")).json()
    assert [c["verified"] for c in report["citations"]] == [False]


async def test_a_citation_opens_the_passage_that_supports_it(api: Api) -> None:
    run, _ = await reported(api)
    (citation,) = (await api.http.get(f"/api/v1/runs/{run}/report")).json()["citations"]
    span = {"text_id": citation["text_id"], "start": citation["start"], "end": citation["end"], "context_chars": 20}
    passage = (await api.http.get("/api/v1/library/passages", params=span)).json()
    assert passage["text"] == QUOTE
    assert passage["after"].startswith(" The sun takes")


async def test_a_report_lists_its_sources_with_the_positions_of_its_citations(api: Api) -> None:
    run, source = await reported(api)
    report = (await api.http.get(f"/api/v1/runs/{run}/report")).json()
    (cited,) = report["sources"]
    assert (cited["id"], cited["source_id"], cited["title"], cited["citations"]) == ("S1", str(source), "Salt", [1])
    assert cited["description"].startswith("salt.md \u00b7 added to the library ")
    (citation,) = report["citations"]
    assert (citation["source"], citation["position"]) == ("S1", "line 3")
    assert citation["position_texts"] == [{"code": "line", "parameters": {"first": "3"}}]


UNDER_HEADINGS = f"# Salt\n\nIt is old.\n\n## Rivers\n\n```sh\n# no heading\n```\n\n{QUOTE}\n"
PAGE = f"<html><body><main><h1>Salt</h1><p>It is old.</p><h2>Rivers</h2><p>{QUOTE}</p></main></body></html>"


@pytest.mark.parametrize(
    ("name", "text", "position"),
    [
        ("salt.md", UNDER_HEADINGS, "section \u201cRivers\u201d, line 11"),
        ("salt.txt", f"It is old.\n\n{QUOTE}\n", "line 3"),
        ("salt.html", PAGE, "section \u201cRivers\u201d"),
    ],
)
async def test_a_position_is_that_which_a_person_finds_in_the_file(
    api: Api, name: str, text: str, position: str
) -> None:
    source = await api.hands.document(name, text)
    run = await api.submit()
    await api.hands.report(await api.hands.claim(run), source)
    (citation,) = (await api.http.get(f"/api/v1/runs/{run}/report")).json()["citations"]
    assert citation["position"] == position


def write_pdf(author: str = "Ann Lee") -> bytes:
    """A PDF with the quote on its second page."""
    pdf = FPDF()
    pdf.set_author(author)
    pdf.set_creation_date(datetime(2021, 3, 4, tzinfo=UTC))
    pdf.set_font("helvetica", size=12)
    for text in ("Salt is old.", QUOTE):
        pdf.add_page()
        pdf.multi_cell(0, 5, text)
    return bytes(pdf.output())


HOSTILE = "Ann *Lee* \"&lt onclick'"
DATED_PAGE = PAGE.replace(
    "<html>",
    "<html><head><meta name=author content='Bo Chen'><meta property=article:published_time content=2024-03-05></head>",
)


@pytest.mark.parametrize(
    ("name", "data", "words", "position"),
    [
        ("salt.pdf", write_pdf(), "by Ann Lee \u00b7 salt.pdf \u00b7 dated 4 March 2021", "page 2"),
        ("salt.html", DATED_PAGE, "by Bo Chen \u00b7 salt.html \u00b7 dated 5 March 2024", "section"),
    ],
)
async def test_author_date_and_page_of_a_document_are_in_the_report_and_in_every_export(
    api: Api, name: str, data: str | bytes, words: str, position: str
) -> None:
    source = await api.hands.document(name, data)
    run = await api.submit()
    await api.hands.report(await api.hands.claim(run), source)
    report = (await api.http.get(f"/api/v1/runs/{run}/report")).json()
    (cited,), (citation,) = report["sources"], report["citations"]
    assert cited["author"] in words
    assert cited["description"].startswith(words)
    assert citation["position"].startswith(position)
    for form in ("md", "html"):
        text = (await api.http.get(f"/api/v1/runs/{run}/export?format={form}")).text
        assert words in text, form
        assert f"[1] {position}" in text, form
    exported = (await api.http.get(f"/api/v1/runs/{run}/export?format=json")).json()["report"]
    assert (exported["sources"][0]["author"], exported["sources"][0]["published"]) == (
        cited["author"],
        cited["published"],
    )
    assert exported["citations"][0]["position"].startswith(position)


async def export_texts(api: Api, run: UUID) -> dict[str, str]:
    """The text of each file that people read, by its format."""
    bodies = {
        form: (await api.http.get(f"/api/v1/runs/{run}/export?format={form}")).content
        for form in ("md", "html", "docx", "pdf")
    }
    pages = [page.get_textpage().get_text_range() for page in pypdfium2.PdfDocument(bodies["pdf"])]
    return {
        "md": bodies["md"].decode(),
        "html": bodies["html"].decode(),
        "docx": "\n".join(one.text for one in docx.Document(io.BytesIO(bodies["docx"])).paragraphs),
        "pdf": "\n".join(pages),
    }


@pytest.mark.parametrize(
    ("style", "words", "others"),
    [
        ({"language": "zh"}, "完整报告。", "Complete report."),
        ({"language": "de"}, "Complete report.", "完整报告。"),
        (None, "Complete report.", "完整报告。"),
    ],
)
async def test_the_files_of_a_report_have_headings_in_the_language_that_was_asked_for(
    api: Api, style: dict[str, str] | None, words: str, others: str
) -> None:
    run = await api.submit(report_style=style)
    await api.hands.report(await api.hands.claim(run), await api.hands.document())
    heading = "来源" if style == {"language": "zh"} else "Sources"
    for form, text in (await export_texts(api, run)).items():
        assert words in text, form
        assert heading in text, form
        assert others not in text, form


async def test_a_hostile_author_stays_text_in_every_export(api: Api) -> None:
    source = await api.hands.document("salt.pdf", write_pdf(HOSTILE))
    run = await api.submit()
    await api.hands.report(await api.hands.claim(run), source)
    (cited,) = (await api.http.get(f"/api/v1/runs/{run}/report")).json()["sources"]
    assert cited["author"] == HOSTILE
    page, text = [(await api.http.get(f"/api/v1/runs/{run}/export?format={form}")).text for form in ("html", "md")]
    assert "by Ann *Lee* &quot;&amp;lt" in page
    assert 'by Ann \\*Lee\\* "\\&lt' in text


@pytest.mark.parametrize("form", ["md", "html"])
async def test_an_export_for_readers_names_no_ids(api: Api, form: str) -> None:
    run, source = await reported(api)
    text = (await api.http.get(f"/api/v1/runs/{run}/export?format={form}")).text
    assert "line 3" in text
    assert str(source) not in text


async def test_the_citation_of_an_erased_source_says_so(api: Api) -> None:
    run, source = await reported(api)
    await api.http.post(f"/api/v1/runs/{run}/cancel")
    async with api.database.transaction(api.tenant) as connection:
        await connection.execute("update run set status = 'done' where id = %s", (run,))
    erased = await api.http.delete(f"/api/v1/library/sources/{source}")
    assert (erased.status_code, erased.json()["sources"]) == (200, 1), erased.text
    (citation,) = (await api.http.get(f"/api/v1/runs/{run}/report")).json()["citations"]
    assert (citation["text_id"], citation["verified"]) == (None, False)
    assert citation["position"] == "The source was deleted from the library."
    assert QUOTE not in (await api.http.get(f"/api/v1/runs/{run}/export?format=json")).text


async def test_while_there_is_no_report_the_answer_says_so(api: Api) -> None:
    run = await api.submit()
    for path in ("report", "export"):
        response = await api.http.get(f"/api/v1/runs/{run}/{path}")
        assert (response.status_code, response.json()["type"]) == (404, "urn:offing:problem:not_found")
    assert (await api.http.post(f"/api/v1/runs/{run}/ratings", json={"value": 1})).status_code == 404
    assert (await api.http.get(f"/api/v1/runs/{run}/ratings")).json() == []


DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


@pytest.mark.parametrize(
    ("form", "media"),
    [
        ("md", "text/markdown; charset=utf-8"),
        ("html", "text/html; charset=utf-8"),
        ("json", "application/json"),
        ("docx", DOCX),
        ("pdf", "application/pdf"),
        ("bib", "application/x-bibtex; charset=utf-8"),
        ("ris", "application/x-research-info-systems; charset=utf-8"),
    ],
)
async def test_an_export_is_a_file_with_its_media_type_and_its_names(api: Api, form: str, media: str) -> None:
    run, _ = await reported(api)
    response = await api.http.get(f"/api/v1/runs/{run}/export", params={"format": form})
    assert response.headers["content-type"] == media
    assert response.headers["x-content-type-options"] == "nosniff"
    disposition = f"attachment; filename=\"offing-{run}-v1.{form}\"; filename*=UTF-8''Salt.{form}"
    assert response.headers["content-disposition"] == disposition
    assert (await api.http.get(f"/api/v1/runs/{run}/export?version=2")).status_code == 404


@pytest.mark.parametrize("form", ["md", "html", "json"])
async def test_an_export_as_text_has_its_evidence(api: Api, form: str) -> None:
    run, _ = await reported(api)
    assert QUOTE in (await api.http.get(f"/api/v1/runs/{run}/export", params={"format": form})).text


async def test_an_exported_document_has_its_evidence(api: Api) -> None:
    run, _ = await reported(api)
    word = (await api.http.get(f"/api/v1/runs/{run}/export?format=docx")).content
    assert QUOTE in read_docx(word).text
    pdf: Any = pypdfium2.PdfDocument((await api.http.get(f"/api/v1/runs/{run}/export?format=pdf")).content)
    assert QUOTE in " ".join(pdf[0].get_textpage().get_text_range().split())


async def test_images_that_code_has_drawn_are_in_documents_and_pages_in_their_latest_version(api: Api) -> None:
    run, _ = await reported(api)
    for width in (30, 40):
        await keep(api, run, "growth.png", a_png(width), "image/png")
    await keep(api, run, "sketch.svg", b"<svg/>", "image/svg+xml")
    await keep(api, run, "table.txt", b"1,2", "text/plain")
    page = (await api.http.get(f"/api/v1/runs/{run}/export?format=html")).text
    assert page.count("<img ") == 1
    assert b64encode(a_png(40)).decode() in page
    assert "not in this file, because of size or format: sketch.svg." in page
    word: Any = docx.Document(io.BytesIO((await api.http.get(f"/api/v1/runs/{run}/export?format=docx")).content))
    assert len(word.inline_shapes) == 1


async def test_the_cited_sources_of_a_report_can_be_read_by_reference_managers(api: Api) -> None:
    run, _ = await reported(api)
    bib = (await api.http.get(f"/api/v1/runs/{run}/export?format=bib")).text
    ris = (await api.http.get(f"/api/v1/runs/{run}/export?format=ris")).text
    assert "title = {{Salt}}" in bib
    records: Any = rispy
    (record,) = records.loads(ris)
    assert (record["title"], record["id"]) == ("Salt", bib.partition("@misc{")[2].partition(",")[0])


async def test_a_title_in_any_script_is_the_name_of_the_file_and_cannot_leave_the_header(
    api: Api, owner_url: str
) -> None:
    run, _ = await reported(api)
    title = '\u76d0 "x"; filename=evil/../a\r\nX-Evil: 1'
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute("update app.report set body = jsonb_set(body, '{title}', to_jsonb(%s::text))", (title,))
    response = await api.http.get(f"/api/v1/runs/{run}/export?format=ris")
    assert "x-evil" not in response.headers
    assert response.headers["content-disposition"] == (
        f'attachment; filename="offing-{run}-v1.ris"; '
        "filename*=UTF-8''%E7%9B%90%20x%20%3B%20filename%3Devil%20..%20a%20X-Evil%201.ris"
    )


async def test_an_unknown_format_is_refused_by_name(api: Api) -> None:
    run, _ = await reported(api)
    assert (await api.http.get(f"/api/v1/runs/{run}/export?format=odt")).json()["field"] == "format"


async def test_a_format_that_is_not_installed_says_how_to_install_it(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = await reported(api)
    monkeypatch.setattr("offing.report_files.writers.PDF_MODULES", ("no_such_module",))
    response = await api.http.get(f"/api/v1/runs/{run}/export?format=pdf")
    assert (response.status_code, response.json()["field"]) == (422, "format")
    assert "pip install 'offing[pdf]'" in response.text


async def test_a_new_rating_supersedes_the_one_before_and_both_are_kept(api: Api) -> None:
    run, _ = await reported(api)
    at = f"/api/v1/runs/{run}/ratings"
    first = await api.http.post(at, json={"value": 1})
    assert first.status_code == 201
    second = (await api.http.post(at, json={"value": -0.5, "correction": " Lakes as well. "})).json()
    claim = (await api.http.post(at, json={"sentence_id": "s3", "correction": "Somebody does."})).json()
    assert (first.json()["version"], second["version"], claim["version"]) == (1, 2, 1)
    assert (second["value"], second["correction"], second["sentence_id"]) == (-0.5, "Lakes as well.", None)
    assert (claim["value"], claim["sentence_id"], claim["report_version"]) == (None, "s3", 1)
    assert claim["scorer"].startswith("person:key:")
    stored = (await api.http.get(at)).json()
    assert [(r["sentence_id"], r["version"]) for r in stored] == [("s3", 1), (None, 2), (None, 1)]


async def test_an_empty_rating_or_an_unknown_sentence_is_rejected_by_name(api: Api) -> None:
    run, _ = await reported(api)
    for body, field in (
        ({}, "value"),
        ({"correction": "  "}, "value"),
        ({"sentence_id": "s9", "value": 1}, "sentence_id"),
        ({"value": 2}, "value"),
    ):
        response = await api.http.post(f"/api/v1/runs/{run}/ratings", json=body)
        assert (response.status_code, response.json()["field"]) == (422, field), body
