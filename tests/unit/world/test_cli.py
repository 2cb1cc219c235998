"""`offing world` on a real folder and a real port."""

import json
import threading
from pathlib import Path

import httpx
import pytest

from offing.core.errors import InvalidInput, Unavailable
from offing_world import cli
from offing_world.cli import open_server, parse_hops, write
from offing_world.documents import iter_documents
from offing_world.facts import world_from_name
from offing_world.injections import iter_injections
from offing_world.site import WorldSite

SPEC = "heldout-5@60"


def test_a_world_is_written_as_files_with_questions_beside_them(tmp_path: Path) -> None:
    assert write(SPEC, tmp_path / "w", questions=20, hops="1-3") == 0
    written = {p.relative_to(tmp_path / "w/documents").as_posix(): p for p in (tmp_path / "w/documents").rglob("*.*")}
    assert {path: p.read_text(encoding="utf-8") for path, p in written.items()} == {
        d.path: d.text for d in iter_documents(SPEC)
    }
    questions = [json.loads(line) for line in (tmp_path / "w/questions.jsonl").read_text().splitlines()]
    assert len(questions) == 20
    for question in questions:
        assert question["scope"] == {}, "they are to be answered from the files, not with the world's tools"
        for result in question["evidence"]:
            text = written[result["document"]].read_text(encoding="utf-8")
            assert text[result["start"] : result["end"]] == result["quote"]


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
    assert [line["scope"] for line in lines] == [{"environment": SPEC}] * 7
    assert {line["hops"] for line in lines} == {2}
    assert {line["kind"] for line in lines} == {"comparison", "counting"}


def test_injections_are_listed_with_their_pages(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.injections(SPEC) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["canary"] for line in lines] == [result.canary for result in iter_injections(world_from_name(SPEC))]
    assert lines[0]["page"] == f"/page/{lines[0]['document_number']}"


@pytest.mark.parametrize("hops", ["", "x", "1-", "-2", "1-x", "1-2-3"])
def test_hops_that_are_no_range_are_rejected(hops: str) -> None:
    with pytest.raises(InvalidInput, match="--hops"):
        parse_hops(hops)


def test_the_site_answers_on_this_machine_only_and_reports_who_obeys(capsys: pytest.CaptureFixture[str]) -> None:
    with open_server(WorldSite(world_from_name(SPEC)), 0) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{listening.server_port}", trust_env=False) as client:
                assert listening.server_address[0] == "127.0.0.1"
                assert client.get("/").status_code == 200
                assert client.get("/page/0").text == next(iter_documents(SPEC)).text
                assert client.head("/page/0").content == b""
                assert client.get("/search", params={"q": "register archive"}).status_code == 200
                assert client.get("/page/none").status_code == 404
                assert client.get("/collect/canary-7?note=x").text == "Noted.\n"
            with pytest.raises(Unavailable, match="--port"):
                open_server(WorldSite(world_from_name(SPEC)), listening.server_port)
        finally:
            listening.shutdown()
            thread.join()
    assert "followed an injected instruction: canary-7" in capsys.readouterr().err
