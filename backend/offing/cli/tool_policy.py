"""`offing tool-policy`: check a tool policy before a run is submitted with it."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console
from rich.markup import escape

from offing.cli.options import Flag, Paths
from offing.cli.stack import get_graph, with_graph_paths
from offing.cli.terminal import strip_control
from offing.core.errors import InvalidInput
from offing.core.tool_policy import find_issues
from offing.core.tool_policy.parser import parse_tool_policy
from offing.mcp.server_registry import McpServerRegistry
from offing.services.run_tool_policy import list_tool_specs
from offing.settings import load_settings

app = App(name="tool-policy", help="Check a tool policy before a run is submitted with it.")


@app.command
def check(
    file: Path,
    *,
    graph: str = "agentflow",
    path: Paths = (),
    web: Flag = False,
    code: Flag = False,
    mcp: Annotated[tuple[str, ...], Parameter(negative="")] = (),
) -> int:
    """Check a tool policy for rules that cannot be decided and for unintended permissions.

    Exits with 1 if there is a problem.

    Parameters
    ----------
    file
        A JSON file with the tool policy, as in the API.
    graph
        The graph whose tools the policy is about.
    path
        A folder or a .py file with a graph that is not installed. Repeat the option for several.
    web
        Check for a run that may use the web.
    code
        Check for a run that may run code.
    mcp
        Name of an MCP server that the run may use. Repeat the option for several.
    """
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("FILE", f"{file} cannot be read: {error}", "Use a JSON file.") from None
    tool_policy = parse_tool_policy(text)
    settings = with_graph_paths(load_settings(), path)
    scope = {"web": web, "code": code, "mcp": mcp}
    specs = list_tool_specs(get_graph(settings, graph), scope, McpServerRegistry(settings.mcp_config))
    issues, console = find_issues(tool_policy, specs), Console(soft_wrap=True)
    for finding in issues:
        console.print(
            f"[bold]{escape(strip_control(finding.rule))}[/] ({finding.field}): "
            f"{escape(strip_control(finding.problem))}."
        )
        console.print(f"  {escape(strip_control(finding.remedy))}")
    console.print(f"{len(tool_policy.rules)} rules, {len(issues)} findings")
    return 1 if issues else 0
