"""`offing new graph`: what it makes is clean, is found, has no fault, and cannot take the name of something else."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from offing.cli.new import Template, graph, render_template
from offing.core.errors import InvalidInput
from offing.sdk import Graph
from offing.services.graphs import GraphRegistry, custom_tools_of
from offing.testing.graph_checks import find_graph_issues
from tests.unit.docs.documents import ROOT


def create_graph(folder: Path, template: Template) -> Graph:
    """A new graph, loaded from its folder."""
    assert graph("harbour", template=template, into=folder) == 0
    return GraphRegistry(paths=str(folder / "harbour"), data_dir=folder / "home")["harbour"]


def test_a_full_graph_has_roles_and_a_tool_of_its_own(tmp_path: Path) -> None:
    result = create_graph(tmp_path, "full")
    assert [tool.spec.name for tool in custom_tools_of(result)] == ["count_words"]
    assert [role.name for role in result.roles] == ["seeker", "writer"]


def test_the_smallest_graph_needs_five_names_of_ours_with_its_tests() -> None:
    lines = [line for text in render_template("harbour", "small").values() for line in text.splitlines()]
    ours = [line.partition(" import ")[2].split(", ") for line in lines if line.startswith("from offing")]
    assert sum(map(len, ours)) == 5


@pytest.mark.parametrize("template", ["small", "full"])
def test_a_new_graph_has_no_fault_and_reads_as_ours_do(tmp_path: Path, template: Template) -> None:
    assert asyncio.run(find_graph_issues(create_graph(tmp_path, template))) == ()
    ruff = [str(Path(sys.executable).parent / "ruff"), "check", "--config", str(ROOT / "pyproject.toml"), "."]
    done = subprocess.run(ruff, cwd=tmp_path / "harbour", capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_a_small_graph_s_own_tests_pass(tmp_path: Path) -> None:
    """Those of a full one are part of the first tutorial."""
    graph("harbour", into=tmp_path)
    pytest_here = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(pytest_here, cwd=tmp_path / "harbour", capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_a_full_graph_has_the_files_of_ours() -> None:
    ours = {path.name for path in (ROOT / "graphs/offing_graphs/router").glob("*.py")}
    files = {path.removeprefix("harbour/") for path in render_template("harbour", "full") if "harbour/" in path}
    assert files == ours | {"tools.py"}


@pytest.mark.parametrize("template", ["small", "full"])
def test_nothing_of_the_template_is_left_in_what_is_made(template: Template) -> None:
    files = render_template("harbour", template)
    assert {"pyproject.toml", "README.md", "harbour/graph.py", "tests/test_graph.py"} <= set(files)
    assert ("harbour/prompts.py" in files) == (template == "full")
    assert not any("__NAME__" in text or "__TITLE__" in text or "tmpl" in position for position, text in files.items())


@pytest.mark.parametrize("name", ["Harbour", "9x", "a-b", "", "class", "x" * 41, "../up", "json", "agentflow", "tests"])
def test_a_name_that_cannot_be_had_is_rejected(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="NAME"):
        graph(name, into=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "harbour").mkdir()
    with pytest.raises(InvalidInput, match="already exists"):
        graph("harbour", into=tmp_path)
