"""Single Python files as graphs, and folders whose packages import one another."""

from pathlib import Path

import pytest

from offing.core.errors import InvalidInput
from offing.sdk import Graph
from offing.services.graphs import GraphRegistry, find_graph_version, get_graph
from tests.unit.services.test_graph_folders import PROJECT, load_registry, written

FILE = """
from offing.sdk import Graph

graph = Graph("guide", "first", "", "any", lambda: None, lambda _: {}, ())
"""
SIBLINGS = """
from offing.sdk import Graph
from shore.names import title
import words

def later():
    from shore import late
    return late.word

graph = Graph("harbour", title + words.ending, "", "any", later, lambda _: {}, ())
"""

TOOL = """
from offing.sdk import tool

@tool()
def nothing(args):
    "Does nothing."
"""


def with_siblings(folder: Path) -> Path:
    """A project with a package, which imports another package of the folder and a module beside it."""
    for package in ("harbour", "shore"):
        (folder / package).mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "harbour/__init__.py").write_text(SIBLINGS)
    (folder / "shore/__init__.py").write_text("")
    (folder / "shore/names.py").write_text("title = 'shore'\n")
    (folder / "shore/late.py").write_text("from beacon import word\n")
    (folder / "beacon.py").write_text("word = 'lit'\n")
    (folder / "words.py").write_text("ending = '!'\n")
    (folder / "unused.py").write_text("raise RuntimeError\n")
    return folder


def test_a_file_is_a_graph_at_the_hash_of_the_file(tmp_path: Path) -> None:
    file, home = tmp_path / "guide_graph.py", tmp_path / "home"
    file.write_text(FILE)
    old = load_registry(file, home)["guide"]
    (tmp_path / "beside.py").write_text("raise RuntimeError\n")
    assert load_registry(file, home)["guide"].version == old.version
    file.write_text(FILE.replace("first", "second"))
    graphs = load_registry(file, home, reloads=True)
    assert (graphs["guide"].title, old.title) == ("second", "first")
    assert graphs["guide"].version != old.version
    graph_version = find_graph_version(graphs, "guide", old.version)
    assert graph_version is not None
    assert graph_version.title == "first"
    file.write_text(FILE.replace("first", "third"))
    assert graphs["guide"].title == "third"


def test_a_file_has_all_graphs_that_are_its_own_values(tmp_path: Path) -> None:
    file = tmp_path / "two.py"
    other = "other = graph_again = Graph('other', '', '', 'any', lambda: None, lambda _: {}, ())\n"
    file.write_text(f"{FILE}\n{other}\nfrom offing_graphs.agentflow import graph as base\n")
    from offing_graphs.agentflow import graph as base

    graphs = GraphRegistry([base], paths=str(file), data_dir=tmp_path / "home")
    assert graphs.folder_graph_names == {"guide", "other"}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("guide.py", "graph = 3\n", "has no graph"),
        (
            "guide.py",
            "from langgraph.graph import StateGraph\ngraph = StateGraph(dict)\n",
            "Register one:",
        ),
        ("guide.py", FILE + FILE.replace("graph =", "again ="), "two graphs with the same name"),
        ("guide.py", "import nowhere_to_be_found\n", "No module named 'nowhere_to_be_found'. Install"),
        ("guide.py", "graph = \n", "guide.py:2: SyntaxError"),
        ("a.b.py", FILE, "nor an importable Python file"),
        ("guide.txt", FILE, "nor an importable Python file"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(tmp_path: Path, name: str, text: str, message: str) -> None:
    file = tmp_path / name
    file.write_text("\n" + text)
    graphs = load_registry(file, tmp_path / "home")
    assert message in graphs.problem
    assert str(file) in graphs.problem
    with pytest.raises(InvalidInput, match=name):
        get_graph(graphs, "guide")


def test_packages_and_modules_beside_a_package_are_loaded_with_it(tmp_path: Path) -> None:
    graph = load_registry(with_siblings(tmp_path / "a"), tmp_path / "home")["harbour"]
    assert (graph.title, graph.build()) == ("shore!", "lit")


def test_what_is_imported_from_the_folder_is_part_of_the_version_and_what_is_not_is_none(tmp_path: Path) -> None:
    folder, home = with_siblings(tmp_path / "a"), tmp_path / "home"
    first = load_registry(folder, home)["harbour"]
    (folder / "unused.py").write_text("raise ValueError\n")
    assert load_registry(folder, home)["harbour"].version == first.version
    (folder / "beacon.py").write_text("word = 'dark'\n")
    second = load_registry(folder, home)["harbour"]
    assert (first.build(), second.build()) == ("lit", "dark")
    graph_version = find_graph_version(load_registry(folder, home), "harbour", first.version)
    assert graph_version is not None
    assert graph_version.build() == "lit"
    assert not (home / "graphs" / first.version / "unused.py").exists()


def test_a_file_may_import_what_stands_beside_it(tmp_path: Path) -> None:
    (tmp_path / "words.py").write_text("title = 'beside'\n")
    (tmp_path / "guide.py").write_text("from words import title\n" + FILE.replace('"first"', "title"))
    assert load_registry(tmp_path / "guide.py", tmp_path / "home")["guide"].title == "beside"


def test_a_project_in_a_src_folder_and_one_of_a_module_alone_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    (folder / "src").mkdir(parents=True)
    (folder / "pyproject.toml").write_text('[project.entry-points."offing.graphs"]\nguide = "guide:graph"\n')
    (folder / "src/guide.py").write_text(FILE)
    assert load_registry(folder, tmp_path / "home")["guide"].title == "first"


def test_a_sibling_without_an_init_file_is_told_with_the_remedy(tmp_path: Path) -> None:
    folder = with_siblings(tmp_path / "a")
    (folder / "shore/__init__.py").unlink()
    assert "Add shore/__init__.py, so that the folder is a package." in load_registry(folder, tmp_path / "home").problem


def test_an_import_s_failure_names_modules_as_their_author_does(tmp_path: Path) -> None:
    folder = written(tmp_path / "a")
    (folder / "harbour/words.py").write_text("from harbour.nowhere import word\n")
    problem = load_registry(folder, tmp_path / "home").problem
    assert "No module named 'harbour.nowhere'" in problem
    (folder / "harbour/words.py").write_text("from harbour import nothing\n")
    problem = load_registry(folder, tmp_path / "home").problem
    assert "cannot import name 'nothing' from partially initialized module 'harbour'" in problem
    assert "offing_loaded" not in problem
    assert str(tmp_path / "home") not in problem


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("harbour/words.py", "import names\n", "No module named 'names'. Import harbour.names instead."),
        ("pyproject.toml", PROJECT.replace("harbour:graph", "harbour:grph"), "has no grph, which harbour:grph"),
        ("harbour/__init__.py", "from langgraph.graph import StateGraph\ngraph = StateGraph(dict)\n", "Register one:"),
        ("harbour/words.py", TOOL, "words.py:4: nothing: a tool must be an async function. Write `async def`."),
    ],
)
def test_a_fault_of_its_author_s_is_told_with_the_remedy(tmp_path: Path, file: str, text: str, message: str) -> None:
    folder = written(tmp_path / "a")
    (folder / "harbour/names.py").write_text("")
    (folder / file).write_text(text)
    assert message in load_registry(folder, tmp_path / "home").problem


def test_a_folder_of_files_alone_says_which_file_to_name(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/guide.py").write_text(FILE)
    (broken,) = load_registry(tmp_path / "a", tmp_path / "home").broken
    assert f"--path {tmp_path / 'a/guide.py'}" in broken.error.remedy
    assert isinstance(load_registry(tmp_path / "a/guide.py", tmp_path / "home")["guide"], Graph)


async def test_the_check_follows_calls_into_packages_of_the_same_folder(tmp_path: Path) -> None:
    from offing.testing.graph_checks import find_graph_issues

    folder = with_siblings(tmp_path / "a")
    (folder / "shore/late.py").write_text("import uuid\n\ndef drawn():\n    return uuid.uuid4()\n")
    (folder / "harbour/__init__.py").write_text(NODE)
    issues = await find_graph_issues(load_registry(folder, tmp_path / "home")["harbour"])
    assert ("unsafe-to-repeat", "shore/late.py:4") in {(one.rule, one.location) for one in issues}


NODE = """
from langgraph.graph import StateGraph
from offing.sdk import Graph
from shore.late import drawn

async def work(state):
    drawn()
    return {}

def build():
    graph = StateGraph(dict)
    graph.add_node("work", work)
    graph.add_edge("__start__", "work")
    return graph

graph = Graph("harbour", "", "", "any", build, lambda _: {}, ())
"""
