"""`offing new graph`: what it makes is clean, is found, has no fault, and cannot take the name of something else."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from offing.cli.new import Template, graph, rendered
from offing.core.errors import InvalidInput
from offing.sdk import Graph
from offing.services.graphs import Catalogue, own_tools
from offing.testing.checking import check
from tests.unit.docs.reading import ROOT


def made(folder: Path, template: Template) -> Graph:
    """A new graph as it is found in its folder."""
    assert graph("harbour", template=template, into=folder) == 0
    return Catalogue(paths=str(folder / "harbour"), home=folder / "home")["harbour"]


def test_a_full_graph_has_roles_and_a_tool_of_its_own(tmp_path: Path) -> None:
    found = made(tmp_path, "full")
    assert [tool.spec.name for tool in own_tools(found)] == ["count_words"]
    assert [role.name for role in found.roles] == ["seeker", "writer"]


def test_the_smallest_graph_needs_five_names_of_ours_with_its_tests() -> None:
    lines = [line for text in rendered("harbour", "small").values() for line in text.splitlines()]
    ours = [line.partition(" import ")[2].split(", ") for line in lines if line.startswith("from offing")]
    assert sum(map(len, ours)) == 5


@pytest.mark.parametrize("template", ["small", "full"])
def test_a_new_graph_has_no_fault_and_reads_as_ours_do(tmp_path: Path, template: Template) -> None:
    assert asyncio.run(check(made(tmp_path, template))) == ()
    ruff = [str(Path(sys.executable).parent / "ruff"), "check", "--config", str(ROOT / "pyproject.toml"), "."]
    done = subprocess.run(ruff, cwd=tmp_path / "harbour", capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_a_small_graph_s_own_tests_pass(tmp_path: Path) -> None:
    """Those of a full one are part of the first tutorial."""
    graph("harbour", into=tmp_path)
    pytest_here = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(pytest_here, cwd=tmp_path / "harbour", capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("template", ["small", "full"])
def test_nothing_of_the_template_is_left_in_what_is_made(template: Template) -> None:
    files = rendered("harbour", template)
    assert {"pyproject.toml", "README.md", "harbour/graph.py", "tests/test_graph.py"} <= set(files)
    assert ("harbour/seeker.txt" in files) == (template == "full")
    assert not any("__NAME__" in text or "__TITLE__" in text or "tmpl" in place for place, text in files.items())


@pytest.mark.parametrize("name", ["Harbour", "9x", "a-b", "", "class", "x" * 41, "../up", "json", "agentflow", "tests"])
def test_a_name_that_cannot_be_had_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="NAME"):
        graph(name, into=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "harbour").mkdir()
    with pytest.raises(InvalidInput, match="there already"):
        graph("harbour", into=tmp_path)
