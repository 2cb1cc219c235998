"""A folder that cannot be used blocks nothing else, and what is wrong with it is said where its graphs are named."""

from pathlib import Path

import pytest

from offing.cli.stack import up
from offing.core.errors import InvalidInput
from offing.models.engine import ENGINES
from offing.sdk import Graph
from offing.services.graphs import GraphRegistry, find_graph_version, get_graph, register_folders
from offing.settings import Settings
from tests.unit.services.test_graph_folders import Clock, written

BROKEN = {
    "syntax": ("harbour/words.py", "word = \n"),
    "import": ("harbour/words.py", "import a_package_that_nobody_has\n"),
    "exit": ("harbour/words.py", "raise SystemExit(3)\n"),
    "tool": ("harbour/words.py", "word = 'x'\nfrom offing.sdk import Graph\nraise ValueError('no')\n"),
    "project": ("pyproject.toml", "[project"),
}


def lamp(folder: Path, word: str = "lit") -> Path:
    """Another folder with a graph, named lamp."""
    (folder / "lamp").mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text('[project.entry-points."offing.graphs"]\nlamp = "lamp:graph"\n')
    (folder / "lamp/__init__.py").write_text(
        f"from offing.sdk import Graph\ngraph = Graph('lamp', {word!r}, '', 'any', lambda: None, lambda _: {{}}, ())\n"
    )
    return folder


def both(tmp_path: Path, *, reloads: bool = False, messages: list[str] | None = None, installed: Graph | None = None):
    paths = f"{tmp_path / 'a'}:{tmp_path / 'b'}"
    inputs = [installed] if installed else []
    tell = None if messages is None else messages.append
    return GraphRegistry(
        inputs, paths=paths, data_dir=tmp_path / "home", reload=reloads, clock=Clock(), on_problem=tell
    )


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_folder_leaves_the_others_and_is_told_where_its_graph_is_named(tmp_path: Path, what: str) -> None:
    position, text = BROKEN[what]
    (written(tmp_path / "a") / position).write_text(text)
    lamp(tmp_path / "b")
    graphs = both(tmp_path)
    assert set(graphs) == {"lamp"}
    assert get_graph(graphs, "lamp").title == "lit"
    with pytest.raises(InvalidInput) as error:
        get_graph(graphs, "harbour")
    assert error.value.field == "graph"
    assert str(tmp_path / "a") in error.value.problem
    assert str(tmp_path / "a") in graphs.problem


def test_a_folder_that_is_not_there_leaves_the_others(tmp_path: Path) -> None:
    lamp(tmp_path / "b")
    graphs = both(tmp_path)
    assert set(graphs) == {"lamp"}
    with pytest.raises(InvalidInput, match=f"{tmp_path / 'a'} is neither a folder nor a file"):
        get_graph(graphs, "harbour")


def test_a_name_that_nobody_has_is_told_without_what_is_wrong_elsewhere(tmp_path: Path) -> None:
    (written(tmp_path / "a") / "harbour/words.py").write_text("word = \n")
    lamp(tmp_path / "b")
    with pytest.raises(InvalidInput) as error:
        get_graph(both(tmp_path), "harbor")
    assert error.value.problem == "There is no graph 'harbor'"


def test_one_broken_project_among_those_of_a_folder_leaves_the_others(tmp_path: Path) -> None:
    (written(tmp_path / "all/harbour") / "pyproject.toml").write_text("[project")
    lamp(tmp_path / "all/lamp")
    graphs = GraphRegistry(paths=str(tmp_path / "all"), data_dir=tmp_path / "home")
    assert set(graphs) == {"lamp"}
    assert str(tmp_path / "all/harbour/pyproject.toml") in graphs.problem


def test_an_installed_graph_does_not_stand_in_for_a_broken_folder_s_of_the_same_name(tmp_path: Path) -> None:
    (written(tmp_path / "a") / "harbour/words.py").write_text("word = \n")
    lamp(tmp_path / "b")
    graphs = both(tmp_path, installed=Graph("harbour", "installed", "", "1", lambda: None, lambda _: {}, ()))
    with pytest.raises(InvalidInput, match="'harbour' cannot be used"):
        get_graph(graphs, "harbour")


def test_a_name_that_two_folders_have_is_neither_s_and_the_rest_of_both_is_there(tmp_path: Path) -> None:
    written(tmp_path / "a")
    written(tmp_path / "b")
    graphs = both(tmp_path)
    with pytest.raises(InvalidInput, match="Two folders have a graph named 'harbour'"):
        get_graph(graphs, "harbour")
    lamp(tmp_path / "b")
    assert set(both(tmp_path)) == {"harbour", "lamp"}


def test_each_fault_is_told_once_and_a_folder_is_loaded_anew_beside_a_broken_one(tmp_path: Path) -> None:
    messages: list[str] = []
    (written(tmp_path / "a") / "harbour/words.py").write_text("word = \n")
    lamp(tmp_path / "b")
    graphs = both(tmp_path, reloads=True, messages=messages)
    assert graphs["lamp"].title == "lit"
    lamp(tmp_path / "b", "lit again")
    assert graphs["lamp"].title == "lit again"
    assert [str(tmp_path / "a/harbour/words.py:1") in line for line in messages] == [True]
    written(tmp_path / "a", "fixed")
    assert (graphs["harbour"].title, graphs.problem) == ("fixed", "")


def test_a_name_that_becomes_ambiguous_stays_as_it_was_while_folders_are_reloaded(tmp_path: Path) -> None:
    lamp(tmp_path / "a")
    written(tmp_path / "b")
    graphs = both(tmp_path, reloads=True)
    assert graphs["lamp"].title == "lit"
    lamp(tmp_path / "b", "another")
    assert graphs["lamp"].title == "lit"
    assert "Two folders have a graph named 'lamp'" in graphs.problem


def test_a_broken_folder_s_earlier_version_continues(tmp_path: Path) -> None:
    written(tmp_path / "a")
    lamp(tmp_path / "b")
    version = both(tmp_path)["harbour"].version
    (tmp_path / "a/harbour/words.py").write_text("word = \n")
    graph_version = find_graph_version(both(tmp_path), "harbour", version)
    assert graph_version is not None
    assert graph_version.title == "first"


def test_what_else_folders_offer_is_had_beside_a_broken_one(tmp_path: Path) -> None:
    (written(tmp_path / "a") / "pyproject.toml").write_text("[project")
    (lamp(tmp_path / "b") / "pyproject.toml").write_text('[project.entry-points."offing.engines"]\nlamp = "lamp:len"\n')
    register_folders(Settings(home=tmp_path / "home", graph_paths=f"{tmp_path / 'a'}:{tmp_path / 'b'}"))
    assert "lamp" in ENGINES


def test_nothing_is_started_where_every_named_folder_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFING_HOME", str(tmp_path / "home"))
    (written(tmp_path / "a") / "harbour/words.py").write_text("word = \n")
    with pytest.raises(InvalidInput, match="SyntaxError"):
        up(detach=True, paths=(tmp_path / "a",))
