"""`offing graph`: list, draw and check graphs, and record their runs."""

import asyncio
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, Literal

import orjson
from cyclopts import App
from rich.console import Console
from rich.table import Table

from offing.cli.options import Json, Paths
from offing.cli.show import get_run_id, run_with_database
from offing.cli.stack import get_graph, load_graphs, with_graph_paths
from offing.sdk import Graph
from offing.services.graphs import custom_tools_of
from offing.services.recordings import get_recording
from offing.settings import load_settings
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database

app = App(name="graph", help="Graphs: list, draw, check, record.")


@app.command(name="list")
def list_graphs(*, path: Paths = (), json: Json = False) -> int:
    """List the graphs that runs can name. Exits with 1 and the reason if a folder cannot be used.

    Parameters
    ----------
    path
        A folder or a .py file with a graph that is not installed. Repeat the option for several.
    """
    graphs = load_graphs(with_graph_paths(load_settings(), path))
    rows = [_describe_graph(graph) for graph in sorted(graphs.values(), key=lambda graph: graph.name)]
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
    """Draw the nodes and edges of a graph.

    Parameters
    ----------
    format
        `text` prints one line per node. `mermaid` prints a diagram for Markdown.
    path
        A folder or a .py file with a graph that is not installed. Repeat the option for several.
    """
    drawing: Any = get_graph(with_graph_paths(load_settings(), path), name).build().compile().get_graph()
    print(drawing.draw_mermaid().strip() if format == "mermaid" else "\n".join(_render_edges(drawing)))
    return 0


@app.command
def check(name: str, *, path: Paths = (), json: Json = False) -> int:
    """Check a graph for errors in its structure, its code and a simulated run.

    Exits with 1 if there is an error.

    Parameters
    ----------
    path
        A folder or a .py file with a graph that is not installed. Repeat the option for several.
    """
    from offing.testing.graph_checks import ERROR
    from offing.testing.graph_checks import find_graph_issues as look

    graph = get_graph(with_graph_paths(load_settings(), path), name)
    report = asyncio.run(look(graph))
    if not json and not any(finding.rule == "build" for finding in report):
        print("\n".join(_render_edges(graph.build().compile().get_graph())))
    if json:
        sys.stdout.write(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        print("\n".join(map(str, report)) or "No problems found.")
    return 1 if any(finding.level == ERROR for finding in report) else 0


@app.command
def record(run: str, output: Path) -> int:
    """Write an ended run as a recording that `offing.testing` can replay.

    RUN is an id or the last characters of an id.

    Parameters
    ----------
    output
        The file to write. It contains what the run has read, so treat it like the documents.
    """
    from offing.core.model import get_smallest_answer
    from offing.models.engine import can_revise
    from offing.testing.recording import Recording, recording_to_json

    async def work(database: Database) -> Recording:
        row, steps, earlier = await get_recording(database, LOCAL_TENANT, await get_run_id(database, run))
        windows = {role: size for role, one in row.engines.items() if (size := one.context_tokens) is not None}
        answers = {role: size for role, one in row.engines.items() if (size := get_smallest_answer(one)) is not None}
        reason, style = row.stop_reason or "", row.report_style
        revises = tuple(sorted(role for role, one in row.engines.items() if can_revise(one)))
        return Recording(
            row.question,
            steps,
            row.budget,
            earlier,
            row.seed,
            reason,
            windows,
            style,
            revises,
            row.follow_up,
            answers,
            row.interactions,
        )

    output.write_bytes(orjson.dumps(recording_to_json(run_with_database(work)), option=orjson.OPT_INDENT_2))
    return 0


def _describe_graph(graph: Graph) -> dict[str, Any]:
    return {
        "name": graph.name,
        "title": graph.title,
        "version": graph.version,
        "roles": [role.name for role in graph.roles],
        "optional_roles": [role.name for role in graph.optional_roles],
        "tools": [tool.spec.name for tool in custom_tools_of(graph)],
    }


def _render_edges(drawing: Any) -> list[str]:
    """Return one line per node with its successors. A question mark means a conditional edge."""
    ways: defaultdict[str, list[str]] = defaultdict(list)
    for edge in drawing.edges:
        ways[_render_node(edge.source)].append(_render_node(edge.target) + ("?" if edge.conditional else ""))
    width = max(map(len, ways), default=0)
    return [f"{node:<{width}}  ->  {', '.join(following)}" for node, following in ways.items()]


def _render_node(node: str) -> str:
    return {"__start__": "start", "__end__": "end"}.get(node, node)
