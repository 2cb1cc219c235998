"""The state diagram of every installed graph, drawn from the graph itself, in the README of its folder.

    python -m tests.graphs.diagrams [--write]

Without `--write` it prints them. A README holds the diagram between the lines `<!-- diagram -->` and
`<!-- end of diagram -->`; a folder whose README draws several graphs names each: `<!-- diagram NAME -->`.
"""

import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

GRAPHS_DIR = Path(__file__).parents[2] / "graphs" / "offing_graphs"
END = "<!-- end of diagram -->"


def installed_graphs() -> dict[str, Any]:
    """Every installed graph of ours, by name."""
    results = sorted(entry_points(group="offing.graphs"), key=lambda e: e.name)
    return {e.name: e.load() for e in results if e.module.startswith(f"{GRAPHS_DIR.name}.")}


def readme_of(name: str) -> Path:
    (entry,) = (e for e in entry_points(group="offing.graphs") if e.name == name)
    return GRAPHS_DIR / entry.module.split(".")[1] / "README.md"


def drawn(graph: Any) -> str:
    """The block as it must stand in the README."""
    return f"```mermaid\n{graph.build().compile().get_graph().draw_mermaid().strip()}\n```"


def find_diagram(text: str, name: str) -> str | None:
    """The block that a README holds. None: it has no place for one."""
    position = _locate(text, name)
    return text[position[0] : position[1]].strip() if position else None


def written(text: str, name: str, block: str) -> str:
    """The README with this block. Raises `ValueError` where it has no place for one."""
    position = _locate(text, name)
    if position is None:
        raise ValueError(f"Put the lines <!-- diagram --> and {END} where the diagram of {name} belongs")
    return f"{text[: position[0]]}\n{block}\n{text[position[1] :]}"


def _locate(text: str, name: str) -> tuple[int, int] | None:
    """Between the markers, the graph's own before those without a name."""
    for begin in (f"<!-- diagram {name} -->", "<!-- diagram -->"):
        start = text.find(begin)
        end = text.find(END, start)
        if start >= 0 and end >= 0:
            return start + len(begin), end
    return None


def main() -> None:
    for name, graph in installed_graphs().items():
        path = readme_of(name)
        if "--write" in sys.argv[1:]:
            path.write_text(written(path.read_text(), name, drawn(graph)))
        else:
            print(f"{name}: {path.relative_to(GRAPHS_DIR.parents[1])}\n{drawn(graph)}\n")


if __name__ == "__main__":
    main()
