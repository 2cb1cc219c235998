"""`offing new graph`: what it makes is clean, is found, and cannot take the name of something else."""

import subprocess
import sys
from pathlib import Path

import pytest

from offing.cli.new import graph, rendered
from offing.core.errors import InvalidInput
from offing.services.graphs import Catalogue, own_tools
from tests.unit.docs.reading import ROOT


def test_a_new_graph_is_found_with_its_tool_and_reads_as_ours_does(tmp_path: Path) -> None:
    assert graph("harbour", into=tmp_path) == 0
    found = Catalogue(paths=str(tmp_path / "harbour"), home=tmp_path / "home")["harbour"]
    assert [tool.spec.name for tool in own_tools(found)] == ["count_words"]
    assert [role.name for role in found.roles] == ["seeker", "writer"]
    ruff = [str(Path(sys.executable).parent / "ruff"), "check", "--config", str(ROOT / "pyproject.toml"), "."]
    done = subprocess.run(ruff, cwd=tmp_path / "harbour", capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_nothing_of_the_template_is_left_in_what_is_made() -> None:
    made = rendered("harbour")
    assert {"pyproject.toml", "README.md", "harbour/graph.py", "harbour/seeker.txt", "tests/test_graph.py"} <= set(made)
    assert not any("__NAME__" in text or "__TITLE__" in text or "tmpl" in place for place, text in made.items())


@pytest.mark.parametrize("name", ["Harbour", "9x", "a-b", "", "class", "x" * 41, "../up", "json", "agentflow", "tests"])
def test_a_name_that_cannot_be_had_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="NAME"):
        graph(name, into=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "harbour").mkdir()
    with pytest.raises(InvalidInput, match="there already"):
        graph("harbour", into=tmp_path)
