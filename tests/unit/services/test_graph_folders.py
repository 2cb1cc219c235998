"""Graphs in folders: found, kept apart by version, loaded anew, and never mixed up."""

import shutil
import sys
from pathlib import Path

import pytest

from offing.core.errors import InvalidInput
from offing.sdk import Graph
from offing.services.graph_folders import list_copied_versions
from offing.services.graphs import GraphRegistry, custom_tools_of, find_graph_version, get_graph
from offing.services.run_tool_policy import build_default_tool_policy

PROJECT = """
[project]
name = "harbour"

[project.entry-points."offing.graphs"]
harbour = "harbour:graph"
"""

INIT = """
from harbour.words import word
from offing.sdk import Graph

def later():
    import harbour.words
    from . import words
    assert harbour.words is words
    return words.word

graph = Graph("harbour", word, "", "any", later, lambda _: {}, ())
"""

TOOL = """
from offing.sdk import ToolArgs, ToolOutput, tool, SideEffect

class Args(ToolArgs, frozen=True):
    n: int

@tool()
async def %s(args: Args) -> ToolOutput:
    "Doubles."
    return ToolOutput({"n": args.n * 2}, "doubled")

@tool(side_effect=SideEffect.IDEMPOTENT)
async def announce(args: Args, key: str) -> ToolOutput:
    "Tells the world."
    return ToolOutput({}, key)
"""


def written(folder: Path, word: str = "first") -> Path:
    (folder / "harbour").mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "harbour/__init__.py").write_text(INIT)
    (folder / "harbour/words.py").write_text(f'word = "{word}"\n')
    return folder


def with_tool(folder: Path, name: str = "double") -> Path:
    written(folder)
    (folder / "harbour/tools.py").write_text(TOOL % name)
    changed = INIT.replace(", ())", f", (), tools=({name}, announce))")
    (folder / "harbour/__init__.py").write_text(f"from harbour.tools import {name}, announce\n{changed}")
    return folder


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


def load_registry(folder: Path, home: Path, *, reloads: bool = False) -> GraphRegistry:
    return GraphRegistry(paths=str(folder), data_dir=home, reload=reloads, clock=Clock())


def test_a_graph_is_found_in_a_folder_and_its_version_is_the_hash_of_its_files(tmp_path: Path) -> None:
    one = load_registry(written(tmp_path / "a"), tmp_path / "home")["harbour"]
    same = load_registry(written(tmp_path / "b"), tmp_path / "home")["harbour"]
    other = load_registry(written(tmp_path / "c", "second"), tmp_path / "home")["harbour"]
    assert one.version == same.version != other.version
    assert (one.title, other.title) == ("first", "second")
    assert "harbour" not in sys.modules


def test_a_folder_of_projects_offers_all_of_them(tmp_path: Path) -> None:
    written(tmp_path / "all/harbour")
    assert set(load_registry(tmp_path / "all", tmp_path / "home")) == {"harbour"}


def test_a_changed_folder_is_loaded_anew_and_its_old_version_stays_at_hand(tmp_path: Path) -> None:
    graphs = load_registry(written(tmp_path / "a"), tmp_path / "home", reloads=True)
    old = graphs["harbour"]
    written(tmp_path / "a", "second")
    new = graphs["harbour"]
    assert (old.title, new.title) == ("first", "second")
    assert (old.build(), new.build()) == ("first", "second")
    assert find_graph_version(graphs, "harbour", old.version) is old
    assert find_graph_version(graphs, "harbour", new.version) is new


def test_a_version_outlives_the_process_that_loaded_it(tmp_path: Path) -> None:
    old = load_registry(written(tmp_path / "a"), tmp_path / "home")["harbour"]
    later = load_registry(written(tmp_path / "a", "second"), tmp_path / "home")
    graph_version = find_graph_version(later, "harbour", old.version)
    assert graph_version is not None
    assert (graph_version.title, later["harbour"].title) == ("first", "second")
    assert find_graph_version(later, "harbour", "0" * 64) is None
    assert find_graph_version(later, "harbour", "../" * 21 + "a") is None


def test_without_reload_a_folder_is_read_once(tmp_path: Path) -> None:
    graphs = load_registry(written(tmp_path / "a"), tmp_path / "home")
    written(tmp_path / "a", "second")
    assert graphs["harbour"].title == "first"


def test_broken_code_is_reported_with_its_line_and_the_last_good_version_stays(tmp_path: Path) -> None:
    graphs = load_registry(written(tmp_path / "a"), tmp_path / "home", reloads=True)
    (tmp_path / "a/harbour/words.py").write_text("word = \n")
    assert graphs["harbour"].title == "first"
    assert f"{tmp_path / 'a/harbour/words.py'}:1: SyntaxError" in graphs.problem
    (tmp_path / "a/harbour/words.py").write_text("word = 1 / 0\n")
    assert graphs["harbour"].title == "first"
    assert f"{tmp_path / 'a/harbour/words.py'}:1: ZeroDivisionError" in graphs.problem
    written(tmp_path / "a", "fixed")
    assert (graphs["harbour"].title, graphs.problem) == ("fixed", "")


def test_each_home_reads_its_own_copy_of_a_version(tmp_path: Path) -> None:
    for name in ("one", "other"):
        folder = written(tmp_path / name, "shared")
        graphs = load_registry(folder, tmp_path / f"{name} home", reloads=True)
        assert graphs["harbour"].title == "shared"
        (folder / "harbour/words.py").write_text("word = 2 / 0\n")
        assert graphs["harbour"].title == "shared"
        assert f"{folder / 'harbour/words.py'}:1: ZeroDivisionError" in graphs.problem


def test_what_is_imported_late_is_found_when_the_first_data_directory_is_deleted(tmp_path: Path) -> None:
    folder = written(tmp_path / "a", "late")
    (folder / "harbour/late.py").write_text('word = "found"\n')
    early = INIT.replace("    assert harbour.words is words\n", "").replace("from . import words", "from . import late")
    (folder / "harbour/__init__.py").write_text(early.replace("return words.word", "return late.word"))
    assert load_registry(folder, tmp_path / "one home")["harbour"].title == "late"
    shutil.rmtree(tmp_path / "one home")
    assert load_registry(folder, tmp_path / "other home")["harbour"].build() == "found"


def test_a_copy_that_somebody_touched_is_made_again(tmp_path: Path) -> None:
    home = tmp_path / "home"
    version = load_registry(written(tmp_path / "a"), home)["harbour"].version
    (home / "graphs" / version / "harbour/words.py").write_text('word = "forged"\n')
    assert load_registry(tmp_path / "a", home)["harbour"].version == version
    assert "forged" not in (home / "graphs" / version / "harbour/words.py").read_text()


@pytest.mark.parametrize("what", ["nowhere", "empty", "no package", "not a graph"])
def test_a_folder_that_cannot_be_used_names_the_remedy(tmp_path: Path, what: str) -> None:
    folder = tmp_path / "a"
    if what == "empty":
        folder.mkdir()
    elif what == "no package":
        written(folder)
        (folder / "harbour/__init__.py").unlink()
    elif what == "not a graph":
        written(folder)
        (folder / "harbour/__init__.py").write_text("graph = 3\n")
    (broken,) = load_registry(folder, tmp_path / "home").broken
    assert (broken.path, broken.error.field) == (folder, "--path")
    assert str(folder) in broken.error.problem
    assert broken.error.remedy


def test_own_tools_are_allowed_to_runs_of_their_graph_and_asked_about_if_they_have_an_effect(tmp_path: Path) -> None:
    graph = get_graph(load_registry(with_tool(tmp_path / "a"), tmp_path / "home"), "harbour")
    assert [tool.spec.name for tool in custom_tools_of(graph)] == ["double", "announce"]
    rules = {rule.tool: rule for rule in build_default_tool_policy(graph).rules if rule.effect == "allow"}
    assert rules["double"].allow_other_args
    requests = {rule.tool for rule in build_default_tool_policy(graph).rules if rule.effect == "ask"}
    assert ("announce" in rules, requests) == (False, {"announce"})
    other = Graph("other", "", "", "1", lambda: None, lambda _: {}, ())
    assert "double" not in {rule.tool for rule in build_default_tool_policy(other).rules}


@pytest.mark.parametrize("name", ["search_library", "mcp_notes_read"])
def test_an_own_tool_cannot_take_a_name_of_the_platform_s_or_of_an_mcp_server_s(name: str, tmp_path: Path) -> None:
    graphs = load_registry(with_tool(tmp_path / "a", name), tmp_path / "home")
    with pytest.raises(InvalidInput, match=name):
        get_graph(graphs, "harbour")


def test_a_tool_that_no_server_offers_is_rejected_by_name() -> None:
    lacking = Graph("lacking", "", "", "1", lambda: None, lambda _: {}, (), tools=("nowhere",))
    with pytest.raises(InvalidInput, match="nowhere"):
        GraphRegistry([lacking])


def test_a_copy_that_another_worker_removes_meanwhile_is_passed_over(tmp_path: Path) -> None:
    """A link that leads nowhere looks like a copy that was listed and is gone."""
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / "gone").symlink_to(tmp_path / "nowhere")
    (tmp_path / "graphs" / "there").mkdir()
    assert list_copied_versions(tmp_path, before_timestamp=2**40) == ("there",)
