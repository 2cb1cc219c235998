"""Every graph's README shows the state diagram that its graph draws."""

import pytest

from tests.graphs.diagrams import drawn, find_diagram, installed_graphs, readme_of, written

REMEDY = (
    "Put `<!-- diagram -->` and `<!-- end of diagram -->` where it belongs, if they are not there, "
    "run `.venv/bin/python -m tests.graphs.diagrams --write`, and read the difference."
)


@pytest.mark.parametrize("name", sorted(installed_graphs()))
def test_the_readme_shows_the_diagram_of_the_graph_itself(name: str) -> None:
    path = readme_of(name)
    assert path.exists(), f"{path} is missing; a flow's README tells its paper, its state and what we chose."
    assert find_diagram(path.read_text(), name) == drawn(installed_graphs()[name]), (
        f"{path}: the diagram is not the graph's. {REMEDY}"
    )


def test_all_graphs_of_the_mission_are_installed() -> None:
    assert {"agentflow", "hiper", "iterresearch", "memact", "supo", "research_team", "router"} <= set(
        installed_graphs()
    )


def test_a_written_diagram_is_found_again_and_nothing_else_is_touched() -> None:
    text = "before\n<!-- diagram -->\nold\n<!-- end of diagram -->\nafter\n"
    assert find_diagram(written(text, "any", "new"), "any") == "new"
    assert written(text, "any", "new").replace("new", "old") == text


def test_each_graph_of_a_folder_has_its_own_code_path() -> None:
    text = "<!-- diagram a -->\n1\n<!-- end of diagram -->\n<!-- diagram b -->\n2\n<!-- end of diagram -->\n"
    assert (find_diagram(text, "a"), find_diagram(text, "b")) == ("1", "2")
    assert find_diagram(written(text, "b", "3"), "a") == "1"


def test_a_readme_without_diagram_markers_is_rejected() -> None:
    assert find_diagram("nothing", "a") is None
    with pytest.raises(ValueError, match="Put the lines"):
        written("nothing", "a", "1")
