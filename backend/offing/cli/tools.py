"""`offing tools`: what is wrong with a tool policy, before a run is submitted with it."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console
from rich.markup import escape

from offing.cli.stack import graph_named, with_paths
from offing.cli.terminal import safe
from offing.core.errors import InvalidInput
from offing.core.policy import findings
from offing.core.policy.reading import read_policy
from offing.mcp.catalogue import Catalogue
from offing.services.tool_policies import known_tools
from offing.settings import load_settings

app = App(name="tools", help="What runs may do with their tools.")

Flag = Annotated[bool, Parameter(negative="")]


@app.command
def check(
    file: Path,
    *,
    graph: str = "agentflow",
    path: Annotated[tuple[Path, ...], Parameter(negative="")] = (),
    web: Flag = False,
    code: Flag = False,
    mcp: Annotated[tuple[str, ...], Parameter(negative="")] = (),
) -> int:
    """Check a tool policy: whether its rules can decide, and whether a door stands open. Exit 1 if something is wrong.

    Parameters
    ----------
    file
        The policy as JSON, as the API takes it.
    graph
        The graph whose tools it is about.
    path
        A folder or a .py file with a graph that is not installed, or several.
    web
        For a run that may use the web.
    code
        For a run that may run code.
    mcp
        An MCP server that the run may use, or several.
    """
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("FILE", f"{file} cannot be read: {error}", "Name a JSON file.") from None
    policy = read_policy(text)
    settings = with_paths(load_settings(), path)
    scope = {"web": web, "code": code, "mcp": mcp}
    specs = known_tools(graph_named(settings, graph), scope, Catalogue(settings.mcp))
    found, console = findings(policy, specs), Console(soft_wrap=True)
    for finding in found:
        console.print(f"[bold]{escape(safe(finding.rule))}[/] ({finding.field}): {escape(safe(finding.problem))}.")
        console.print(f"  {escape(safe(finding.remedy))}")
    console.print(f"{len(policy.rules)} rules, {len(found)} findings")
    return 1 if found else 0
