"""`offing graph`: which graphs there are, how they look, what is wrong with them, and runs of theirs as recordings."""

import asyncio
import sys
from collections import defaultdict
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table

from offing.cli.show import find_run, with_database
from offing.cli.stack import graph_named, loaded, with_paths
from offing.sdk import Graph
from offing.services.graphs import own_tools
from offing.services.recordings import recorded
from offing.settings import load_settings
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database

app = App(name="graph", help="Graphs: list, draw, check, record.")

Paths = Annotated[tuple[Path, ...], Parameter(negative="")]
Json = Annotated[bool, Parameter(name="--json", negative="")]


@app.command(name="list")
def list_(*, path: Paths = (), json: Json = False) -> int:
    """List the graphs that runs can name. Exits 1 when a folder cannot be used, and says why.

    Parameters
    ----------
    path
        A folder or a .py file with a graph that is not installed, or several.
    """
    graphs = loaded(with_paths(load_settings(), path))
    rows = [_row(graph) for graph in sorted(graphs.values(), key=lambda graph: graph.name)]
    code = 1 if graphs.broken else 0
    if json:
        sys.stdout.write(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode() + "\n")
        return code
    table = Table("graph", "version", "roles", "own tools", "title", box=None)
    for row in rows:
        table.add_row(row["name"], row["version"][:12], ", ".join(row["roles"]), ", ".join(row["tools"]), row["title"])
    Console().print(table)
    return code


@app.command
def draw(name: str, *, format: Literal["text", "mermaid"] = "text", path: Paths = ()) -> int:
    """Draw a graph's nodes and the ways between them.

    Parameters
    ----------
    format
        text: one line a node. mermaid: a diagram for Markdown.
    path
        A folder or a .py file with a graph that is not installed, or several.
    """
    drawn: Any = graph_named(with_paths(load_settings(), path), name).build().compile().get_graph()
    print(drawn.draw_mermaid().strip() if format == "mermaid" else "\n".join(_lines(drawn)))
    return 0


@app.command
def check(name: str, *, path: Paths = (), json: Json = False) -> int:
    """Look for faults before a run has them: in a graph's shape, its code, and a rehearsal of it. Exits 1 on an error.

    Parameters
    ----------
    path
        A folder or a .py file with a graph that is not installed, or several.
    """
    from offing.testing.checking import ERROR
    from offing.testing.checking import check as look

    graph = graph_named(with_paths(load_settings(), path), name)
    found = asyncio.run(look(graph))
    if not json and not any(finding.rule == "build" for finding in found):
        print("\n".join(_lines(graph.build().compile().get_graph())))
    if json:
        sys.stdout.write(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        print("\n".join(map(str, found)) or "Nothing is wrong with it that a check can see.")
    return 1 if any(finding.level == ERROR for finding in found) else 0


@app.command
def record(run: str, output: Path) -> int:
    """Write a finished run as a recording, which `offing.testing` replays. RUN may be shortened to its last characters.

    Parameters
    ----------
    output
        The file to write. It holds what the run read, so treat it as you treat the documents.
    """
    from offing.testing.recorded import Recording, as_json

    async def work(database: Database) -> Recording:
        row, steps, earlier = await recorded(database, LOCAL_TENANT, await find_run(database, run))
        return Recording(row.question, steps, row.budget, earlier, row.seed, row.stop_reason or "")

    output.write_bytes(orjson.dumps(as_json(with_database(work)), option=orjson.OPT_INDENT_2))
    return 0


def _row(graph: Graph) -> dict[str, Any]:
    return {
        "name": graph.name,
        "title": graph.title,
        "version": graph.version,
        "roles": [role.name for role in graph.roles],
        "tools": [tool.spec.name for tool in own_tools(graph)],
    }


def _lines(drawn: Any) -> list[str]:
    """A line a node: where it leads, and with a question mark where it chooses."""
    ways: defaultdict[str, list[str]] = defaultdict(list)
    for edge in drawn.edges:
        ways[_shown(edge.source)].append(_shown(edge.target) + ("?" if edge.conditional else ""))
    width = max(map(len, ways), default=0)
    return [f"{node:<{width}}  ->  {', '.join(following)}" for node, following in ways.items()]


def _shown(node: str) -> str:
    return {"__start__": "start", "__end__": "end"}.get(node, node)
