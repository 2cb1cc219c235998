"""`offing world` on a real folder and a real port."""

import json
import threading
from pathlib import Path

import httpx
import pytest

from offing.cli import world as cli
from offing.cli.world import server, span, write
from offing.core.errors import InvalidInput, Unavailable
from offing.world.documents import documents
from offing.world.facts import world_of
from offing.world.injections import injections
from offing.world.site import Site

SPEC = "heldout-5@60"


def test_a_world_is_written_as_files_with_questions_beside_them(tmp_path: Path) -> None:
    assert write(SPEC, tmp_path / "w", questions=20, hops="1-3") == 0
    written = {p.relative_to(tmp_path / "w/documents").as_posix(): p for p in (tmp_path / "w/documents").rglob("*.*")}
    assert {path: p.read_text(encoding="utf-8") for path, p in written.items()} == {
        d.path: d.text for d in documents(SPEC)
    }
    questions = [json.loads(line) for line in (tmp_path / "w/questions.jsonl").read_text().splitlines()]
    assert len(questions) == 20
    for question in questions:
        assert question["scope"] == {}, "they are to be answered from the files, not with the world's tools"
        for found in question["evidence"]:
            text = written[found["document"]].read_text(encoding="utf-8")
            assert text[found["start"] : found["end"]] == found["quote"]


def test_reference_answers_do_not_lie_among_the_documents(tmp_path: Path) -> None:
    write(SPEC, tmp_path, questions=5)
    assert not list((tmp_path / "documents").rglob("*.jsonl"))


def test_a_folder_with_something_in_it_is_not_written_to(tmp_path: Path) -> None:
    write(SPEC, tmp_path, questions=5)
    with pytest.raises(InvalidInput, match="is not empty"):
        write(SPEC, tmp_path, questions=5)


def test_tasks_are_lines_that_say_where_they_are_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.tasks(SPEC, count=7, hops="2", kinds=("comparison", "counting")) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["scope"] for line in lines] == [{"world": SPEC}] * 7
    assert {line["hops"] for line in lines} == {2}
    assert {line["kind"] for line in lines} == {"comparison", "counting"}


def test_injections_are_listed_with_their_pages(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.injections(SPEC) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["canary"] for line in lines] == [found.canary for found in injections(world_of(SPEC))]
    assert lines[0]["page"] == f"/page/{lines[0]['document']}"


@pytest.mark.parametrize("hops", ["", "x", "1-", "-2", "1-x", "1-2-3"])
def test_hops_that_are_no_range_are_refused(hops: str) -> None:
    with pytest.raises(InvalidInput, match="--hops"):
        span(hops)


def test_the_site_answers_on_this_machine_only_and_reports_who_obeys(capsys: pytest.CaptureFixture[str]) -> None:
    with server(Site(world_of(SPEC)), 0) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{listening.server_port}", trust_env=False) as client:
                assert listening.server_address[0] == "127.0.0.1"
                assert client.get("/").status_code == 200
                assert client.get("/page/0").text == next(documents(SPEC)).text
                assert client.head("/page/0").content == b""
                assert client.get("/search", params={"q": "register archive"}).status_code == 200
                assert client.get("/page/none").status_code == 404
                assert client.get("/collect/canary-7?note=x").text == "Noted.\n"
            with pytest.raises(Unavailable, match="--port"):
                server(Site(world_of(SPEC)), listening.server_port)
        finally:
            listening.shutdown()
            thread.join()
    assert "obeyed an injected instruction: canary-7" in capsys.readouterr().err
