"""`offing` from a terminal and from a script."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from offing.cli.new import render_template
from tests.e2e.conftest import PATIENCE, Offing, running_stack
from tests.graphs.langgraph_only import store

pytestmark = pytest.mark.timeout(5 * PATIENCE)


@pytest.fixture(scope="module")
def up(offing: Offing, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Offing]:
    """`offing …` in a home whose stack is up, so that no command starts servers of its own."""
    with running_stack(offing, tmp_path_factory.mktemp("up")) as run:
        yield run


def test_ask_answers_from_a_folder_and_every_citation_stands_in_its_document(offing: Offing, documents: Path) -> None:
    done = offing("ask", "Who built the third Eddystone tower?", "--docs", str(documents), "--json")
    assert done.code == 0, done.err
    result = done.json
    texts = {path.name: path.read_text() for path in documents.iterdir()}
    assert result["status"] == "done"
    assert "Smeaton" in result["report"]
    assert result["citations"]
    for citation in result["citations"]:
        assert any(citation["quote"] in text for text in texts.values()), citation
    assert [step["seq"] for step in result["steps"]] == list(range(1, len(result["steps"]) + 1))


def test_a_second_question_does_not_index_the_folder_again(offing: Offing, documents: Path) -> None:
    offing("ask", "When was Bell Rock built?", "--docs", str(documents), "--json")
    done = offing("ask", "When was Bell Rock built?", "--docs", str(documents))
    assert done.code == 0
    assert "3 unchanged" in done.err
    assert "1807" in done.out


def test_a_question_that_no_document_answers_ends_honestly(up: Offing, documents: Path) -> None:
    done = up("ask", "Which enzyme folds insulin?", "--docs", str(documents), "--json")
    assert done.code == 0, done.err
    assert done.json["stop_reason"] != "answered"
    assert done.json["report"]


def test_runs_show_and_export_read_what_was_stored(up: Offing, documents: Path) -> None:
    submitted = up("ask", "When was the Fresnel lens shown?", "--docs", str(documents), "--json").json
    listed = up("runs", "--json").json
    rendered = up("show", submitted["run_id"][-8:], "--json").json
    exported = up("export", submitted["run_id"], "--format", "html")
    assert submitted["run_id"] in [run["run_id"] for run in listed]
    assert rendered["report"] == submitted["report"]
    assert exported.out.lstrip().startswith("<!doctype html>")
    assert "1822" in exported.out


def test_a_report_has_headings_in_the_language_that_was_asked_for(up: Offing, documents: Path) -> None:
    question = ("ask", "When was the Fresnel lens shown?", "--docs", str(documents), "--language", "zh")
    submitted = up(*question, "--json").json
    exported = up("export", submitted["run_id"], "--format", "html")
    assert "\n## 来源\n" in submitted["report"]
    assert "<h2>来源</h2>" in exported.out


def test_a_run_is_forked_from_one_of_its_steps_and_what_it_had_is_not_done_again(up: Offing, documents: Path) -> None:
    submitted = up("ask", "When was the Fresnel lens shown?", "--docs", str(documents), "--json").json
    at = next(step["seq"] for step in submitted["steps"] if step["kind"] == "tool_result")
    done = up("fork", submitted["run_id"][-8:], "--at", str(at), "--max-turns", "3", "--json")
    assert done.code == 0, done.err
    assert done.json["steps"][:at] == submitted["steps"][:at]
    assert done.json["steps"][at]["title"] == f"Forked from step {at} of another run"
    assert done.json["thread_id"] != submitted["thread_id"]
    assert "1822" in done.json["report"]
    nowhere = up("fork", submitted["run_id"], "--at", "9999")
    assert nowhere.code == 2
    assert f"Use a step from 1 to {len(submitted['steps']) - 1}" in nowhere.err


def test_a_run_is_organized_found_and_deleted(up: Offing, documents: Path) -> None:
    run = up("ask", "When was Bell Rock built?", "--docs", str(documents), "--json").json["run_id"]
    named = up("organize", run[-8:], "--title", "Lundy", "--tag", "north sea", "--tag", "rocks", "--pin", "--json")
    assert named.code == 0, named.err
    assert (named.json["title"], named.json["tags"]) == ("Lundy", ["north sea", "rocks"])
    assert up("organize", run, "--untag", "rocks").out.split() == [run[-8:], "pinned", "Lundy", "#north", "sea"]
    assert [one["run_id"] for one in up("runs", "--tag", "north sea", "--pinned", "--json").json] == [run]
    (hit,) = up("runs", "--search", "lundy 1807", "--json").json
    assert (hit["run_id"], hit["match"]["location"]) == (run, "title")
    assert "1807" in up("runs", "--search", "1807").out
    up("organize", run, "--archive")
    assert run not in [one["run_id"] for one in up("runs", "--json").json]
    assert run in [one["run_id"] for one in up("runs", "--archived", "--json").json]
    unconfirmed = up("delete", run[-8:])
    assert (unconfirmed.code, "--yes" in unconfirmed.err) == (2, True)
    deleted = up("delete", run[-8:], "--yes")
    assert (deleted.code, deleted.out.strip()) == (0, f"Deleted run {run}.")
    assert up("show", run).code == 1
    assert run not in [one["run_id"] for one in up("runs", "--search", "lundy", "--all", "--json").json]


def test_what_a_graph_keeps_in_the_store_is_listed_shown_and_deleted(offing: Offing) -> None:
    submitted = offing("ask", "tea", "--graph", "native", "--path", str(store.__file__), "--json")
    assert submitted.code == 0, submitted.err
    assert offing("store", "list", "shared").out.startswith("shared tea  ")
    assert offing("store", "show", "shared", "tea").json["value"] == {}
    assert offing("store", "delete", "shared", "tea").code == 0
    deleted = offing("store", "show", "shared", "tea")
    assert (deleted.code, deleted.err.strip()) == (1, "offing: There is no item shared tea.")


def test_any_command_may_be_the_first_one(offing: Offing, tmp_path: Path) -> None:
    done = offing("policy", "list", "--json", home=tmp_path / "new")
    assert (done.code, done.json) == (0, []), done.err


def test_bad_input_names_the_field_and_the_remedy(up: Offing, documents: Path) -> None:
    nowhere = up("ask", "Why?", "--docs", "/nowhere/at/all")
    no_role = up("ask", "Why?", "--docs", str(documents), "--engine", "captain=extractive")
    no_run = up("show", "ffffffffffff")
    assert (nowhere.code, no_role.code, no_run.code) == (2, 2, 1)
    assert "--docs" in nowhere.err
    assert "engines.captain" in no_role.err
    assert "Traceback" not in nowhere.err + no_role.err + no_run.err


def test_rollouts_are_collected_of_a_graph_that_lies_in_a_folder(offing: Offing, tmp_path: Path) -> None:
    for position, text in render_template("harbour", "full").items():
        (tmp_path / "harbour" / position).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "harbour" / position).write_text(text)
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text(json.dumps({"question": "Who built the third Eddystone tower?", "answers": ["Smeaton"]}))
    words = ("rollouts", "collect", "--tasks", str(tasks), "--graph", "harbour", "--group-size", "2", "--wait")
    done = offing(*words, "--json", "--path", str(tmp_path / "harbour"))
    assert done.code == 0, done.err
    assert (done.json["graph"], done.json["progress"]["finalized"], done.json["progress"]["failed"]) == (
        "harbour",
        2,
        0,
    )
    assert "There is no graph 'harbour'" in offing(*words).err
