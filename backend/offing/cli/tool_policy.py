"""`offing tool-policy`: check tool policies, decide sample calls, and keep policies under a name."""

from pathlib import Path
from typing import Annotated, Any, cast

import orjson
from cyclopts import App, Parameter
from rich.console import Console
from rich.markup import escape

from offing.cli.options import Flag, Paths
from offing.cli.show import run_with_database
from offing.cli.stack import get_graph, with_graph_paths
from offing.cli.terminal import print_json, strip_control
from offing.core.errors import InvalidInput
from offing.core.tool_policy import find_issues
from offing.core.tool_policy.parser import parse_tool_policy
from offing.core.tool_policy.trial import TrialOutcome
from offing.mcp.server_registry import McpServerRegistry
from offing.services import tool_policies
from offing.services.run_tool_policy import list_tool_specs
from offing.services.tool_policies import SampleCall, check_tool_policy
from offing.settings import load_settings
from offing.storage.migrate import LOCAL_TENANT

app = App(name="tool-policy", help="Tool policies: check one, decide sample calls, keep them under a name.")

ScopeNames = Annotated[tuple[str, ...], Parameter(negative="")]


@app.command
def check(
    file: Path,
    *,
    graph: str = "agentflow",
    path: Paths = (),
    web: Flag = False,
    code: Flag = False,
    mcp: ScopeNames = (),
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
    tool_policy = parse_tool_policy(_read_text(file))
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


@app.command
def decide(
    tool: str,
    args: str = "{}",
    *,
    file: Path | None = None,
    graph: str = "agentflow",
    path: Paths = (),
    web: Flag = False,
    code: Flag = False,
    mcp: ScopeNames = (),
) -> int:
    """Show what a tool policy decides about a call, before and after the run has read untrusted text.

    Nothing is called.

    Parameters
    ----------
    tool
        Name of the tool.
    args
        The arguments as JSON, such as '{"query": "pool size"}'.
    file
        A JSON file with the tool policy. Default: the default policy.
    graph
        The graph of the run.
    path
        A folder or a .py file with a graph that is not installed. Repeat the option for several.
    web
        Decide for a run that may use the web.
    code
        Decide for a run that may run code.
    mcp
        Name of an MCP server that the run may use. Repeat the option for several.
    """
    settings = with_graph_paths(load_settings(), path)
    scope = {"web": web, "code": code, "mcp": mcp}
    text = None if file is None else _read_text(file)
    servers = McpServerRegistry(settings.mcp_config)
    result = check_tool_policy(text, get_graph(settings, graph), scope, servers, [SampleCall(tool, _parse_args(args))])
    if not result.decisions:
        raise InvalidInput(result.issues[0].field, result.issues[0].problem, result.issues[0].remedy)
    (decision,) = result.decisions
    _print_outcome("at the start", decision.before)
    _print_outcome("after untrusted text", decision.after)
    return 0


@app.command(name="list")
def list_named() -> int:
    """List the tool policies that are kept under a name."""
    for one in run_with_database(lambda database: tool_policies.list_policies(database, LOCAL_TENANT)):
        print(f"{one.name}  {one.updated_at:%Y-%m-%d %H:%M}")
    return 0


@app.command
def show(name: str) -> int:
    """Print a tool policy as JSON."""
    stored = run_with_database(lambda database: tool_policies.get_policy(database, LOCAL_TENANT, name))
    return print_json(None if stored.policy is None else stored.policy.to_json())


@app.command
def save(name: str, file: Path) -> int:
    """Keep a tool policy under a name, so that a question in the web UI can use it.

    Parameters
    ----------
    name
        Lower-case letters, digits, periods, hyphens and underscores.
    file
        A JSON file with the tool policy.
    """
    policy = parse_tool_policy(_read_text(file))
    run_with_database(lambda database: tool_policies.put_policy(database, LOCAL_TENANT, name, policy))
    return 0


@app.command
def remove(name: str) -> int:
    """Delete a tool policy. Runs that were submitted with it keep it."""
    run_with_database(lambda database: tool_policies.delete_policy(database, LOCAL_TENANT, name))
    return 0


def _read_text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("FILE", f"{file} cannot be read: {error}", "Use a JSON file.") from None


def _parse_args(text: str) -> dict[str, Any]:
    try:
        parsed: Any = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidInput("ARGS", f"it is not valid JSON: {error}", 'Use a form such as {"query": "salt"}.') from None
    if not isinstance(parsed, dict):
        raise InvalidInput("ARGS", "it is not a JSON object", 'Use a form such as {"query": "salt"}.')
    return cast(dict[str, Any], parsed)


def _print_outcome(when: str, outcome: TrialOutcome) -> None:
    rule = f" by {outcome.rule}" if outcome.rule else ""
    print(strip_control(f"{when}: {outcome.outcome}{rule}{f': {outcome.reason}' if outcome.reason else ''}"))
    if outcome.replacement is not None and outcome.then is not None:
        _print_outcome(f"  instead {outcome.replacement.tool}", outcome.then)
