"""Check for code that blocks its worker, or that has a side effect although it is declared pure."""

import ast
from collections.abc import Iterator
from typing import Any

from offing.core.tool import SideEffect
from offing.sdk import Graph
from offing.sdk.tool import CustomTool
from offing.testing.graph_checks.issue import WARNING, GraphIssue
from offing.testing.graph_checks.reachable_values import GraphWalk
from offing.testing.graph_checks.source_reader import SourceFunction, SourceReader, iter_own_nodes, resolve_name

SENDING_METHODS = frozenset({"delete", "patch", "post", "put"})
CHANGING_FUNCTIONS = frozenset(
    {"remove", "rename", "replace", "unlink", "rmdir", "mkdir", "makedirs", "removedirs", "system"}
)
WRITING_METHODS = frozenset({"write_text", "write_bytes", "unlink", "rename", "rmdir", "mkdir", "touch"})
BLOCKING_CALLS = frozenset(
    {"time.sleep", "urllib.request.urlopen", "os.system", "socket.create_connection", "builtins.input"}
    | {f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "getoutput")}
    | {
        f"{client}.{verb}"
        for client in ("requests", "requests.api", "httpx")
        for verb in (*SENDING_METHODS, "get", "request")
    }
)
"""Blocking functions by their full names."""


def find_side_effect_issues(graph: Graph, walk: GraphWalk) -> list[GraphIssue]:
    """Return the issues of nodes, tools, and the functions that they call in their packages."""
    tools = [tool for tool in graph.tools if isinstance(tool, CustomTool)]
    pure = SourceReader([tool.function for tool in tools if tool.spec.side_effect is SideEffect.PURE]).sources
    faults = [fault for source in pure for fault in _find_changes(source)]
    sources = [*walk.own_sources, *SourceReader([tool.function for tool in tools]).sources]
    return [*faults, *(fault for source in sources for fault in _find_blocking_calls(source))]


def _find_changes(source: SourceFunction) -> Iterator[GraphIssue]:
    for call in (node for node in ast.walk(source.tree) if isinstance(node, ast.Call)):
        if name := _describe_effect(call, source):
            why = (
                f"A tool that is declared PURE calls {name}. A pure tool is called without approval, and "
                "again after a crash."
            )
            remedy = (
                "Declare the side effect: tool(side_effect=SideEffect.IDEMPOTENT), or AT_MOST_ONCE if a repetition "
                "would do harm."
            )
            yield GraphIssue(WARNING, "effect", source.locate(call), why, remedy)


def _describe_effect(call: ast.Call, source: SourceFunction) -> str:
    """Describe the side effect of a call. Empty means that its name shows none."""
    name = resolve_name(call.func, source)
    module, _, verb = name.rpartition(".")
    changes = (
        (module.partition(".")[0] in ("requests", "httpx") and verb in SENDING_METHODS)
        or (module in ("os", "posix", "nt") and verb in CHANGING_FUNCTIONS)
        or (module.startswith("pathlib") and verb in WRITING_METHODS)
        or module in ("smtplib", "shutil", "subprocess")
        or (name in ("builtins.open", "io.open", "_io.open") and _is_write(call))
    )
    return name if changes else ""


def _is_write(call: ast.Call) -> bool:
    arguments: list[Any] = [*call.args[1:2], *(word.value for word in call.keywords if word.arg == "mode")]
    return any(isinstance(one, ast.Constant) and set(str(one.value)) & set("wax+") for one in arguments)


def _find_blocking_calls(source: SourceFunction) -> Iterator[GraphIssue]:
    """Yield issues for calls in an async function that block the worker's other runs and its heartbeat."""
    for function in ast.walk(source.tree):
        if not isinstance(function, ast.AsyncFunctionDef):
            continue
        for call in (node for node in iter_own_nodes(function) if isinstance(node, ast.Call)):
            if (name := resolve_name(call.func, source)) in BLOCKING_CALLS:
                why = f"It calls {name} in an async function, which blocks all runs of the worker."
                remedy = "Use an async function, asyncio.to_thread or a synchronous node."
                yield GraphIssue(WARNING, "blocks-worker", source.locate(call), why, remedy)
