"""What the page on LangGraph graphs shows is loaded as a file, has no fault, and passes the tests beside it."""

import asyncio
import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from offing.sdk import Graph
from offing.services.graphs import GraphRegistry
from offing.testing.graph_checks import find_graph_issues

PAGE = Path(__file__).parents[3] / "docs" / "langgraph.md"


def example(first: str) -> str:
    """The one that begins so."""
    (code,) = re.findall(rf"```python\n({first}.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return code


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """The first example, saved as the page says."""
    (tmp_path / "guide.py").write_text(example("from langchain_core"))
    return GraphRegistry(paths=str(tmp_path / "guide.py"), data_dir=tmp_path / "home")["guide"]


def test_the_first_example_of_the_page_is_a_graph_without_a_fault(graph: Graph) -> None:
    drawn = graph.build().compile().get_graph().draw_mermaid()
    assert (graph.name, [role.name for role in graph.roles]) == ("guide", ["agent"])
    assert "call_model -.-> tools" in drawn
    assert asyncio.run(find_graph_issues(graph)) == ()


@pytest.fixture
def guide(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the page's tests import."""
    module = type(sys)("guide")
    module.graph = graph  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "guide", module)


@pytest.mark.usefixtures("guide")
@pytest.mark.parametrize(("first", "count"), [("from offing.testing", 2), ("from langgraph", 1)])
def test_the_tests_of_the_page_pass(first: str, count: int, tmp_path: Path) -> None:
    file = tmp_path / "test_guide.py"
    file.write_text(example(f"import asyncio\n\n{first}"))
    names: dict[str, Any] = runpy.run_path(str(file))
    tests = [value for name, value in names.items() if name.startswith("test_") and callable(value)]
    assert len(tests) == count
    for test in tests:
        test()
