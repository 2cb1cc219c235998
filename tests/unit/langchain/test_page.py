"""What the page on LangGraph graphs shows is a graph that can be registered and drawn."""

import re
from pathlib import Path
from typing import Any

from offing.sdk import Graph

PAGE = Path(__file__).parents[3] / "docs" / "langgraph.md"


def test_the_first_example_of_the_page_is_a_graph(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(from langchain_core.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {"__file__": str(tmp_path / "guide.py"), "__name__": "guide"}
    exec(compile(code, "guide.py", "exec", dont_inherit=True), names)
    graph: Graph = names["graph"]
    drawn = graph.build().compile().get_graph().draw_mermaid()
    assert (graph.name, [role.name for role in graph.roles]) == ("guide", ["agent"])
    assert "call_model -.-> tools" in drawn
