"""The state diagram of every installed flow, drawn from the graph itself, in the README of its folder.

    python -m tests.graphs.diagrams [--write]

Without `--write` it prints them. A README holds the diagram between the lines `<!-- diagram -->` and
`<!-- end of diagram -->`; a folder whose README draws several graphs names each: `<!-- diagram NAME -->`.
"""

import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

ROOM = Path(__file__).parents[2] / "graphs" / "offing_graphs"
END = "<!-- end of diagram -->"


def flows() -> dict[str, Any]:
    """Every installed flow of ours, by name."""
    found = sorted(entry_points(group="offing.graphs"), key=lambda e: e.name)
    return {e.name: e.load() for e in found if e.module.startswith(f"{ROOM.name}.")}


def readme_of(name: str) -> Path:
    (entry,) = (e for e in entry_points(group="offing.graphs") if e.name == name)
    return ROOM / entry.module.split(".")[1] / "README.md"


def drawn(graph: Any) -> str:
    """The block as it must stand in the README."""
    return f"```mermaid\n{graph.build().compile().get_graph().draw_mermaid().strip()}\n```"


def standing(text: str, name: str) -> str | None:
    """The block that a README holds. None: it has no place for one."""
    place = _place(text, name)
    return text[place[0] : place[1]].strip() if place else None


def written(text: str, name: str, block: str) -> str:
    """The README with this block. Raises `ValueError` where it has no place for one."""
    place = _place(text, name)
    if place is None:
        raise ValueError(f"Put the lines <!-- diagram --> and {END} where the diagram of {name} belongs")
    return f"{text[: place[0]]}\n{block}\n{text[place[1] :]}"


def _place(text: str, name: str) -> tuple[int, int] | None:
    """Between the markers, the graph's own before those without a name."""
    for begin in (f"<!-- diagram {name} -->", "<!-- diagram -->"):
        start = text.find(begin)
        end = text.find(END, start)
        if start >= 0 and end >= 0:
            return start + len(begin), end
    return None


def main() -> None:
    for name, graph in flows().items():
        path = readme_of(name)
        if "--write" in sys.argv[1:]:
            path.write_text(written(path.read_text(), name, drawn(graph)))
        else:
            print(f"{name}: {path.relative_to(ROOM.parents[1])}\n{drawn(graph)}\n")


if __name__ == "__main__":
    main()
